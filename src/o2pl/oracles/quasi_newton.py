"""L-BFGS that remembers: the parts, as kernels, for an objective that is a kernel itself.

A learner that solves again after every few rounds keeps what it knows of the curvature, and a few iterations are then
enough. SciPy's forgets between calls and costs about 40 µs for each evaluation, more than the objective of a short log.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from o2pl.compiled import compiled
from o2pl.oracles.lbfgs import LBFGS
from o2pl.protocols import Array, Floats, Ints, Solution, ValueAndGradient

SUFFICIENT = 1e-4  # Armijo: a step must bring this share of what the slope promises,
ROUNDING = 1e-7  # up to what single precision cannot tell
PATIENCE = 7  # trials along a direction that should need one; then its pairs are misleading
TRIALS = 20  # of one step in all
STANDSTILL = 3  # steps in a row that bring no more than rounding
TINY = 1e-6  # (|step| / |parameters|)² of a step that may be a kink's or rounding's,
KINK = 10.0  # if its curvature is so many times the largest known


Pairs = tuple[Floats, Floats, Floats, Ints]  # what a `Curvature` holds


class Curvature:
    """The last `memory` pairs (step, change of gradient), in a ring. [memory, D] each, single precision."""

    def __init__(self, memory: int, n_params: int) -> None:
        self.steps = np.zeros((memory, n_params), np.float32)
        self.changes = np.zeros((memory, n_params), np.float32)
        self.inner = np.zeros(memory)  # step · change
        self.at = np.zeros(2, np.int64)  # where the next pair goes, how many there are

    @property
    def pairs(self) -> Pairs:
        return self.steps, self.changes, self.inner, self.at

    def arrays(self) -> dict[str, Array]:
        return {"steps": self.steps, "changes": self.changes, "inner": self.inner, "at": self.at}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.steps, self.changes = arrays["steps"], arrays["changes"]
        self.inner, self.at = arrays["inner"], arrays["at"]


VALUE, LENGTH, SLOPE = range(3)  # places in a descent's numbers
EVALUATIONS, STEPS, TRIAL, IDLE, CONVERGED = range(5)  # and in its counts


class Descent(NamedTuple):
    """A minimisation under way: whoever can evaluate the function does so at `there`, and calls `advance`."""

    params: Floats  # the best so far, [D]
    there: Floats  # where the function is to be evaluated next,
    gradient: Floats
    gradient_there: Floats  # and where its gradient goes
    direction: Floats
    numbers: Floats
    counts: Ints
    steps: Floats  # the pairs of a `Curvature`, which stay behind
    changes: Floats
    inner: Floats
    at: Ints


@compiled
def begin(params: Floats, pairs: Pairs) -> Descent:
    """From params, which become those of the minimum."""
    steps, changes, inner, at = pairs
    return Descent(
        params, params.copy(), np.empty_like(params), np.empty_like(params), np.empty_like(params), np.zeros(3),
        np.zeros(5, np.int64), steps, changes, inner, at,
    )  # fmt: skip


@compiled
def advance(descent: Descent, found: float, iterations: int, tolerance: float) -> bool:
    """Take note of what was found `there` and say where to look next; True when there is nothing more to do."""
    params, there, gradient = descent.params, descent.there, descent.gradient
    direction, numbers, counts, at = descent.direction, descent.numbers, descent.counts, descent.at
    pairs = (descent.steps, descent.changes, descent.inner, at)
    counts[EVALUATIONS] += 1
    promised = numbers[LENGTH] * numbers[SLOPE]
    if counts[EVALUATIONS] > 1 and not low_enough(found, numbers[VALUE], promised):
        counts[TRIAL] += 1
        numbers[LENGTH] *= shrinkage(found, numbers[VALUE], promised)
        if counts[TRIAL] == PATIENCE and at[1]:
            numbers[LENGTH], numbers[SLOPE] = straight_down(gradient, at, direction)
        there[:] = params + numbers[LENGTH] * direction
        return bool(counts[TRIAL] == TRIALS)
    if counts[EVALUATIONS] > 1:
        remember(params, there, gradient, descent.gradient_there, *pairs)
        idle = numbers[VALUE] - found <= ROUNDING * abs(numbers[VALUE])
        counts[IDLE] = counts[IDLE] + 1 if idle else 0
        counts[STEPS] += 1
        params[:] = there
    gradient[:] = descent.gradient_there
    numbers[VALUE] = found
    counts[CONVERGED] = np.abs(gradient).max() <= tolerance
    if counts[CONVERGED] or counts[STEPS] == iterations or counts[IDLE] == STANDSTILL:
        return True
    numbers[LENGTH], numbers[SLOPE] = downhill(gradient, *pairs, direction)
    counts[TRIAL] = 0
    there[:] = params + numbers[LENGTH] * direction
    return False


def descend(function: ValueAndGradient, start: Floats, oracle: LBFGS, curvature: Curvature) -> Solution:
    """Minimise within the oracle's iterations and tolerance; `curvature` is used and renewed."""
    descent, done = begin(np.array(start), curvature.pairs), False
    while not done:
        found, descent.gradient_there[:] = function(descent.there)
        done = advance(descent, found, oracle.iterations, oracle.tolerance)
    value, counts = float(descent.numbers[VALUE]), descent.counts
    return Solution(descent.params, value, bool(counts[CONVERGED]), int(counts[EVALUATIONS]))


