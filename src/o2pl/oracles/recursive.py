"""Recursive least squares: the minimum, and posterior draws.

With z a row of the design, P = (l2 I + Σ z zᵀ)⁻¹ and g = P z / (1 + zᵀ P z), an additional row gives

    θ ← θ + g (r - zᵀθ),      P ← P - g zᵀP,      d_s ← d_s + g (ξ_s - zᵀd_s),  ξ_s = ±1

The d_s solve the same problem for pure noise rewards: they are draws from N(0, P), so θ + √noise d_s is a draw from the
posterior of θ. Each row costs O(D²); no row is processed twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl.compiled import compiled
from o2pl.objectives.pessimistic import PolicyValue
from o2pl.objectives.squares import SquaresLog
from o2pl.policies.curve import Curve
from o2pl.protocols import Floats, Solution, State
from o2pl.storage import storable

_PRIOR_ROWS, _PRIOR_NOISE = 5.0, 0.05  # weight (in rows) and value of the prior noise variance
_STRETCH = 2**12  # rows per block of the design matrix
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # of splitmix64


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
            state = _begun(policy, features.shape[1], log.l2, first_row)
        kept = {name: array.copy() for name, array in state.items()}
        begin = int(kept["rows"][0])
        for start in range(begin, n, _STRETCH):
            rows = slice(start, min(start + _STRETCH, n))
            learn_rows(
                policy.design(features[rows], log.actions[rows]), log.rewards[rows],
                np.empty(0) if log.weights is None else log.weights[rows], start, kept["covariance"], kept["centre"],
                kept["deviations"], kept["noise"],
            )  # fmt: skip
        kept["rows"][0] = n
        noise = float(kept["noise"][0] / kept["noise"][1])
        return Solution(policy.join(kept["centre"], kept["deviations"], noise), noise / 2, True, n - begin), kept


def _begun(policy: Curve, n_features: int, l2: float, first_row: Floats) -> State:
    """Return the state before any row; `first_row` identifies the rows that were learned from."""
    terms = len(policy.terms(n_features)[0])
    deviations = np.empty((policy.draws, terms))
    prior_draws(deviations)
    return {
        "first_row": first_row,
        "rows": np.zeros(1),
        "covariance": np.eye(terms) / l2,  # lower triangle: P is symmetric
        "centre": np.zeros(terms),
        "deviations": deviations / np.sqrt(l2),
        "noise": np.array([_PRIOR_ROWS * _PRIOR_NOISE, _PRIOR_ROWS]),
    }


@compiled
def sign(row: int, draw: int) -> float:
    """Return a pseudo-random sign ±1 of a row and a draw; always the same for the same row."""
    x = (np.uint64(row) * np.uint64(4096) + np.uint64(draw) + np.uint64(1)) * _MIX[0]
    x = (x ^ (x >> np.uint64(30))) * _MIX[1]
    x = (x ^ (x >> np.uint64(27))) * _MIX[2]
    return 1.0 if (x >> np.uint64(33)) & np.uint64(1) else -1.0


@compiled
def prior_draws(out: Floats) -> None:
    """Fill the prior draws, [S, D]."""
    for s in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[s, i] = sign(2**40 + i, s)


@compiled
def learn_rows(
    Z: Floats, targets: Floats, weights: Floats, first: int, P: Floats, theta: Floats, deviations: Floats, noise: Floats
) -> None:
    """Update in place. Z [m, D]; weights [m], or empty; first: number of the first row; noise: Σ squares, rows"""
    D, S = len(theta), len(deviations)
    v = np.empty(D)
    for r in range(len(Z)):
        weigh = weights[r] if len(weights) else 1.0
        z, root = Z[r], np.sqrt(weigh)
        for i in range(D):
            v[i] = 0.0
        for i in range(D):  # P is symmetric: only the lower triangle is updated
            total, own, x = 0.0, P[i], z[i]
            for j in range(i):
                total += own[j] * z[j]
                v[j] += own[j] * x
            v[i] += total + own[i] * x
        size, off = 1.0, targets[r]
        for i in range(D):
            size += weigh * z[i] * v[i]
            off -= z[i] * theta[i]
        step = weigh / size
        for i in range(D):
            g, own = step * v[i], P[i]
            for j in range(i + 1):
                own[j] -= g * v[j]
            theta[i] += g * off
        for s in range(S):
            own, gap = deviations[s], sign(first + r, s) / root if weigh > 0 else 0.0
            for i in range(D):
                gap -= z[i] * own[i]
            for i in range(D):
                own[i] += step * v[i] * gap
        noise[0] += weigh * off * off / size
        noise[1] += weigh
