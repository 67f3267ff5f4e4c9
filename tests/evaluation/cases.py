"""A log with a known logger and a known policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.data.interactions import Interactions

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


def dropped_log(n: int = 12_000, seed: int = 0, constant: bool = False) -> tuple[Interactions, Interactions, float]:
    """A log without the rows that its logger dropped, with and without weights; and the value of the third action.

    Rows of two parts, which the contexts do not show, were dropped at rates of 0.8 and 0.1 (or 0.5 and 0.5). The third
    action is the best of the whole log, and the worst of what was kept.
    """
    g = np.random.default_rng(seed)
    part, actions = g.integers(2, size=n), g.integers(3, size=n)
    means = np.array([[0.2, 0.3, 0.8], [0.6, 0.3, 0.1]])
    rewards = (g.random(n) < means[part, actions]) * 1.0
    rates = np.array([0.5, 0.5] if constant else [0.8, 0.1])[part]
    kept = g.random(n) >= rates
    columns = (g.normal(size=(n, 2))[kept], actions[kept], rewards[kept], np.full(n, 1 / 3)[kept], (0, 1), 3)
    return Interactions(*columns, row_weights=1 / (1 - rates[kept])), Interactions(*columns), float(means[:, 2].mean())
