"""Coverage of confidence sequences: adaptive rows with a known mean, and how often the interval misses it.

`misses(world, method)` counts the runs in which the mean was outside at any time; `refutes` in `theory` tests the
count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from o2pl.evaluation.sequences import ConfidenceSequence, SequenceMethod, confidence_sequence, weighted_sequence
from o2pl.learners import O2PL
from o2pl.objectives.weights import weight_of
from o2pl.protocols import Floats

WEIGHT_CLIP = 4.0


class SimulatedRun(NamedTuple):
    """One run: values in [0, 1], and weights if they are rewards of another policy's actions."""

    values: Floats
    weights: Floats | None = None

    def sequence(self, delta: float, method: SequenceMethod) -> ConfidenceSequence:
        if self.weights is None:
            return confidence_sequence(self.values, delta, 0.0, 1.0, method)
        return weighted_sequence(self.weights, self.values, delta, clip=WEIGHT_CLIP, method=method)


class KnownMean(NamedTuple):
    mean: float
    draw: Callable[[int, int, np.random.Generator], Iterator[SimulatedRun]]  # (runs, rows per run, generator)


def misses(world: str, method: SequenceMethod, *, runs: int, rows: int, delta: float, seed: int = 0) -> int:
    """Return in how many runs the true mean was outside [lower_t, upper_t] at some t ≤ rows."""
    mean, draw = KNOWN_MEANS[world]
    missed = 0
    for run in draw(runs, rows, np.random.default_rng(seed)):
        lower, upper = run.sequence(delta, method)
        missed += bool((lower > mean).any() or (upper < mean).any())
    return missed


def bernoulli(mean: float) -> KnownMean:
    def draw(runs: int, rows: int, generator: np.random.Generator) -> Iterator[SimulatedRun]:
        for _ in range(runs):
            yield SimulatedRun((generator.random(rows) < mean) * 1.0)

    return KnownMean(mean, draw)


def _stubborn(runs: int, rows: int, generator: np.random.Generator) -> Iterator[SimulatedRun]:
    """Mean 1/2: coin tosses while the running mean is within 0.05 of it, and hardly any variance otherwise."""
    values, total = np.empty((runs, rows)), np.zeros(runs)
    for t in range(rows):
        spread = np.where(np.abs(total) <= 0.05 * t, 0.5, 0.01)
        step = np.where(generator.random(runs) < 0.5, spread, -spread)
        total += step
        values[:, t] = 0.5 + step
    return (SimulatedRun(row) for row in values)


_TARGET, _MEANS = np.array([0.6, 0.3, 0.1]), np.array([0.8, 0.5, 0.2])


def _greedy_logger(runs: int, rows: int, generator: np.random.Generator) -> Iterator[SimulatedRun]:
    """Three actions; the logger prefers actions that paid off: weights rise to 12, and clipping varies by row."""
    sums, counts = np.ones((runs, 3)), np.full((runs, 3), 2.0)
    values, weights, every = np.empty((runs, rows)), np.empty((runs, rows)), np.arange(runs)
    for t in range(rows):
        logits = np.exp(6 * sums / counts)
        q = 0.05 + 0.85 * logits / logits.sum(axis=1, keepdims=True)
        action = (generator.random((runs, 1)) > q.cumsum(axis=1)).sum(axis=1).clip(max=2)
        values[:, t] = generator.random(runs) < _MEANS[action]
        weights[:, t] = weight_of(_TARGET[action], q[every, action])
        sums[every, action] += values[:, t]
        counts[every, action] += 1
    return (SimulatedRun(v, w) for v, w in zip(values, weights, strict=True))


_CONTEXTS = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
_LOGITS = np.stack([_CONTEXTS[:, 0], _CONTEXTS[:, 1], -_CONTEXTS[:, 0]], axis=1)
_REWARD_MEANS = 1 / (1 + np.exp(-_LOGITS))  # [4, 3]
_POLICY = np.exp(_LOGITS) / np.exp(_LOGITS).sum(axis=1, keepdims=True)


def _o2pl_log(runs: int, rows: int, generator: np.random.Generator) -> Iterator[SimulatedRun]:
    """The log of O2PL while it learns, evaluated for a softmax policy; four contexts, three actions."""
    for _ in range(runs):
        place = generator.integers(4, size=rows)
        table = (generator.random((rows, 3)) < _REWARD_MEANS[place]) * 1.0
        learner = O2PL.paper_replay(3, exploration=0.1, random_state=int(generator.integers(2**31)))
        run = learner.run((_CONTEXTS[place], table))
        yield SimulatedRun(run.rewards, weight_of(_POLICY[place, run.actions], run.propensities))


KNOWN_MEANS: dict[str, KnownMean] = {
    "bernoulli-0.5": bernoulli(0.5),
    "bernoulli-0.95": bernoulli(0.95),
    "rare-0.01": bernoulli(0.01),
    "stubborn": KnownMean(0.5, _stubborn),
    "clipped-weights": KnownMean(float(_TARGET @ _MEANS), _greedy_logger),
    "o2pl-log": KnownMean(float((_POLICY * _REWARD_MEANS).sum(axis=1).mean()), _o2pl_log),
}
