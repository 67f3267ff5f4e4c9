"""Confidence intervals for a fixed number of independent rows. (Otherwise: `sequences`.)

An interval that cannot be computed is infinite, never NaN and never empty.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from o2pl import _core
from o2pl.errors import InvalidInput
from o2pl.protocols import Floats
from o2pl.special import ndtri
from o2pl.validation import check_number

Interval = tuple[float, float]
EVERYTHING = (-math.inf, math.inf)


class SampleMoments(NamedTuple):
    """The moments of a sample for normal and empirical Bernstein intervals."""

    n: int
    mean: float
    variance: float  # with n - 1; 0 for one row


def moments_for_interval(values: ArrayLike) -> SampleMoments:
    """Return the moments in one pass; values are shifted by the first, so that a large mean costs no precision."""
    column = finite_column_for_interval("values", values)
    first = column[0]
    total, squares = _core.shifted_sums(column, first)
    n = len(column)
    variance = max(0.0, (squares - total * total / n) / (n - 1)) if n > 1 else 0.0
    return SampleMoments(n, float(first + total / n), float(variance))


def normal_interval(values: ArrayLike, delta: float, one_more: float = 0.0) -> Interval:
    """Return mean ± z e with e² = s²/n + `one_more`²; see `one_more_row_for_interval`. Infinite if e is 0.

    Too short if few rows dominate: heavy weights.
    """
    return normal_interval_from_moments(moments_for_interval(values), delta, one_more)


def normal_interval_from_moments(moments: SampleMoments, delta: float, one_more: float = 0.0) -> Interval:
    """Return `normal_interval` from the moments of a sample."""
    check_interval_delta(delta)
    error = math.hypot(math.sqrt(moments.variance / moments.n), one_more)
    if moments.n < 2 or error == 0:
        return EVERYTHING
    reach = float(-ndtri(delta / 2)) * error
    return moments.mean - reach, moments.mean + reach


def one_more_row_for_interval(weights: Floats, surprises: Floats) -> float:
    """Return w̄ max|e| / n, w̄ = Σ w²/Σ |w|: what one more row with the largest surprise would add to mean(w e).

    w̄ is the weight of a row that the policy chooses. Where rewards are rare, the rows that the policy chooses may have
    none by chance: their variance is then nearly 0, and says nothing. With many such rows, one more hardly counts.
    """
    size, squares, least, most = sums_for_interval(weights, surprises, np.empty(0))
    return one_more_row_for_interval_from_sums(size, squares, max(most, -least), len(weights))


def one_more_row_for_interval_from_sums(size: float, squares: float, largest: float, rows: float) -> float:
    """Return `one_more_row_for_interval` from Σ |w|, Σ w², the largest surprise and the number of rows; 0"
    " without weights."""
    return squares / size * largest / rows if size else 0.0


def sums_for_interval(weights: Floats, rewards: Floats, modelled: Floats) -> tuple[float, float, float, float]:
    """Return Σ |w|, Σ w², and the smallest and largest r - m; without a model (empty), of r."""
    columns = (np.asarray(column, np.float64) for column in (weights, rewards, modelled))
    return _core.weighed(*columns)


def finite_column_for_interval(name: str, values: ArrayLike, largest: float = math.inf) -> NDArray[np.float64]:
    """Return values as float64 [n], n ≥ 1, clipped at `largest`; all must be finite."""
    try:
        column = np.ascontiguousarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name}: expected numbers ({error})") from None
    if np.ndim(values) != 1 or not len(column):
        raise InvalidInput(f"{name}: found shape {np.shape(values)}, expected at least one value, one per row")
    if largest < math.inf:
        column = np.minimum(column, largest)
    if not math.isfinite(_core.shifted_sums(column, 0.0)[0]):
        bad = np.flatnonzero(~np.isfinite(column))
        if bad.size:
            raise InvalidInput(f"{name}, row {bad[0]}: found {column[bad[0]]}, expected a finite number")
    return column


def bounded_column_for_interval(name: str, values: ArrayLike, lower: float, upper: float) -> Floats:
    """Return finite values in [lower, upper]; rounding errors up to 1e-9 of the range are clipped."""
    check_interval_range(lower, upper)
    column = finite_column_for_interval(name, values)
    slack = 1e-9 * (upper - lower)
    if column.min() < lower - slack or column.max() > upper + slack:
        row = int(np.argmax((column < lower - slack) | (column > upper + slack)))
        raise InvalidInput(f"{name}, row {row}: found {column[row]}, expected a number in [{lower:g}, {upper:g}]")
    return np.clip(column, lower, upper)


def check_interval_delta(delta: float) -> float:
    return check_number("delta", delta, 0.0, open_low=True, below=1.0)


def check_interval_range(lower: float, upper: float) -> None:
    check_number("lower", lower)
    if check_number("upper", upper) <= lower:
        raise InvalidInput(f"(lower, upper): found {(lower, upper)}, expected lower < upper")