@compiled
def downhill(
    gradient: Floats, steps: Floats, changes: Floats, inner: Floats, at: Ints, direction: Floats
) -> tuple[float, float]:
    """Where to go, in `direction`; how far to try, and the slope there."""
    lbfgs_direction(gradient, steps, changes, inner, at, direction)
    slope = _dot(gradient, direction)
    if at[1] == 0 or slope >= 0.0:
        return straight_down(gradient, at, direction)
    return 1.0, slope


@compiled
def straight_down(gradient: Floats, at: Ints, direction: Floats) -> tuple[float, float]:
    """`downhill` with all pairs forgotten: those of an objective that has moved on may lead nowhere."""
    at[1] = 0
    size = 0.0
    for i in range(len(gradient)):
        direction[i] = -gradient[i]
        size += gradient[i] * gradient[i]
    return 1.0 / math.sqrt(size), -size


@compiled
def low_enough(found: float, value: float, promised: float) -> bool:
    """Armijo's rule; promised = step · gradient."""
    return found <= value + SUFFICIENT * promised + ROUNDING * abs(value)


@compiled
def shrinkage(found: float, value: float, promised: float) -> float:
    """To the minimum of the parabola through value, slope and what was found, within reason."""
    if not math.isfinite(found):
        return 0.1
    return min(max(-0.5 * promised / (found - value - promised), 0.1), 0.5)


@compiled
def lbfgs_direction(gradient: Floats, steps: Floats, changes: Floats, inner: Floats, at: Ints, out: Floats) -> None:
    """out = -H gradient by the two-loop recursion, H scaled by the newest pair. All [D]."""
    memory, D = steps.shape
    count = at[1]
    along = np.empty(memory)
    for i in range(D):
        out[i] = -gradient[i]
    for back in range(count):
        k = (at[0] - 1 - back) % memory
        along[k] = _dot(steps[k], out) / inner[k]
        _add(out, -along[k], changes[k])
    if count:
        newest = (at[0] - 1) % memory
        scale = inner[newest] / _dot(changes[newest], changes[newest])
        for i in range(D):
            out[i] *= scale
    for back in range(count - 1, -1, -1):
        k = (at[0] - 1 - back) % memory
        _add(out, along[k] - _dot(changes[k], out) / inner[k], steps[k])


@compiled
def remember(
    start: Floats, end: Floats, before: Floats, after: Floats, steps: Floats, changes: Floats, inner: Floats, at: Ints
) -> None:
    """Keep (end - start, after - before) if it tells of a curvature.

    Across a kink, where a row begins to be clipped, a tiny step changes the gradient by much; so does rounding. Were
    such a pair kept, the next steps would be tiny too. A tiny step is believed if its curvature is one that is known.
    """
    memory, D = steps.shape
    k = at[0]
    product, size, scale = 0.0, 0.0, 1.0
    for i in range(D):
        step = end[i] - start[i]
        product += step * (after[i] - before[i])
        size += step * step
        scale += start[i] * start[i]
    if product <= 0.0:
        return
    if size < TINY * scale:
        known = 0.0
        for j in range(at[1]):
            known = max(known, inner[j] / _dot(steps[j], steps[j]))
        if product > KINK * known * size:
            return
    for i in range(D):
        steps[k, i] = end[i] - start[i]
        changes[k, i] = after[i] - before[i]
    inner[k] = product
    at[0] = (k + 1) % memory
    at[1] = min(at[1] + 1, memory)


@compiled
def _dot(a: Floats, b: Floats) -> float:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled
def _add(a: Floats, scale: float, b: Floats) -> None:
    for i in range(len(a)):
        a[i] += scale * b[i]
