"""Descent along L-BFGS directions, with pairs (step, change of gradient) stored between solves."""

from __future__ import annotations

import math

import numpy as np

from o2pl.compiled import compiled
from o2pl.compiled.comparing import larger, smaller
from o2pl.protocols import Array, Floats, Ints, Solution, ValueAndGradient

SUFFICIENT = 1e-4  # Armijo: a step must gain this fraction of the slope's prediction,
ROUNDING = 1e-7  # up to rounding of single precision
PATIENCE = 7  # trials along a direction before its pairs are considered misleading
TRIALS = 20  # trials per step in all
STANDSTILL = 3  # consecutive steps without gain beyond rounding
TINY = 1e-6  # (|step| / |parameters|)² below which a step may be due to a kink or rounding,
KINK = 10.0  # if its curvature exceeds the largest known one by this factor
REACH = 10.0  # largest step, relative to the norm of the parameters, or to 1


def no_pairs(memory: int, n_params: int) -> dict[str, Array]:
    """Return an empty ring buffer of `memory` pairs."""
    return {
        "steps": np.zeros((memory, n_params), np.float32),
        "changes": np.zeros((memory, n_params), np.float32),
        "inner": np.zeros(memory),  # step · change
        "at": np.zeros(2, np.int64),  # position of the next pair, number of pairs
    }


def descend(
    function: ValueAndGradient, params: Floats, pairs: dict[str, Array], iterations: int, tolerance: float,
    negligible: float = 0.0,
) -> Solution:  # fmt: skip
    """Minimise from params; the pairs are used and updated.

    Stops when all entries of the gradient are below tolerance, or when a step gains or predicts at most `negligible`.
    """
    value, gradient = function(params)
    evaluations, steps, idle = 1, 0, 0
    direction, kept = np.empty(len(params)), (pairs["steps"], pairs["changes"], pairs["inner"], pairs["at"])
    while True:
        largest, slope, length = search(params, gradient, *kept, direction)
        promise = 0.5 * length * abs(slope) if pairs["at"][1] else math.inf  # unknown for the first step
        converged = largest <= tolerance or promise <= negligible
        if converged or steps == iterations or idle == STANDSTILL:
            return Solution(params, value, converged, evaluations)
        for trial in range(1, TRIALS + 1):
            there = length * direction
            there += params
            found, gradient_there = function(there)
            evaluations += 1
            promised = length * slope
            if found <= value + SUFFICIENT * promised + ROUNDING * abs(value):
                break
            # minimum of the parabola through value, slope and trial, within limits
            shrinkage = -0.5 * promised / (found - value - promised) if math.isfinite(found) else 0.1
            length *= min(max(shrinkage, 0.1), 0.5)
            if trial == PATIENCE and pairs["at"][1]:
                pairs["at"][1] = 0
                _, slope, length = search(params, gradient, *kept, direction)
        else:
            return Solution(params, value, False, evaluations)
        remember(params, there, gradient, gradient_there, *kept)
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
    """Return the largest gradient entry, the slope along a direction (written to `out`), and the first step length.

    If the pairs lead uphill, use steepest descent and drop the pairs: the objective may have changed since.
    """
    slope, length, largest, size, far, long = 0.0, 1.0, 0.0, 0.0, 0.0, 0.0
    if at[1]:
        slope = lbfgs_direction(gradient, steps, changes, inner, at, out)
    for i in range(len(gradient)):
        largest = larger(largest, abs(gradient[i]))
        size += gradient[i] * gradient[i]
        far += params[i] * params[i]
    if slope >= 0:
        at[1] = 0
        for i in range(len(gradient)):
            out[i] = -gradient[i]
        slope, length = -size, 1.0 / math.sqrt(larger(size, 1e-300))
    for i in range(len(gradient)):
        long += out[i] * out[i]
    farthest = REACH * (1 + math.sqrt(far))
    return largest, slope, length * smaller(1.0, farthest / larger(length * math.sqrt(long), 1e-300))


@compiled
def remember(
    start: Floats, end: Floats, before: Floats, after: Floats, steps: Floats, changes: Floats, inner: Floats, at: Ints
) -> None:
    """Store the step from `start` to `end`, and the change of the gradient, if informative about the curvature.

    Across a kink, where a row starts to be clipped, a tiny step changes the gradient by much; so does rounding. Storing
    such a pair would make the next steps tiny too. A tiny step is stored only if its curvature is plausible.
    """
    product, size, far = 0.0, 0.0, 0.0
    for i in range(len(start)):
        step, change = end[i] - start[i], after[i] - before[i]
        product += step * change
        size += step * step
        far += start[i] * start[i]
    if product <= 0.0:
        return
    if size < TINY * (1 + far):
        known = 0.0
        for j in range(at[1]):
            squares = 0.0
            for i in range(len(start)):
                squares += np.float64(steps[j, i]) * np.float64(steps[j, i])
            known = larger(known, inner[j] / squares)
        if product > KINK * known * size:
            return
    k = at[0]
    for i in range(len(start)):
        steps[k, i], changes[k, i] = end[i] - start[i], after[i] - before[i]
    inner[k] = product
    at[0], at[1] = (k + 1) % len(inner), smaller(at[1] + 1, len(inner))


@compiled
def lbfgs_direction(gradient: Floats, steps: Floats, changes: Floats, inner: Floats, at: Ints, out: Floats) -> float:
    """Compute out = -H gradient by the two-loop recursion, H scaled by the newest pair. Returns the slope. All [D]."""
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
