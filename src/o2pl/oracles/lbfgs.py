"""L-BFGS. Repeated solves keep the curvature of the previous one; single solves start from nothing, more carefully.

A learner that solves again every few rounds has done most of the work already: with stored curvature, a few iterations
are enough. A single solve needs many, in double precision, with a line search that meets the strong Wolfe conditions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from o2pl import _core
from o2pl.oracles.quasi_newton import descend_quasi_newton, no_quasi_newton_pairs
from o2pl.protocols import Floats, Solution, State, ValueAndGradient
from o2pl.storage import storable
from o2pl.threads import one_blas_thread


@storable
@dataclass(frozen=True)
class LBFGS:
    """Stops when every entry of the gradient is below `tolerance`, or after `iterations`."""

    iterations: int = 200
    tolerance: float = 1e-6
    memory: int = 10
    plain = False

    def init(self, n_params: int) -> State:
        return no_quasi_newton_pairs(self.memory, n_params)

    def step(
        self, function: ValueAndGradient, params: Floats, state: State, negligible: float = 0.0
    ) -> tuple[Solution, State]:
        """Minimise from params, with the stored curvature."""
        if state and state["steps"].shape == (self.memory, len(params)):
            pairs = {name: array.copy() for name, array in state.items()}
            return descend_quasi_newton(function, params, pairs, self.iterations, self.tolerance, negligible), pairs
        pairs = no_quasi_newton_pairs(self.memory, len(params))
        if state and len(state["inner"]) == self.memory:  # no curvature is known for new parameters
            known = state["steps"].shape[1]
            pairs["steps"][:, :known], pairs["changes"][:, :known] = state["steps"], state["changes"]
            pairs["inner"][:], pairs["at"][:] = state["inner"], state["at"]
        return descend_quasi_newton(function, params, pairs, self.iterations, self.tolerance, negligible), pairs

    def __call__(self, function: ValueAndGradient, start: Floats, negligible: float = 0.0) -> Solution:
        """Solve from scratch; also stops when a step gains at most `negligible`."""
        settings = self.iterations, self.memory, self.tolerance, negligible
        with one_blas_thread(math.inf):  # sums do not depend on the number of threads
            return Solution(*_core.minimise(function, start, *settings))


@storable
@dataclass(frozen=True)
class Alone:
    """Solves without stored curvature: the line search is more careful where weights may vanish."""

    oracle: LBFGS
    plain = False

    def init(self, n_params: int) -> State:
        return {}

    def step(
        self, function: ValueAndGradient, params: Floats, state: State, negligible: float = 0.0
    ) -> tuple[Solution, State]:
        return self.oracle(function, params, negligible), {}
