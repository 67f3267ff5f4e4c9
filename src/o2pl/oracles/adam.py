"""Adam, for few steps on a changing objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl.compiled import compiled
from o2pl.protocols import Floats, Solution, ValueAndGradient
from o2pl.storage import storable

FIRST, SECOND, FLOOR = 0.9, 0.999, 1e-8  # the usual decay of both moments, and the denominator's floor


@compiled
def adam_step(params: Floats, gradient: Floats, first: Floats, second: Floats, step: int, step_size: float) -> None:
    """One step, in place; `step` counts from 1. All arrays are flat and of one length."""
    rate = params.dtype.type(
        step_size / (1 - FIRST**step)
    )  # in the parameters' own precision: float32 is twice as fast
    correction = params.dtype.type(1 / (1 - SECOND**step))
    decay1, decay2 = params.dtype.type(FIRST), params.dtype.type(SECOND)
    rest1, rest2, floor = params.dtype.type(1 - FIRST), params.dtype.type(1 - SECOND), params.dtype.type(FLOOR)
    for i in range(len(params)):
        g = gradient[i]
        first[i] = decay1 * first[i] + rest1 * g
        second[i] = decay2 * second[i] + rest2 * g * g
        params[i] -= rate * first[i] / (np.sqrt(second[i] * correction) + floor)


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
