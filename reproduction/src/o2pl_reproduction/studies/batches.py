"""Rollouts: a policy collects a batch, the learner learns, and the new policy collects the next batch.

O2PL learns from all batches so far with their exact logged densities, SCRM from the last batch only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from o2pl.policies.sampling import sample_rows
from o2pl.protocols import Array, Floats, Rounds
from o2pl.simulation.worlds.moments import moment_normal_density

Draw = Callable[[Floats], tuple[Array, Floats]]  # contexts -> actions and their densities
LearnBatch = Callable[[Floats, Array, Floats, Floats], object]  # contexts, actions, rewards, propensities


def rollouts(batches: Iterable[Rounds], logging: Draw, policy: Draw, learn: LearnBatch) -> Iterator[int]:
    """Collect the first batch by `logging`, the others by `policy`; after each, `learn`, and yield its number."""
    for number, rounds in enumerate(batches, 1):
        actions, propensities = (logging if number == 1 else policy)(rounds.contexts)
        learn(rounds.contexts, actions, rounds.rewards(np.arange(len(actions)), actions), propensities)
        yield number


def gaussian(means: Callable[[Floats], Floats], scale: float, generator: np.random.Generator) -> Draw:
    """Draws a ~ N(means(x), scale²)."""

    def draw(contexts: Floats) -> tuple[Array, Floats]:
        z = generator.standard_normal(len(contexts))
        return means(contexts) + scale * z, np.asarray(moment_normal_density(z) / scale)

    return draw


def categorical(probabilities: Callable[[Floats], Floats], generator: np.random.Generator) -> Draw:
    """Draws a ~ probabilities(x), [n, K]."""

    def draw(contexts: Floats) -> tuple[Array, Floats]:
        actions, propensities = sample_rows(probabilities(contexts), generator.random(len(contexts)))
        return actions, propensities

    return draw


def batch_sizes(scheme: str, first: int, count: int, most: int) -> list[int]:
    """Sizes n0 ("uniform") or n0, 2 n0, 4 n0, ... ("doubling") of M batches; those that would pass `most` rows in all
    are left out, the first one is cut to it."""
    growth = {"uniform": 1, "doubling": 2}[scheme]
    sizes = [first * growth**k for k in range(count)]
    fitting = sum(total <= most for total in np.cumsum(sizes))
    return sizes[:fitting] or [min(first, most)]


def best_scrm(losses: Mapping[str, Floats]) -> str:
    """Return SCRM with λ̂: the λ with the lowest mean final loss over seeds, chosen in hindsight.

    `losses`: learner -> its final loss by seed, [seeds].
    """
    rivals = [name for name in losses if name.startswith("scrm-")]
    return min(rivals, key=lambda name: float(losses[name].mean()))


def mean_and_deviation(values: Floats) -> tuple[float, float]:
    """Return mean and standard deviation over seeds; the deviation is NaN for a single seed."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
