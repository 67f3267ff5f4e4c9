"""The last bound of a betting sequence and the row at which it passed a level, without the bounds in between.

The last bound of `betting_lower` for a common mean is the largest root of log W_t(m) = log 1/δ over all looks t. Given
some m, a look matters only if W_t(m) > 1/δ. So the sums A_k of all looks are kept, the root of the last look is found
first, and all other looks are compared with the best root so far. Most are far below it, which a bound shows without
any logarithm or exponential: log W_t(m) ≤ log K + max_k (log π_k + A_k - t log(1 + κ_k m)), where A_k = log(2^e z) with
1 ≤ z < 2, and log z ≤ (z - 1) log 2 + 0.06.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from o2pl.compiled import compiled
from o2pl.compiled.exponential import EXPONENT_OF_ONE, exp_any, log_any, split_exponent
from o2pl.protocols import Floats, Ints
from o2pl.theory.betting import BETS, BLOCK, LARGEST, LOG_SHARES, look_every, lower_root

_LN2 = math.log(2)
_CLOSE = 1e-9  # in log W: no root is refined further
_CHORD = 0.06  # log z - (z - 1) log 2 is between 0 and this for 1 ≤ z ≤ 2


class End(NamedTuple):
    bound: float  # the last lower bound
    passed: int | None  # the first row whose bound is above the level; None: the last bound is not


class BettingEnds:
    """Finds the ends of many sequences on the same rows, in the same memory.

    The values of a sequence are y = scale (w u + w' (1 - u)), for weights w and w' of two policies and rewards u in
    [0, 1]. So w = weights and w' = 0 give the lower bound of a policy's value, w = 0 and w' = weights that of 1 minus
    the value, and two policies with scale 1/2 that of (1 + their difference)/2.
    """

    def __init__(self, shares: Floats) -> None:
        looks = _count_looks(len(shares))
        self.shares = shares
        self.sums = np.empty((looks, 2, len(BETS)))  # exponents e and rests z of exp(A_k) = 2^e z at the looks
        self.rows = np.empty(looks, np.int64)

    def end(self, weights: Floats, against: Floats, scale: float, delta: float, level: float = math.inf) -> End:
        """Return the last of `betting_lower(y, delta)`, and the first row whose bound is above `level`."""
        if not len(weights) == len(against) == len(self.shares):
            raise ValueError(f"found {len(weights)} and {len(against)} weights, expected {len(self.shares)}")
        _sums_at_looks(weights, against, self.shares, scale, BETS, self.sums, self.rows)
        bound, passed = _largest_root(self.sums, self.rows, math.log(1 / delta), BETS, LOG_SHARES, level)
        return End(bound, None if passed < 0 else passed - 1)


@compiled
def _count_looks(n: int) -> int:
    t, stride, found = 0, 1, 0
    while t + stride <= n:
        t += stride
        found += 1
        stride = look_every(t, stride)
    return found


@compiled
def _sums_at_looks(
    weights: Floats,
    against: Floats,
    shares: Floats,
    scale: float,
    bets: Floats,
    sums: Floats,
    rows: Ints,
) -> None:
    """Fill the exponents and rests of exp(A_k) at every look, [L, 2, K], and its rows, [L]."""
    K, y = len(bets), np.empty(BLOCK)
    rest, powers, pieces = np.ones(K), np.zeros(K, np.uint64), 0
    t, stride, found = 0, 1, 0
    while found < len(rows):
        some = min(stride, BLOCK)
        for i in range(some):
            u = shares[t + i]
            value = min(weights[t + i], LARGEST) * u + min(against[t + i], LARGEST) * (1.0 - u)
            y[i] = min(scale * value, LARGEST)
        if some == BLOCK:
            for k in range(K):
                product = rest[k]
                for i in range(BLOCK):
                    product *= 1.0 + bets[k] * y[i]
                rest[k] = product
        else:
            for i in range(some):
                for k in range(K):
                    rest[k] *= 1.0 + bets[k] * y[i]
        for k in range(K):
            power, rest[k] = split_exponent(rest[k])
            powers[k] += power
        pieces += 1
        t += some
        if t % stride == 0:
            for k in range(K):
                sums[found, 0, k] = np.int64(powers[k]) - EXPONENT_OF_ONE * pieces
                sums[found, 1, k] = rest[k]
            rows[found] = t
            found += 1
            stride = look_every(t, stride)


@compiled
def _largest_root(
    sums: Floats, rows: Ints, threshold: float, bets: Floats, log_shares: Floats, level: float
) -> tuple[float, int]:
    """Return the largest root over the looks, and the rows of the first look whose root is above `level`, or -1."""
    K, last, m, passed = len(bets), len(rows) - 1, 0.0, -1
    logs, exponents, at_m = np.empty(K), np.empty(K), np.empty(K)
    for look in range(last, -1, -1):
        if look < last and _above(sums[look], rows[look], at_m, threshold, log_shares, exponents) <= _CLOSE:
            continue
        for k in range(K):
            logs[k] = log_shares[k] + sums[look, 0, k] * _LN2 + log_any(sums[look, 1, k])
        m = lower_root(logs, float(rows[look]), m, threshold, True, bets, exponents)
        for k in range(K):
            at_m[k] = math.log1p(bets[k] * m)
    if m > level:
        for k in range(K):
            at_m[k] = math.log1p(bets[k] * level)
        for look in range(len(rows)):
            if _above(sums[look], rows[look], at_m, threshold, log_shares, exponents) > _CLOSE:
                passed = rows[look]
                break
    return m, passed


@compiled
def _above(sums: Floats, t: Any, at_m: Floats, threshold: float, log_shares: Floats, exponents: Floats) -> float:
    """Return log W_t(m) - threshold, or an upper bound of it that is negative. at_m: log(1 + κ_k m), [K]"""
    K, largest = len(at_m), -np.inf
    for k in range(K):
        exponents[k] = log_shares[k] + (sums[0, k] + sums[1, k] - 1.0) * _LN2 - t * at_m[k]
        largest = max(largest, exponents[k])
    bound = largest + _CHORD + math.log(K) - threshold
    if bound < 0.0:
        return bound
    capital = 0.0
    for k in range(K):
        more = log_any(sums[1, k]) - (sums[1, k] - 1.0) * _LN2
        capital += exp_any(exponents[k] + more - largest)
    return largest + math.log(capital) - threshold
