"""L-BFGS that remembers, for a function of single-precision parameters: the parts of `quasi_newton`, one call each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from o2pl.oracles.lbfgs import LBFGS
from o2pl.oracles.quasi_newton import (
    PATIENCE,
    ROUNDING,
    STANDSTILL,
    TRIALS,
    Curvature,
    downhill,
    low_enough,
    remember,
    shrinkage,
    straight_down,
)
from o2pl.protocols import Floats, Solution


def descend(
    function: Callable[[Floats, Floats], float], start: Floats, oracle: LBFGS, curvature: Curvature
) -> Solution:
    """Minimise within the oracle's iterations and tolerance. `function(params, gradient)` writes the gradient."""
    pairs = (curvature.steps, curvature.changes, curvature.inner, curvature.at)
    params, gradient, new_gradient, direction = start.copy(), *(np.empty_like(start) for _ in range(3))
    value = function(params, gradient)
    evaluations, idle, stuck = 1, 0, False
    for _ in range(oracle.iterations):
        if idle == STANDSTILL or largest(gradient) <= oracle.tolerance:
            break
        length, slope = downhill(gradient, *pairs, direction)
        there, found = params, value
        for trial in range(TRIALS):
            there = params + np.float32(length) * direction
            found = function(there, new_gradient)
            evaluations += 1
            stuck = not low_enough(found, value, length * slope)
            if not stuck:
                break
            length *= shrinkage(found, value, length * slope)
            if trial == PATIENCE and curvature.at[1]:
                length, slope = straight_down(gradient, curvature.at, direction)
        if stuck:
            break
        remember(params, there, gradient, new_gradient, *pairs)
        idle = idle + 1 if value - found <= ROUNDING * abs(value) else 0
        params, value = there, found
        gradient, new_gradient = new_gradient, gradient
    return Solution(params, value, not stuck and largest(gradient) <= oracle.tolerance, evaluations)


def largest(gradient: Floats) -> float:
    """The largest entry by magnitude."""
    return max(float(gradient.max()), -float(gradient.min()))
