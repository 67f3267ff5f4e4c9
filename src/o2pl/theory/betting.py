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

import numpy as np
from numpy.typing import NDArray

from o2pl import _core
from o2pl.protocols import Floats

# Bets 2^8, …, 2^-20 for means in [0, 1]; at n rows of standard deviation σ the best is near √(2 log(1/δ) / n) / σ. From
# 2 to 2^-8, which serves 30 to a million rows, the shares are nearly even, so that widths are within 15 % of those of a
# sequence that is tuned to the number of rows; outside they fall steeply.
_EXPONENTS = np.arange(8.0, -21.0, -1.0)
_HIGH, _LOW = 1.0, -8.0
_INSIDE = (1 + _HIGH - np.clip(_EXPONENTS, _LOW, _HIGH)) ** -0.15
_SHARES = _INSIDE * (1 + np.abs(_EXPONENTS - np.clip(_EXPONENTS, _LOW, _HIGH))) ** -2.5
BETS = 2.0**_EXPONENTS
LOG_SHARES = np.log(_SHARES / _SHARES.sum())

LARGEST = 1e15  # larger values are clipped: this lowers the bound, and no product of 16 factors overflows


def betting_lower(values: Floats, delta: float, common: bool = True) -> Floats:
    """Return lower bounds after each row for the mean of values ≥ 0, [n]; anytime-valid with probability ≥ 1 - δ.

    For a common mean the capital is looked at after each of the first 1,024 rows, and later whenever the rows have
    grown by 1/512 or less. If means differ (`common=False`), after each row.
    """
    return _core.mixture_lower(_doubles_for_betting(values), math.log(1 / delta), common, BETS, LOG_SHARES)


def bet_sums(values: Floats) -> Floats:
    """Return A_k = Σ log(1 + κ_k y) of values y ≥ 0, [29], for `betting_lower_from_sums`."""
    return _core.bet_sums(_doubles_for_betting(values), BETS)


def betting_lower_from_sums(sums: Floats, rows: float, delta: float) -> float:
    """Return the last bound of `betting_lower(values, delta, common=False)` from the sums; anytime-valid."""
    if rows <= 0:
        return 0.0
    return _core.lower_root(LOG_SHARES + sums, rows, math.log(1 / delta), False, BETS)


def _doubles_for_betting(values: Floats) -> NDArray[np.float64]:
    return np.ascontiguousarray(values, np.float64)
