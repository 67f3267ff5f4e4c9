"""Majorise-minimise for the variance-penalised objective, as suggested in the paper's conclusion.

Φ is concave in the variance v = σ̂², so its tangent at the current policy is an upper bound: R̂ + Φ(v_k) + Φ'(v_k)(v -
v_k) touches the objective there. Each round minimises that smooth bound, so the objective never increases.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from o2pl.objectives.pessimistic import PolicyValue
from o2pl.oracles.lbfgs import LBFGS
from o2pl.protocols import Floats, Solution, State
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class MajoriseMinimise:
    """Rounds of `inner` on the bound; stops when a round gains less than `tolerance`."""

    rounds: int = 20
    tolerance: float = 1e-8
    inner: LBFGS = field(default_factory=LBFGS)
    plain = True  # it needs the function's majorant

    def init(self, n_params: int) -> State:
        return {}

    def step(
        self, function: PolicyValue, params: Floats, state: State, negligible: float = 0.0
    ) -> tuple[Solution, State]:
        return self(function, params), state

    def __call__(self, function: PolicyValue, start: Floats) -> Solution:
        params, value, evaluations = start, function(start)[0], 1
        for _ in range(self.rounds):
            found = self.inner(function.majorant(params), params)
            lower = function(found.params)[0]
            evaluations += found.evaluations + 2
            if lower > value - self.tolerance:
                return Solution(params, value, True, evaluations)
            params, value = found.params, lower
        return Solution(params, value, False, evaluations)
