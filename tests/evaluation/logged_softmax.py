"""Logs of a softmax logger, with right or wrong propensities."""

from __future__ import annotations

import numpy as np

from o2pl.data.interactions import Interactions


def softmax_log(n: int, k: int, d: int, sharp: float, seed: int, fault: float = 1.0) -> Interactions:
    """A softmax logger; `fault` is the power to which the logged propensities were raised, 1 if they are right."""
    g = np.random.default_rng(seed)
    contexts = g.normal(size=(n, d))
    P = np.exp(sharp * contexts @ g.normal(size=(d, k)))
    P /= P.sum(axis=1, keepdims=True)
    actions = np.minimum((P.cumsum(axis=1) < g.random(n)[:, None]).sum(axis=1), k - 1)
    logged = P**fault / (P**fault).sum(axis=1, keepdims=True)
    rewards = (g.random(n) < 0.5) * 1.0
    return Interactions(contexts, actions, rewards, logged[np.arange(n), actions], reward_range=(0, 1), n_actions=k)
