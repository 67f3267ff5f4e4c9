"""The outcome likelihood in `LinearValue`, for a linear softmax.

With u = exp(-z) the loss of a reward is log(1 + u) - (1 - r) log u, m = 1/(1 + u): rewards of 0 and 1 need a product of
1 + u or of 1 + 1/u, whose logarithm is taken only occasionally. The rest vectorises.
"""

from __future__ import annotations

import math

import numpy as np

from o2pl.compiled import compiled, compiled_for_threads, compiled_within
from o2pl.compiled.comparing import larger, smaller
from o2pl.compiled.exponential import exp32
from o2pl.kernels.linear import Features, LinearValue, block_bounds
from o2pl.objectives.outcome import OutcomeLog
from o2pl.protocols import Floats, Ints

_STEEP = np.float32(60)  # e^60 K² is finite in single precision; beyond it, the loss is |z|
_LARGE = 1e200  # a product of factors up to e^60 K² does not overflow before this check


def outcome_value(log: OutcomeLog, features: Features, width: int, n_actions: int) -> LinearValue:
    """Return `PolicyValue` of `Softmax` with the outcome objective."""
    actions, rewards = log.actions.astype(np.int32), log.rewards.astype(np.float32)
    weights = np.empty(0, np.float32) if log.weights is None else np.asarray(log.weights, np.float32)
    level_l2 = log.level_l2 if log.competing else -1.0

    def partial(scores: Floats, rows: slice, params: Floats, cotangents: Floats, sums: Floats) -> None:
        weigh = weights[rows] if len(weights) else weights
        competing_partial(scores, actions[rows], rewards[rows], weigh, float(params[-1]), cotangents, sums)

    def combine(params: Floats, sums: Floats, gradients: Floats) -> tuple[float, Floats]:
        gradient = np.empty(len(params))
        return outcome_combine(params, sums, gradients, log.size, log.l2, level_l2, gradient), gradient

    bounds, shape = block_bounds(len(actions), width), (n_actions, width)
    if log.competing:
        return LinearValue(bounds, features, partial, shape, combine, parts=1, sums=2)
    return IndependentValue(bounds, features, (actions, rewards, weights), shape, combine, parts=1, sums=2)


class IndependentValue(LinearValue):
    """Independent actions: a row belongs to its action's model only; other scores are not needed."""

    def _block(
        self, X: Floats, rows: slice, params: Floats, cotangents: Floats, sums: Floats, gradients: Floats
    ) -> None:
        actions, rewards, weights = self._partial
        weigh = weights[rows] if len(weights) else weights
        independent_rows(X, actions[rows], rewards[rows], weigh, float(params[-1]), self._W, sums, gradients)


@compiled_within
def _power(exponent: float) -> float:
    """Return e^exponent, with the exponent limited to `_STEEP`."""
    return exp32(smaller(larger(exponent, -_STEEP), _STEEP))  # type: ignore[no-any-return]  # a single-precision number


@compiled_within
def _losses(exponents: Floats, u: Floats, rewards: Floats, weights: Floats) -> float:
    """Return Σ weight [log(1 + u) - (1 - r) log u]. u [n] is limited by `_STEEP`, exponents [n] are not."""
    loss, product = 0.0, 1.0
    for r in range(len(u)):
        once = len(weights) == 0 and abs(exponents[r]) < _STEEP
        if once and rewards[r] == 1:
            product *= 1.0 + u[r]
        elif once and rewards[r] == 0:
            product *= 1.0 + 1.0 / u[r]
        else:
            beyond = exponents[r] - smaller(larger(exponents[r], -_STEEP), _STEEP)
            own = math.log(1.0 + u[r]) + larger(beyond, np.float32(0))
            if rewards[r] < 1:
                own -= (1 - rewards[r]) * (math.log(u[r]) + beyond)
            loss += own * (weights[r] if len(weights) else 1.0)
        if product > _LARGE:
            loss += math.log(product)
            product = 1.0
    return loss + math.log(product)


