"""The last bound of a betting sequence and the row at which it passed a level, without the bounds in between.

The last bound of `betting_lower` for a common mean is the largest root of log W_t(m) = log 1/δ over all looks t. Given
some m, a look matters only if W_t(m) > 1/δ. So the sums A_k of all looks are kept, the root of the last look is found
first, and all other looks are compared with the best root so far. Most are far below it, which a bound shows without
any logarithm or exponential: log W_t(m) ≤ log K + max_k (log π_k + A_k - t log(1 + κ_k m)), where A_k = log(2^e z) with
1 ≤ z < 2, and log z ≤ (z - 1) log 2 + 0.06.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from o2pl import _core
from o2pl.protocols import Floats
from o2pl.theory.betting import BETS, LOG_SHARES

_LANES = 32  # of the compiled sums: the bets, and bets of nothing


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
        looks = _core.count_looks(len(shares))
        self.shares = np.ascontiguousarray(shares, np.float64)
        self._sums = np.empty((looks, 2, _LANES))  # exponents e and rests z of exp(A_k) = 2^e z at the looks
        self._rows = np.empty(looks, np.int64)

    def end(self, weights: Floats, against: Floats, scale: float, delta: float, level: float = math.inf) -> End:
        """Return the last of `betting_lower(y, delta)`, and the first row whose bound is above `level`."""
        if not len(weights) == len(against) == len(self.shares):
            raise ValueError(f"found {len(weights)} and {len(against)} weights, expected {len(self.shares)}")
        columns = np.asarray(weights, np.float64), np.asarray(against, np.float64), self.shares
        bound, passed = _core.betting_end(
            *columns, scale, math.log(1 / delta), level, BETS, LOG_SHARES, self._sums, self._rows
        )
        return End(bound, None if passed < 0 else passed - 1)
