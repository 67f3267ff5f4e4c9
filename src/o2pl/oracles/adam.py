"""Adam, for few steps on a changing objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl import _core
from o2pl.protocols import Floats, Solution, State, ValueAndGradient
from o2pl.storage import storable

FIRST, SECOND, FLOOR = (
    _core.ADAM_FIRST,
    _core.ADAM_SECOND,
    _core.ADAM_FLOOR,
)  # of both moments; the denominator


@storable
@dataclass(frozen=True)
class Adam:
    """A fixed number of steps; converged when the last gradient is below tolerance."""

    steps: int = 500
    step_size: float = 0.02
    tolerance: float = 1e-4
    plain = False

    def init(self, n_params: int) -> State:
        return {"first": np.zeros(n_params), "second": np.zeros(n_params), "steps": np.zeros(1, np.int64)}

    def step(
        self, function: ValueAndGradient, params: Floats, state: State, negligible: float = 0.0
    ) -> tuple[Solution, State]:
        """Take `steps` steps, starting with the stored moments."""
        params, kept = np.array(params, np.float64), {name: array.copy() for name, array in state.items()}
        grown = len(params) - len(kept["first"])
        if grown:
            kept |= {name: np.append(kept[name], np.zeros(grown)) for name in ("first", "second")}
        value, gradient = np.nan, params
        for _ in range(self.steps):
            value, gradient = function(params)
            kept["steps"][0] += 1
            _core.adam_step(params, gradient, kept["first"], kept["second"], int(kept["steps"][0]), self.step_size)
        converged = bool(np.abs(gradient).max(initial=0.0) <= self.tolerance)
        return Solution(params, value, converged, self.steps), kept

    def __call__(self, function: ValueAndGradient, start: Floats) -> Solution:
        """Solve from `start` with zero moments."""
        found, _ = self.step(function, start, self.init(len(start)))
        value, gradient = function(found.params)
        converged = bool(np.abs(gradient).max(initial=0.0) <= self.tolerance)
        return Solution(found.params, value, converged, self.steps + 1)
