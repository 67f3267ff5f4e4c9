"""L-BFGS. A solve that goes on from another keeps what is known of the curvature; one that stands alone is SciPy's.

A learner that solves again after every few rounds has most of the work done already: with the curvature kept, a few
iterations are enough. SciPy's forgets between calls and costs about 40 µs for each evaluation, more than the objective
of a short log.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl.oracles.quasi_newton import descend, no_pairs
from o2pl.protocols import Floats, Solution, State, ValueAndGradient
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class LBFGS:
    """Stops when every entry of the gradient is below `tolerance`, or after `iterations`."""

    iterations: int = 200
    tolerance: float = 1e-6
    memory: int = 10
    plain = False

    def init(self, n_params: int) -> State:
        return no_pairs(self.memory, n_params)

    def step(
        self, function: ValueAndGradient, params: Floats, state: State, negligible: float = 0.0
    ) -> tuple[Solution, State]:
        """From params, with the curvature that earlier steps have left."""
        pairs = no_pairs(self.memory, len(params))
        if state and len(state["inner"]) == self.memory:  # of parameters that are new nothing is known
            known = state["steps"].shape[1]
            pairs["steps"][:, :known], pairs["changes"][:, :known] = state["steps"], state["changes"]
            pairs["inner"][:], pairs["at"][:] = state["inner"], state["at"]
        return descend(function, params, pairs, self.iterations, self.tolerance, negligible), pairs

    def __call__(self, function: ValueAndGradient, start: Floats, negligible: float = 0.0) -> Solution:
        """From scratch; stops too when a step brings no more than `negligible`."""
        from scipy.optimize import minimize  # here: scipy would double the time `import o2pl` takes

        options = {"maxiter": self.iterations, "gtol": self.tolerance, "ftol": negligible, "maxcor": self.memory}
        found = minimize(function, start, jac=True, method="L-BFGS-B", options=options)
        # SciPy calls a line search that finds no lower point a failure; on a kink that is where the minimum lies.
        converged = bool(found.success) or bool(np.abs(found.jac).max(initial=0.0) <= self.tolerance)
        return Solution(np.asarray(found.x), float(found.fun), converged, int(found.nfev))


@storable
@dataclass(frozen=True)
class Alone:
    """Solves that keep nothing. SciPy's line search is the more careful one where weights may vanish far from a log."""

    oracle: LBFGS
    plain = False

    def init(self, n_params: int) -> State:
        return {}

    def step(
        self, function: ValueAndGradient, params: Floats, state: State, negligible: float = 0.0
    ) -> tuple[Solution, State]:
        return self.oracle(function, params, negligible), {}
