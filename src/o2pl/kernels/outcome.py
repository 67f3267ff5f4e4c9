"""The outcome likelihood's part of `LinearValue`, for a linear softmax."""

from __future__ import annotations

import math

import numpy as np

from o2pl.compiled import compiled_for_threads
from o2pl.compiled.exponential import exp
from o2pl.kernels.linear import Features, LinearValue, block_bounds
from o2pl.objectives.outcome import OutcomeLog
from o2pl.protocols import Floats, Ints


def outcome_value(log: OutcomeLog, features: Features, width: int, n_actions: int) -> LinearValue:
    """`PolicyValue` of `Softmax`."""
    actions, rewards = log.actions.astype(np.int32), log.rewards.astype(np.float32)
    weights = np.empty(0) if log.weights is None else np.asarray(log.weights, np.float64)

    def partial(scores: Floats, rows: slice, params: Floats, cotangents: Floats, sums: Floats) -> None:
        tau, weigh = float(params[-1]), weights[rows] if len(weights) else weights
        outcome_partial(scores, actions[rows], rewards[rows], weigh, tau, log.competing, cotangents, sums)

    def combine(params: Floats, sums: Floats, gradients: Floats) -> tuple[float, Floats]:
        size = n_actions * width
        return log.combine(params, sums.sum(axis=0), [gradients[:, :size].sum(axis=0, dtype=np.float64)])

    bounds = block_bounds(len(actions), width)
    return LinearValue(bounds, features, partial, (n_actions, width), combine, parts=1, sums=2)


@compiled_for_threads
def outcome_partial(
    P: Floats, actions: Ints, rewards: Floats, weights: Floats, tau: float, competing: bool, D: Floats, sums: Floats
) -> None:
    """Scores P [K, n], which are written over, to cotangents D [K, n]; loops run along the rows.

    weights [n], or empty: all rows alike.
    """
    K, n = P.shape
    own, top, total = np.zeros(n, P.dtype), np.full(n, np.float32(-1e30)), np.zeros(n, P.dtype)
    c, scale = np.empty(n, P.dtype), np.zeros(n, P.dtype)
    for k in range(K):
        for r in range(n):
            own[r] += P[k, r] if actions[r] == k else np.float32(0)
    rivals, weighed = competing and K > 1, len(weights) > 0
    if rivals:
        for k in range(K):
            for r in range(n):
                top[r] = max(top[r], P[k, r] if actions[r] != k else np.float32(-1e30))
        for k in range(K):
            for r in range(n):
                power = exp(min(P[k, r] - top[r], np.float32(0)))
                P[k, r] = power if actions[r] != k else np.float32(0)
                total[r] += P[k, r]
    loss, pulled = 0.0, 0.0
    for r in range(n):
        z = np.float64(own[r]) + (-tau if competing else tau)
        if rivals:
            z -= np.float64(top[r]) + math.log(total[r])
        e, weight = math.exp(-abs(z)), weights[r] if weighed else 1.0
        loss += weight * (max(z, 0.0) + math.log1p(e) - rewards[r] * z)
        m = 1 / (1 + e) if z >= 0 else e / (1 + e)
        c[r] = weight * (m - rewards[r])
        pulled += c[r]
        scale[r] = -c[r] / total[r] if rivals else 0
    sums[0] += loss
    sums[1] += pulled
    for k in range(K):
        for r in range(n):
            D[k, r] = c[r] if actions[r] == k else (scale[r] * P[k, r] if rivals else np.float32(0))
