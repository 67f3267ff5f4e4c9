"""Adam, for few steps on a changing objective."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from o2pl.compiled import compiled
from o2pl.protocols import Floats, Solution, ValueAndGradient
from o2pl.storage import storable

FIRST, SECOND, FLOOR = 0.9, 0.999, 1e-8  # the usual decay of both moments, and the denominator's floor


@compiled
def adam_step(params: Floats, gradient: Floats, first: Floats, second: Floats, step: int, step_size: float) -> None:
    """One step, in place; `step` counts from 1. All arrays are flat and of one length."""
    correction1, correction2 = 1 / (1 - FIRST**step), 1 / (1 - SECOND**step)
    for i in range(len(params)):
        g = gradient[i]
        first[i] = FIRST * first[i] + (1 - FIRST) * g
        second[i] = SECOND * second[i] + (1 - SECOND) * g * g
        params[i] -= step_size * (first[i] * correction1) / (math.sqrt(second[i] * correction2) + FLOOR)


@storable
@dataclass(frozen=True)
class Adam:
    """A fixed number of steps from `start` with fresh moments; converged when the last gradient is below tolerance."""

    steps: int = 500
    step_size: float = 0.02
    tolerance: float = 1e-4

    def __call__(self, function: ValueAndGradient, start: Floats) -> Solution:
        params = np.array(start, np.float64)
        first, second = np.zeros_like(params), np.zeros_like(params)
        for step in range(1, self.steps + 1):
            _, gradient = function(params)
            adam_step(params, gradient, first, second, step, self.step_size)
        value, gradient = function(params)
        converged = bool(np.abs(gradient).max(initial=0.0) <= self.tolerance)
        return Solution(params, value, converged, self.steps + 1)
