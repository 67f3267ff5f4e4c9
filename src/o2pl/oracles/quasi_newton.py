"""L-BFGS that remembers: a learner that solves again after every few rounds keeps what it knows of the curvature.

A few iterations are then enough. SciPy's forgets between calls and costs about 40 µs for each evaluation, more than the
objective of a short log. The parts are kernels, so that a compiled objective can be solved by a compiled loop.
"""

from __future__ import annotations

import numpy as np

from o2pl.compiled import compiled
from o2pl.oracles.lbfgs import LBFGS
from o2pl.protocols import Array, Floats, Ints, Solution, ValueAndGradient

SUFFICIENT = 1e-4  # Armijo: a step must bring this share of what the slope promises,
ROUNDING = 1e-7  # up to what single precision cannot tell
SHORTEST = 1e-8  # a step below this share of the direction is none
LEAST_CURVATURE = 1e-10


class Curvature:
    """The last `memory` pairs (step, change of gradient), in a ring. [memory, D] each, single precision."""

    def __init__(self, memory: int, n_params: int) -> None:
        self.steps = np.zeros((memory, n_params), np.float32)
        self.changes = np.zeros((memory, n_params), np.float32)
        self.inner = np.zeros(memory)  # step · change
        self.at = np.zeros(2, np.int64)  # where the next pair goes, how many there are

    def arrays(self) -> dict[str, Array]:
        return {"steps": self.steps, "changes": self.changes, "inner": self.inner, "at": self.at}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.steps, self.changes = arrays["steps"], arrays["changes"]
        self.inner, self.at = arrays["inner"], arrays["at"]


def descend(function: ValueAndGradient, start: Floats, oracle: LBFGS, curvature: Curvature) -> Solution:
    """Minimise from `start`, within the oracle's iterations and tolerance."""
    pairs = (curvature.steps, curvature.changes, curvature.inner, curvature.at)
    params, direction = start.copy(), np.empty_like(start)
    value, gradient = function(params)
    evaluations = 1
    for _ in range(oracle.iterations):
        if np.abs(gradient).max(initial=0.0) <= oracle.tolerance:
            break
        length, slope = downhill(gradient, *pairs, direction)
        while True:
            found, new_gradient = function(params + length * direction)
            evaluations += 1
            if low_enough(found, value, length * slope):
                break
            length *= shrinkage(found, value, length * slope)
            if length < SHORTEST:
                return Solution(params, value, False, evaluations)
        params = params + length * direction
        remember(length * direction, gradient, new_gradient, *pairs)
        value, gradient = found, new_gradient
    return Solution(params, value, bool(np.abs(gradient).max(initial=0.0) <= oracle.tolerance), evaluations)


@compiled
def downhill(
    gradient: Floats, steps: Floats, changes: Floats, inner: Floats, at: Ints, direction: Floats
) -> tuple[float, float]:
    """Where to go, in `direction`; how far to try, and the slope there."""
    lbfgs_direction(gradient, steps, changes, inner, at, direction)
    slope = _dot(gradient, direction)
    if slope >= 0.0:  # pairs of an objective that has moved on
        at[1] = 0
        lbfgs_direction(gradient, steps, changes, inner, at, direction)
        slope = _dot(gradient, direction)
    return 1.0 if at[1] else min(1.0, 1.0 / np.abs(gradient).sum()), slope


@compiled
def low_enough(found: float, value: float, promised: float) -> bool:
    """Armijo's rule; promised = step · gradient."""
    return found <= value + SUFFICIENT * promised + ROUNDING * abs(value)


@compiled
def shrinkage(found: float, value: float, promised: float) -> float:
    """To the minimum of the parabola through value, slope and what was found, within reason."""
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
    step: Floats, before: Floats, after: Floats, steps: Floats, changes: Floats, inner: Floats, at: Ints
) -> None:
    """Keep (step, after - before) if the curvature along the step is positive."""
    memory, D = steps.shape
    k = at[0]
    product, size = 0.0, 0.0
    for i in range(D):
        change = after[i] - before[i]
        product += step[i] * change
        size += step[i] * step[i]
    if product <= LEAST_CURVATURE * size:
        return
    for i in range(D):
        steps[k, i] = step[i]
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
