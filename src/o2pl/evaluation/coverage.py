"""Whether confidence sequences keep their promise: adaptive rows with a known mean, and how often it is missed.

`misses(world, method)` counts the runs in which the truth was outside at any time; `refutes` of `theory` judges it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from o2pl.evaluation.sequences import ConfidenceSequence, Method, confidence_sequence, weighted_sequence
from o2pl.learners import O2PL
from o2pl.protocols import Floats

CLIP = 4.0


class Rows(NamedTuple):
    """One run: values in [0, 1], and weights where they are rewards of another policy's actions."""

    values: Floats
    weights: Floats | None = None

    def sequence(self, delta: float, method: Method) -> ConfidenceSequence:
        if self.weights is None:
            return confidence_sequence(self.values, delta, 0.0, 1.0, method)
        return weighted_sequence(self.weights, self.values, delta, clip=CLIP, method=method)


class World(NamedTuple):
    mean: float
    draw: Callable[[int, int, np.random.Generator], Iterator[Rows]]  # runs, rows of each


def misses(world: str, method: Method, *, runs: int, rows: int, delta: float, seed: int = 0) -> int:
    """In how many runs the true mean was outside [lower_t, upper_t] at some t ≤ rows."""
    mean, draw = WORLDS[world]
    missed = 0
    for run in draw(runs, rows, np.random.default_rng(seed)):
        lower, upper = run.sequence(delta, method)
        missed += bool((lower > mean).any() or (upper < mean).any())
    return missed


def bernoulli(mean: float) -> World:
    def draw(runs: int, rows: int, generator: np.random.Generator) -> Iterator[Rows]:
        for _ in range(runs):
            yield Rows((generator.random(rows) < mean) * 1.0)

    return World(mean, draw)


def _stubborn(runs: int, rows: int, generator: np.random.Generator) -> Iterator[Rows]:
    """Mean 1/2: coin tosses while the rows' mean is within 0.05 of it, and hardly any spread once it is off."""
    values, total = np.empty((runs, rows)), np.zeros(runs)
    for t in range(rows):
        spread = np.where(np.abs(total) <= 0.05 * t, 0.5, 0.01)
        step = np.where(generator.random(runs) < 0.5, spread, -spread)
        total += step
        values[:, t] = 0.5 + step
    return (Rows(row) for row in values)


_TARGET, _MEANS = np.array([0.6, 0.3, 0.1]), np.array([0.8, 0.5, 0.2])


def _greedy_logger(runs: int, rows: int, generator: np.random.Generator) -> Iterator[Rows]:
    """Three actions; the logger leans to what has paid: weights rise to 12, and clipping bites differently each row."""
    sums, counts = np.ones((runs, 3)), np.full((runs, 3), 2.0)
    values, weights, every = np.empty((runs, rows)), np.empty((runs, rows)), np.arange(runs)
    for t in range(rows):
        logits = np.exp(6 * sums / counts)
        q = 0.05 + 0.85 * logits / logits.sum(axis=1, keepdims=True)
        action = (generator.random((runs, 1)) > q.cumsum(axis=1)).sum(axis=1).clip(max=2)
        values[:, t] = generator.random(runs) < _MEANS[action]
        weights[:, t] = _TARGET[action] / q[every, action]
        sums[every, action] += values[:, t]
        counts[every, action] += 1
    return (Rows(v, w) for v, w in zip(values, weights, strict=True))


_CONTEXTS = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
_LOGITS = np.stack([_CONTEXTS[:, 0], _CONTEXTS[:, 1], -_CONTEXTS[:, 0]], axis=1)
_REWARD_MEANS = 1 / (1 + np.exp(-_LOGITS))  # [4, 3]
_POLICY = np.exp(_LOGITS) / np.exp(_LOGITS).sum(axis=1, keepdims=True)


def _o2pl_log(runs: int, rows: int, generator: np.random.Generator) -> Iterator[Rows]:
    """The log that O2PL collects while it learns, read for a softmax policy; four contexts, three actions."""
    for _ in range(runs):
        place = generator.integers(4, size=rows)
        table = (generator.random((rows, 3)) < _REWARD_MEANS[place]) * 1.0
        learner = O2PL.paper_replay(3, exploration=0.1, random_state=int(generator.integers(2**31)))
        run = learner.run((_CONTEXTS[place], table))
        yield Rows(run.rewards, _POLICY[place, run.actions] / run.propensities)


WORLDS: dict[str, World] = {
    "bernoulli-0.5": bernoulli(0.5),
    "bernoulli-0.95": bernoulli(0.95),
    "rare-0.01": bernoulli(0.01),
    "stubborn": World(0.5, _stubborn),
    "clipped-weights": World(float(_TARGET @ _MEANS), _greedy_logger),
    "o2pl-log": World(float((_POLICY * _REWARD_MEANS).sum(axis=1).mean()), _o2pl_log),
}
