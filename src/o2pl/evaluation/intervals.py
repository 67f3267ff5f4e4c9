"""Confidence intervals for a fixed number of rows: looked at once, on independent rows. (Otherwise: `sequences`.)

Where an interval cannot be known it is infinite, never NaN and never empty.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from o2pl.compiled import compiled
from o2pl.errors import InvalidInput
from o2pl.protocols import Floats
from o2pl.validation import check_count, check_number

Interval = tuple[float, float]
EVERYTHING = (-math.inf, math.inf)


class SampleMoments(NamedTuple):
    """What the normal and the empirical Bernstein interval need of a sample."""

    n: int
    mean: float
    variance: float  # with n - 1; 0 for one row


def sample_moments(values: ArrayLike) -> SampleMoments:
    """In one pass, from values shifted by the first, so that a large mean costs no digits."""
    column = finite_column("values", values)
    first = column[0]
    total, squares = _shifted_sums(column, first)
    n = len(column)
    variance = max(0.0, (squares - total * total / n) / (n - 1)) if n > 1 else 0.0
    return SampleMoments(n, float(first + total / n), float(variance))


@compiled
def _shifted_sums(values: Floats, first: float) -> tuple[float, float]:
    total, squares = 0.0, 0.0
    for s in range(len(values)):
        shifted = values[s] - first
        total += shifted
        squares += shifted * shifted
    return total, squares


def normal_interval(values: ArrayLike, delta: float) -> Interval:
    """mean ± z s/√n. Too short where few rows carry the mean: rare rewards, heavy weights. No spread, no interval."""
    return normal_from_moments(sample_moments(values), delta)


def normal_from_moments(moments: SampleMoments, delta: float) -> Interval:
    """`normal_interval` of a sample of which the moments were kept."""
    from scipy.special import ndtri

    check_delta(delta)
    if moments.n < 2 or moments.variance == 0:
        return EVERYTHING
    reach = float(-ndtri(delta / 2)) * math.sqrt(moments.variance / moments.n)
    return moments.mean - reach, moments.mean + reach


def empirical_bernstein_interval(values: ArrayLike, delta: float, lower: float, upper: float) -> Interval:
    """Maurer and Pontil's bound on each side at δ/2, cut to [lower, upper]: never too short, for any n."""
    column = bounded_column("values", values, lower, upper)
    return empirical_bernstein_from_moments(sample_moments(column), delta, lower, upper)


def empirical_bernstein_from_moments(moments: SampleMoments, delta: float, lower: float, upper: float) -> Interval:
    """√(2 s² L / n) + 7 (upper - lower) L / (3 (n - 1)) about the mean, L = log(4/δ)."""
    check_delta(delta)
    check_range(lower, upper)
    if moments.n < 2:
        return float(lower), float(upper)
    log = math.log(4 / delta)
    reach = math.sqrt(2 * moments.variance * log / moments.n) + 7 * (upper - lower) * log / (3 * (moments.n - 1))
    return max(float(lower), moments.mean - reach), min(float(upper), moments.mean + reach)


def bootstrap_interval(
    values: ArrayLike,
    delta: float,
    weights: ArrayLike | None = None,
    *,
    generator: np.random.Generator | None = None,
    resamples: int = 2000,
    groups: int = 2000,
) -> Interval:
    """The studentised bootstrap of mean(values), or of Σ values / Σ weights with weights ≥ 0 (self-normalised).

    One pass over the rows adds up neighbours into at most `groups` sums, and whole groups are drawn again: the cost
    does not grow with n beyond that pass, and up to so many rows it is the ordinary bootstrap. Each resample's
    deviation is measured in its own standard error, so a skewed sample gets a skewed interval. A resample without
    spread could have been as far off as one likes: where more than δ/2 of them are, that end is infinite.
    """
    check_delta(delta)
    resamples, groups = check_count("resamples", resamples), check_count("groups", groups)
    column = finite_column("values", values)
    n, count = len(column), min(len(column), groups)
    starts = np.arange(count) * n // count
    sums = np.add.reduceat(column, starts)  # [count]
    if weights is None:
        sizes = np.diff(starts, append=n).astype(np.float64)
    else:
        base = finite_column("weights", weights)
        if base.shape != column.shape or base.min() < 0 or not base.any():
            raise InvalidInput(f"weights: found {base.shape} values from {base.min():g}, expected {n} ≥ 0, not all 0")
        sizes = np.add.reduceat(base, starts)
    ratio = float(sums.sum() / sizes.sum())
    residuals = sums - ratio * sizes  # Σ = 0
    error = float(_ratio_error(residuals @ residuals, sizes.sum(), count))
    if count < 2 or error == 0:
        return EVERYTHING
    studentised = _resampled_deviations(residuals, sizes, resamples, generator or np.random.default_rng(0))
    rank = math.floor(delta / 2 * (resamples + 1))  # the rank-th smallest and largest of the resamples
    if rank < 1:
        raise InvalidInput(f"resamples: found {resamples}, expected at least {math.ceil(2 / delta)}, 2/delta")
    ordered = np.sort(studentised)
    return ratio - error * float(ordered[-rank]), ratio - error * float(ordered[rank - 1])


