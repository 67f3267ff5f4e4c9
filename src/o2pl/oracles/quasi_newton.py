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
    function: ValueAndGradient, params: Floats, pairs: dict[str, Array], iterations: int, tolerance: float,
    negligible: float = 0.0,
) -> Solution:  # fmt: skip
    """Minimise from params; the pairs are used and renewed.

    Stops when no entry of the gradient is above tolerance, or when a step brings or promises no more than `negligible`.
    """
    value, gradient = function(params)
    evaluations, steps, idle = 1, 0, 0
    direction, kept = np.empty(len(params)), (pairs["steps"], pairs["changes"], pairs["inner"], pairs["at"])
    while True:
        largest, slope, length = search(params, gradient, *kept, direction)
        promise = 0.5 * length * abs(slope) if pairs["at"][1] else math.inf  # of a first step nothing is known
        converged = largest <= tolerance or promise <= negligible
        if converged or steps == iterations or idle == STANDSTILL:
            return Solution(params, value, converged, evaluations)
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
                pairs["at"][1] = 0
                _, slope, length = search(params, gradient, *kept, direction)
        else:
            return Solution(params, value, False, evaluations)
        remember(params, there - params, gradient_there - gradient, *kept)
        gained = value - found
        idle = idle + 1 if gained <= ROUNDING * abs(value) else 0
        steps += 1
        params, value, gradient = there, found, gradient_there
        if negligible and gained <= negligible:
            return Solution(params, value, True, evaluations)


@compiled
def search(
    params: Floats, gradient: Floats, steps: Floats, changes: Floats, inner: Floats, at: Ints, out: Floats
) -> tuple[float, float, float]:
    """The largest entry of the gradient, the slope along a direction, which is written to `out`, how far to try.

    Straight down where the pairs lead up; they are then forgotten: of an objective that moved on they may lead nowhere.
    """
    slope, length, largest, size, far, long = 0.0, 1.0, 0.0, 0.0, 0.0, 0.0
    if at[1]:
        slope = lbfgs_direction(gradient, steps, changes, inner, at, out)
    for i in range(len(gradient)):
        largest = max(largest, abs(gradient[i]))
        size += gradient[i] * gradient[i]
        far += params[i] * params[i]
    if slope >= 0:
        at[1] = 0
        for i in range(len(gradient)):
            out[i] = -gradient[i]
        slope, length = -size, 1.0 / math.sqrt(max(size, 1e-300))
    for i in range(len(gradient)):
        long += out[i] * out[i]
    farthest = REACH * (1 + math.sqrt(far))
    return largest, slope, length * min(1.0, farthest / max(length * math.sqrt(long), 1e-300))


@compiled
def remember(
    start: Floats, step: Floats, change: Floats, steps: Floats, changes: Floats, inner: Floats, at: Ints
) -> None:
    """Keep (step, change of gradient) if it tells of a curvature.

    Across a kink, where a row begins to be clipped, a tiny step changes the gradient by much; so does rounding. Were
    such a pair kept, the next steps would be tiny too. A tiny step is believed if its curvature is one that is known.
    """
    product, size, far = 0.0, 0.0, 0.0
    for i in range(len(step)):
        product += step[i] * change[i]
        size += step[i] * step[i]
        far += start[i] * start[i]
    if product <= 0.0:
        return
    if size < TINY * (1 + far):
        known = 0.0
        for j in range(at[1]):
            squares = 0.0
            for i in range(len(step)):
                squares += np.float64(steps[j, i]) * np.float64(steps[j, i])
            known = max(known, inner[j] / squares)
        if product > KINK * known * size:
            return
    k = at[0]
    for i in range(len(step)):
        steps[k, i], changes[k, i] = step[i], change[i]
    inner[k] = product
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