@compiled_for_threads
def competing_partial(
    P: Floats, actions: Ints, rewards: Floats, weights: Floats, tau: float, D: Floats, sums: Floats
) -> None:
    """Compute cotangents D [K, n] from scores P [K, n], which are overwritten; loops run over the rows.

    weights [n], or empty: equal weights.
    """
    K, n = P.shape
    room = np.empty((5, n), np.float32)
    own, top, total, exponents, u = room[0], room[1], room[2], room[3], room[4]
    for r in range(n):
        own[r], top[r], total[r] = 0, -1e30, 0
    for k in range(K):
        for r in range(n):
            own[r] += P[k, r] if actions[r] == k else np.float32(0)
            top[r] = larger(top[r], P[k, r] if actions[r] != k else np.float32(-1e30))
    for k in range(K):
        for r in range(n):
            power = exp32(smaller(P[k, r] - top[r], np.float32(0)))
            P[k, r] = power if actions[r] != k else np.float32(0)
            total[r] += P[k, r]
    if K == 1:  # no other actions: their sum is that of one with score 0
        for r in range(n):
            top[r], total[r] = 0, 1
    level = np.float32(tau)
    for r in range(n):
        exponents[r] = top[r] + level - own[r]
        u[r] = total[r] * _power(exponents[r])
    for r in range(n):  # own: now c = m - r
        own[r] = np.float32(1) / (np.float32(1) + u[r]) - rewards[r]
    for r in range(len(weights)):
        own[r] *= weights[r]
    pulled = 0.0
    for r in range(n):
        pulled += own[r]
        top[r] = -own[r] / total[r]
    for k in range(K):
        for r in range(n):
            D[k, r] = own[r] if actions[r] == k else top[r] * P[k, r]
    sums[0] += _losses(exponents, u, rewards, weights)
    sums[1] += pulled


@compiled_for_threads
def independent_rows(
    X: Floats, actions: Ints, rewards: Floats, weights: Floats, tau: float, W: Floats, sums: Floats, G: Floats
) -> None:
    """Compute sums and gradient G [≥ K, width] of rows X [n, width]; weights as above."""
    n, width = X.shape
    room = np.empty((2, n), np.float32)
    exponents, u, level, pulled = room[0], room[1], np.float32(tau), 0.0
    for k in range(len(G)):
        for i in range(width):
            G[k, i] = 0
    for r in range(n):
        x, w, g, score = X[r], W[actions[r]], G[actions[r]], np.float32(0)
        for i in range(width):
            score += w[i] * x[i]
        exponents[r] = -(score + level)
        u[r] = _power(exponents[r])
        c = np.float32(1) / (np.float32(1) + u[r]) - rewards[r]
        if len(weights):
            c *= weights[r]
        pulled += c
        for i in range(width):
            g[i] += c * x[i]
    sums[0] += _losses(exponents, u, rewards, weights)
    sums[1] += pulled


@compiled
def outcome_combine(
    params: Floats, sums: Floats, gradients: Floats, size: float, l2: float, level_l2: float, gradient: Floats
) -> float:
    """Apply `OutcomeLog.combine` to the sums of all panels; level_l2 < 0: τ is fixed. gradients [panels, ≥ K width]"""
    shrink, squares, last = l2 / size, 0.0, len(params) - 1
    for i in range(last):
        total = 0.0
        for panel in range(len(gradients)):
            total += gradients[panel, i]
        gradient[i] = total / size + shrink * params[i]
        squares += params[i] * params[i]
    loss, pulled = 0.0, 0.0
    for panel in range(len(sums)):
        loss += sums[panel, 0]
        pulled += sums[panel, 1]
    value, tau = loss / size + 0.5 * shrink * squares, params[last]
    gradient[last] = 0
    if level_l2 >= 0:
        value += 0.5 * level_l2 * tau * tau / size
        gradient[last] = (level_l2 * tau - pulled) / size
    return value
