"""Betting: a lower confidence sequence for the mean of non-negative values.

For values y ≥ 0 with conditional mean m and any κ ≥ 0, E (1 + κy)/(1 + κm) = 1. (It is the bet 1 + λ(y - m) with
λ = κ/(1 + κm), so the capital stays positive.) The capital of the bets κ_k, with fractions π_k of the stake,

    W_t(m) = Σ_k π_k exp(A_k - t log(1 + κ_k m)),    A_k = Σ_{s≤t} log(1 + κ_k y_s),

is a martingale under the true m, so W_t(m) < 1/δ at all t with probability ≥ 1 - δ (Ville), and every m with
W_t(m) ≥ 1/δ is rejected. The sums A_k do not depend on m: one pass serves all m. log W is convex and decreasing in m,
so Newton's iterates approach its root from the left, the conservative side. No upper bound of y is needed.

If the conditional means m_s differ, Σ log(1 + κ m_s) ≤ t log(1 + κ m̄_t) (Jensen): the bound is then for their running
average m̄_t. If they are below m, the bound for m still holds.

The sums A_k of two parts of a log add up: `bet_sums` keeps 29 numbers instead of many rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from o2pl.compiled import compiled
from o2pl.protocols import Floats

# Bets 2^8, …, 2^-20 for means in [0, 1]; at n rows of standard deviation σ the best is near √(2 log(1/δ) / n) / σ. The
# shares are largest at κ = 2, which serves tens to hundreds of rows, and fall slowly to both sides.
_EXPONENTS = np.arange(8.0, -21.0, -1.0)
_SHARES = (1 + np.abs(_EXPONENTS - 1)) ** np.where(_EXPONENTS > 1, -2.0, -1.5)
BETS = 2.0**_EXPONENTS
LOG_SHARES = np.log(_SHARES / _SHARES.sum())

LARGEST = 1e15  # larger values are clipped: this lowers the bound, and no product of 16 factors overflows
BLOCK = 16
_EVERY_ROW = 512  # rows; later the capital is checked whenever the rows have grown by 1/512


def betting_lower(values: Floats, delta: float, common: bool = True) -> Floats:
    """Return lower bounds after each row for the mean of values ≥ 0, [n]; anytime-valid with probability ≥ 1 - δ."""
    return np.asarray(_mixture_lower(values, math.log(1 / delta), common, BETS, LOG_SHARES))


def bet_sums(values: Floats) -> Floats:
    """Return A_k = Σ log(1 + κ_k y) of values y ≥ 0, [29], for `lower_from_sums`."""
    return np.asarray(_sums(values, BETS))


def lower_from_sums(sums: Floats, rows: float, delta: float) -> float:
    """Return the last bound of `betting_lower(values, delta, common=False)` from the sums; anytime-valid."""
    if rows <= 0:
        return 0.0
    return float(lower_root(LOG_SHARES + sums, rows, 0.0, math.log(1 / delta), False, BETS, np.empty(len(BETS))))


@compiled
def look_every(t: int, stride: int) -> int:
    """Return the rows between looks at the capital after t rows; `stride`: the rows between looks so far."""
    return 2 * stride if t >= 2 * _EVERY_ROW * stride else stride


@compiled
def _sums(values: Floats, bets: Floats) -> Any:
    K = len(bets)
    sums, product = np.zeros(K), np.ones(K)
    for s in range(len(values)):
        y = min(values[s], LARGEST)
        for k in range(K):
            product[k] *= 1.0 + bets[k] * y
        if (s + 1) % BLOCK == 0 or s + 1 == len(values):
            for k in range(K):
                sums[k] += math.log(product[k])
                product[k] = 1.0
    return sums


@compiled
def lower_root(
    logs: Floats, t: float, m: float, threshold: float, common: bool, bets: Floats, exponents: Floats
) -> float:
    """Return the root of log W_t = threshold, by Newton's method from m. For a common mean it is at least m."""
    K = len(bets)
    for _ in range(60):
        largest = -np.inf
        for k in range(K):
            exponents[k] = logs[k] - t * math.log1p(bets[k] * m)
            largest = max(largest, exponents[k])
        capital, slope = 0.0, 0.0
        for k in range(K):
            part = math.exp(exponents[k] - largest)
            capital += part
            slope += part * t * bets[k] / (1.0 + bets[k] * m)
        above = largest + math.log(capital) - threshold
        if abs(above) <= 1e-9 or (above < 0.0 and (common or m == 0.0)):
            break
        m = max(0.0, m + above * capital / slope)
    return m


@compiled
def _mixture_lower(values: Floats, threshold: float, common: bool, bets: Floats, log_shares: Floats) -> Any:
    """Return the root of log W_t(m) = threshold after each row; for a common mean, the largest so far."""
    n, K = len(values), len(bets)
    logs, product, exponents = log_shares.copy(), np.ones(K), np.empty(K)  # log π_k + A_k, in two parts
    bounds = np.empty(n)
    m = 0.0
    stride = 1
    for s in range(n):
        y = min(values[s], LARGEST)
        t = s + 1
        for k in range(K):
            product[k] *= 1.0 + bets[k] * y
        stride = look_every(t, stride)
        look = not common or t % stride == 0
        if look or t % BLOCK == 0:
            for k in range(K):
                logs[k] += math.log(product[k])
                product[k] = 1.0
        if look:
            m = lower_root(logs, float(t), m, threshold, common, bets, exponents)
        bounds[s] = m
    return bounds
