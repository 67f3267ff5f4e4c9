"""L-BFGS that remembers, for any function: the kernels of `quasi_newton` in the order in which one solve needs them."""

from __future__ import annotations

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
from o2pl.protocols import Floats, Solution, ValueAndGradient


def descend(function: ValueAndGradient, start: Floats, oracle: LBFGS, curvature: Curvature) -> Solution:
    """Minimise within the oracle's iterations and tolerance; `curvature` is used and renewed.

    About 10 µs for an iteration beside what the function takes.
    """
    pairs = (curvature.steps, curvature.changes, curvature.inner, curvature.at)
    params, direction = start.copy(), np.empty_like(start)
    value, gradient = function(params)
    evaluations, idle = 1, 0
    for _ in range(oracle.iterations):
        if np.abs(gradient).max() <= oracle.tolerance or idle == STANDSTILL:
            break
        length, slope = downhill(gradient, *pairs, direction)
        for trial in range(TRIALS):
            there = params + length * direction
            found, new_gradient = function(there)
            evaluations += 1
            if low_enough(found, value, length * slope):
                break
            length *= shrinkage(found, value, length * slope)
            if trial == PATIENCE and curvature.at[1]:
                length, slope = straight_down(gradient, curvature.at, direction)
        if not low_enough(found, value, length * slope):
            return Solution(params, value, False, evaluations)
        remember(params, there, gradient, new_gradient, *pairs)
        idle = idle + 1 if value - found <= ROUNDING * abs(value) else 0
        params, value, gradient = there, found, new_gradient
    return Solution(params, value, bool(np.abs(gradient).max() <= oracle.tolerance), evaluations)
