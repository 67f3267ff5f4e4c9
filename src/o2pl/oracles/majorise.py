"""Majorise-minimise for the variance-penalised objective, the direction the paper's conclusion names.

Φ is concave in the variance v = σ̂², so at the current policy its tangent lies above it: R̂ + Φ(v_k) + Φ'(v_k)(v - v_k)
is an upper bound of the objective that touches it there. Each round minimises that smooth bound: the objective never
rises.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from o2pl.objectives.penalty import Phi, Tangent
from o2pl.objectives.pessimistic import Pessimistic, policy_value
from o2pl.oracles.lbfgs import LBFGS
from o2pl.protocols import Floats, Oracle, Policy, Solution
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class MajoriseMinimise:
    """Rounds of `inner` on the bound; stops when a round gains less than `tolerance`."""

    rounds: int = 20
    tolerance: float = 1e-8
    inner: Oracle = field(default_factory=LBFGS)

    def __call__(
        self, policy: Policy, features: Any, objective: Pessimistic, penalty: Phi, start: Floats, l2: float = 0.0
    ) -> Solution:
        exact = policy_value(policy, features, objective.with_penalty(penalty), l2)
        params, value, evaluations = start, exact(start)[0], 1
        for _ in range(self.rounds):
            log_prob, _ = policy.forward(params, features, None if objective.control else objective.actions)
            touching = Tangent.of(penalty, objective.moments(log_prob).variance)
            found = self.inner(policy_value(policy, features, objective.with_penalty(touching), l2), params)
            lower = exact(found.params)[0]
            evaluations += found.evaluations + 2
            if lower > value - self.tolerance:
                return Solution(params, value, True, evaluations)
            params, value = found.params, lower
        return Solution(params, value, False, evaluations)
