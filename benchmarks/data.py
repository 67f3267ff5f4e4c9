"""The data of the bench: Gaussian contexts, Bernoulli rewards with a logistic mean per action."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Arrays = tuple[NDArray[Any], NDArray[Any]]


def logistic_bandit(rounds: int, d: int, n_actions: int, seed: int = 0) -> Arrays:
    """contexts [T, d] float32, rewards of all actions [T, K] in {0, 1}."""
    generator = np.random.default_rng(seed)
    contexts = generator.normal(size=(rounds, d)).astype(np.float32)
    weights = generator.normal(size=(n_actions, d)) * 2 / np.sqrt(d)
    means = 1 / (1 + np.exp(-contexts @ weights.T))
    return contexts, (generator.random(means.shape) < means).astype(np.float64)


class World(NamedTuple):
    """Rounds with the rewards of all actions, as a loop reads them and as an array."""

    contexts: Any  # one per round
    rewards: list[list[float]]  # [T][K]
    table: NDArray[Any]  # [T, K]


def logistic_world(rounds: int, d: int, n_actions: int) -> Callable[[int], World]:
    """The world of each seed."""

    def made(seed: int) -> World:
        contexts, table = logistic_bandit(rounds, d, n_actions, seed)
        return World(contexts, table.tolist(), table)

    return made
