"""A log with a known logger and a known policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.interactions import Interactions

LOGGER, POLICY = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.7])


MEANS = np.array([0.2, 0.5, 0.8])


def log_of(n: int = 2000, seed: int = 0, **changes: Any) -> Interactions:
    """Rewards that depend on the action and, a little, on the context."""
    g = np.random.default_rng(seed)
    contexts = g.normal(size=(n, 2))
    actions = g.choice(3, size=n, p=LOGGER)
    rewards = (g.random(n) < MEANS[actions] + 0.1 * np.tanh(contexts[:, 0])) * 1.0
    columns = {"contexts": contexts, "actions": actions, "rewards": rewards, "propensities": LOGGER[actions]}
    settings = {"reward_range": (0, 1), "n_actions": 3}
    for name, value in changes.items():
        (columns if name in columns else settings)[name] = value
    return Interactions(**columns, **settings)


def policy(contexts: Any) -> Any:
    return np.tile(POLICY, (len(contexts), 1))
