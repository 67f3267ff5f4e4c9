"""Descent along L-BFGS directions, with pairs (step, change of gradient) that are kept from one solve to the next."""

from __future__ import annotations

import math

import numpy as np

from o2pl.compiled import compiled
from o2pl.protocols import Array, Floats, Ints, Solution, ValueAndGradient

SUFFICIENT = 1e-4  # Armijo: a step must bring this share of what the slope promises,
ROUNDING = 1e-7  # up to what single precision cannot tell
PATIENCE = 7  # trials along a direction that should need one; then its pairs are misleading
TRIALS = 20  # of one step in all
STANDSTILL = 3  # steps in a row that bring no more than rounding
TINY = 1e-6  # (|step| / |parameters|)² of a step that may be a kink's or rounding's,
KINK = 10.0  # if its curvature is so many times the largest known
REACH = 10.0  # a step is at most so many times as long as the parameters, or as 1


def no_pairs(memory: int, n_params: int) -> dict[str, Array]:
    """None yet, in a ring of `memory`."""
    return {
        "steps": np.zeros((memory, n_params), np.float32),
        "changes": np.zeros((memory, n_params), np.float32),
        "inner": np.zeros(memory),  # step · change
        "at": np.zeros(2, np.int64),  # where the next pair goes, how many there are
    }


def descend(
    function: ValueAndGradient, params: Floats, pairs: dict[str, Array], iterations: int, tolerance: float
) -> Solution:
    """Minimise from params; the pairs are used and renewed. Stops when no entry of the gradient is above tolerance."""
    value, gradient = function(params)
    evaluations, steps, idle = 1, 0, 0
    direction = np.empty(len(params))
    while True:
        converged = bool(np.abs(gradient).max(initial=0.0) <= tolerance)
        if converged or steps == iterations or idle == STANDSTILL:
            return Solution(params, value, converged, evaluations)
        slope = lbfgs_direction(gradient, pairs["steps"], pairs["changes"], pairs["inner"], pairs["at"], direction)
        length = 1.0
        if pairs["at"][1] == 0 or slope >= 0:
            length, slope = _straight_down(gradient, pairs, direction)
        farthest = REACH * (1 + float(np.linalg.norm(params)))
        length *= min(1.0, farthest / max(length * float(np.linalg.norm(direction)), 1e-300))
        for trial in range(1, TRIALS + 1):
            there = params + length * direction
            found, gradient_there = function(there)
            evaluations += 1
            promised = length * slope
            if found <= value + SUFFICIENT * promised + ROUNDING * abs(value):
                break
            # to the minimum of the parabola through value, slope and what was found, within reason
            shrinkage = -0.5 * promised / (found - value - promised) if math.isfinite(found) else 0.1
            length *= min(max(shrinkage, 0.1), 0.5)
            if trial == PATIENCE and pairs["at"][1]:
                length, slope = _straight_down(gradient, pairs, direction)
        else:
            return Solution(params, value, False, evaluations)
        remember(params, there - params, gradient_there - gradient, pairs)
        idle = idle + 1 if value - found <= ROUNDING * abs(value) else 0
        steps += 1
        params, value, gradient = there, found, gradient_there


def _straight_down(gradient: Floats, pairs: dict[str, Array], direction: Floats) -> tuple[float, float]:
    """How far to try, and the slope; all pairs are forgotten: of an objective that moved on they may lead nowhere."""
    pairs["at"][1] = 0
    direction[:] = -gradient
    size = float(gradient @ gradient)
    return 1.0 / math.sqrt(size), -size


def remember(start: Floats, step: Floats, change: Floats, pairs: dict[str, Array]) -> None:
    """Keep (step, change of gradient) if it tells of a curvature.

    Across a kink, where a row begins to be clipped, a tiny step changes the gradient by much; so does rounding. Were
    such a pair kept, the next steps would be tiny too. A tiny step is believed if its curvature is one that is known.
    """
    product, size = float(step @ change), float(step @ step)
    if product <= 0.0:
        return
    steps, inner, at = pairs["steps"], pairs["inner"], pairs["at"]
    if size < TINY * (1 + float(start @ start)):
        known = max((inner[j] / float(steps[j] @ steps[j]) for j in range(at[1])), default=0.0)
        if product > KINK * known * size:
            return
    k = int(at[0])
    steps[k], pairs["changes"][k], inner[k] = step, change, product
    at[0], at[1] = (k + 1) % len(inner), min(at[1] + 1, len(inner))


@compiled
def lbfgs_direction(gradient: Floats, steps: Floats, changes: Floats, inner: Floats, at: Ints, out: Floats) -> float:
    """out = -H gradient by the two-loop recursion, H scaled by the newest pair; its slope. All [D]."""
    memory, D = steps.shape
    count = at[1]
    along = np.empty(memory)
    for i in range(D):
        out[i] = -gradient[i]
    for back in range(count):
        k = (at[0] - 1 - back) % memory
        step, change, total = steps[k], changes[k], 0.0
        for i in range(D):
            total += step[i] * out[i]
        along[k] = total / inner[k]
        for i in range(D):
            out[i] -= along[k] * change[i]
    if count:
        newest, squares = (at[0] - 1) % memory, 0.0
        change = changes[newest]
        for i in range(D):
            squares += change[i] * change[i]
        for i in range(D):
            out[i] *= inner[newest] / squares
    for back in range(count - 1, -1, -1):
        k = (at[0] - 1 - back) % memory
        step, change, total = steps[k], changes[k], 0.0
        for i in range(D):
            total += change[i] * out[i]
        for i in range(D):
            out[i] += (along[k] - total / inner[k]) * step[i]
    slope = 0.0
    for i in range(D):
        slope += gradient[i] * out[i]
    return slope