def _resampled_deviations(residuals: Floats, sizes: Floats, resamples: int, generator: np.random.Generator) -> Floats:
    """(R* - R) / error* of each resample; with residuals e = S - R W, R* - R = Σ e* / Σ W*. [resamples]"""
    count = len(residuals)
    sums = np.empty((resamples, 4))
    step = max(1, 1_000_000 // count)
    for start in range(0, resamples, step):
        drawn = generator.integers(count, size=(min(step, resamples - start), count), dtype=np.uint32)
        _resample_sums(residuals, sizes, drawn, sums[start : start + step])
    e, w, squares, scale = sums.T
    squares = np.where(squares <= 1e-12 * scale, 0.0, squares)  # rounding leaves this much of a resample without spread
    with np.errstate(divide="ignore", invalid="ignore"):
        deviations = np.where(e == 0, 0.0, e / w / _ratio_error(squares, w, count))
    return np.where(np.isnan(deviations), np.inf, deviations)  # no weight at all


@compiled
def _resample_sums(residuals: Floats, sizes: Floats, drawn: Any, sums: Floats) -> None:
    """For each row of draws Σ e*, Σ W*, Σ (e* - (R* - R) W*)², and the size of what was subtracted. [rows, 4]"""
    for b in range(len(drawn)):
        e, w, ee, ew, ww = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(drawn.shape[1]):
            residual, size = residuals[drawn[b, i]], sizes[drawn[b, i]]
            e += residual
            w += size
            ee += residual * residual
            ew += residual * size
            ww += size * size
        off = e / w
        sums[b, 0], sums[b, 1] = e, w
        sums[b, 2], sums[b, 3] = ee - 2.0 * off * ew + off * off * ww, ee + off * off * ww


def _ratio_error(squared_residuals: Any, total_size: Any, count: int) -> Any:
    """The standard error of a ratio of sums, by linearisation."""
    return np.sqrt(squared_residuals * count / max(count - 1, 1)) / total_size


def finite_column(name: str, values: ArrayLike, largest: float = math.inf) -> Floats:
    """Values as float64 [n], n ≥ 1, every one finite once those above `largest` are put down to it."""
    try:
        column = np.ascontiguousarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name}: expected numbers ({error})") from None
    if np.ndim(values) != 1 or not len(column):
        raise InvalidInput(f"{name}: found shape {np.shape(values)}, expected at least one value, one per row")
    if largest < math.inf:
        column = np.minimum(column, largest)
    if not math.isfinite(_shifted_sums(column, 0.0)[0]):
        bad = np.flatnonzero(~np.isfinite(column))
        if bad.size:
            raise InvalidInput(f"{name}, row {bad[0]}: found {column[bad[0]]}, expected a finite number")
    return column


def bounded_column(name: str, values: ArrayLike, lower: float, upper: float) -> Floats:
    """Finite values in [lower, upper]; what rounding puts outside, up to 1e-9 of the range, is put back."""
    check_range(lower, upper)
    column = finite_column(name, values)
    slack = 1e-9 * (upper - lower)
    if column.min() < lower - slack or column.max() > upper + slack:
        row = int(np.argmax((column < lower - slack) | (column > upper + slack)))
        raise InvalidInput(f"{name}, row {row}: found {column[row]}, expected a number in [{lower:g}, {upper:g}]")
    return np.clip(column, lower, upper)


def check_delta(delta: float) -> float:
    return check_number("delta", delta, 0.0, open_low=True, below=1.0)


def check_range(lower: float, upper: float) -> None:
    check_number("lower", lower)
    if check_number("upper", upper) <= lower:
        raise InvalidInput(f"(lower, upper): found {(lower, upper)}, expected lower < upper")
