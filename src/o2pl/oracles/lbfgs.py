"""L-BFGS, as SciPy has it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl.protocols import Floats, Solution, ValueAndGradient
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class LBFGS:
    """Stops when every entry of the gradient is below `tolerance`, or after `iterations`."""

    iterations: int = 200
    tolerance: float = 1e-6
    memory: int = 10

    def __call__(self, function: ValueAndGradient, start: Floats) -> Solution:
        from scipy.optimize import minimize  # here: scipy would double the time `import o2pl` takes

        options = {"maxiter": self.iterations, "gtol": self.tolerance, "ftol": 0.0, "maxcor": self.memory}
        found = minimize(function, start, jac=True, method="L-BFGS-B", options=options)
        # SciPy calls a line search that finds no lower point a failure; on a kink that is where the minimum lies.
        converged = bool(found.success) or bool(np.abs(found.jac).max(initial=0.0) <= self.tolerance)
        return Solution(np.asarray(found.x), float(found.fun), converged, int(found.nfev))
