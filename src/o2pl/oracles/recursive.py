"""Recursive least squares: the minimum, and posterior draws.

With z a row of the design, P = (l2 I + Σ z zᵀ)⁻¹ and g = P z / (1 + zᵀ P z), an additional row gives

    θ ← θ + g (r - zᵀθ),      P ← P - g zᵀP,      d_s ← d_s + g (ξ_s - zᵀd_s),  ξ_s = ±1

The d_s solve the same problem for pure noise rewards: they are draws from N(0, P), so θ + √noise d_s is a draw from the
posterior of θ. Each row costs O(D²); no row is processed twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl import _core
from o2pl.objectives.pessimistic import PolicyValue
from o2pl.objectives.squares import SquaresLog
from o2pl.policies.curve import Curve
from o2pl.protocols import Floats, Solution, State
from o2pl.storage import storable

_PRIOR_ROWS, _PRIOR_NOISE = 5.0, 0.05  # weight (in rows) and value of the prior noise variance
_STRETCH = 2**12  # rows per block of the design matrix
_PRIOR = 2**40  # number of the first sign of the prior draws: beyond any row


@storable
@dataclass(frozen=True)
class Recursive:
    """Oracle for `Curve` and `LeastSquares`. Continues from the rows it knows; restarts if they have changed."""

    plain = True

    def init(self, n_params: int) -> State:
        return {}

    def step(
        self, function: PolicyValue, params: Floats, state: State, negligible: float = 0.0
    ) -> tuple[Solution, State]:
        log, policy, features = function.log, function.policy, function.features
        assert isinstance(log, SquaresLog)
        assert isinstance(policy, Curve)
        n, first_row = len(log.actions), np.append(features[0], (log.actions[0], log.rewards[0]))
        known = state and np.array_equal(state["first_row"], first_row) and state["rows"][0] <= n
        if not known or log.weights is not None:  # weights change with every row
            state = unlearned_recursive_state(policy, features.shape[1], log.l2, first_row)
        kept = {name: array.copy() for name, array in state.items()}
        begin = int(kept["rows"][0])
        for start in range(begin, n, _STRETCH):
            rows = slice(start, min(start + _STRETCH, n))
            _core.learn_rows(
                policy.design(features[rows], log.actions[rows]), log.rewards[rows],
                np.empty(0) if log.weights is None else log.weights[rows], start, kept["covariance"], kept["centre"],
                kept["deviations"], kept["noise"],
            )  # fmt: skip
        kept["rows"][0] = n
        noise = float(kept["noise"][0] / kept["noise"][1])
        return Solution(policy.join(kept["centre"], kept["deviations"], noise), noise / 2, True, n - begin), kept


def unlearned_recursive_state(policy: Curve, n_features: int, l2: float, first_row: Floats) -> State:
    """Return the state before any row; `first_row` identifies the rows that were learned from."""
    terms = len(policy.terms(n_features)[0])
    return {
        "first_row": first_row,
        "rows": np.zeros(1),
        "covariance": np.eye(terms) / l2,  # lower triangle: P is symmetric
        "centre": np.zeros(terms),
        "deviations": recursive_prior_draws(policy.draws, terms) / np.sqrt(l2),
        "noise": np.array([_PRIOR_ROWS * _PRIOR_NOISE, _PRIOR_ROWS]),
    }


def recursive_prior_draws(draws: int, terms: int) -> Floats:
    """Return the prior draws: signs, the same for each number of terms. [S, D]"""
    return np.ascontiguousarray(_core.signs(_PRIOR, terms, draws).T)
