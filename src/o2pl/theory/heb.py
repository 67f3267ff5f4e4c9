"""The exponent β of the Hölderian error bound, Var(π*/π) ≲ (R(π) - R(π*))^β, estimated from policies near the best.

On log-log axes the bound is a line of slope β above all policies. We take the upper edge of the cloud (the largest
variance in each of a few bins of the excess risk) and fit its slope. β is in (0, 1]: if the variance decreases faster
than the excess risk (a slope above 1), the bound holds with β = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from o2pl.errors import InvalidInput
from o2pl.protocols import Floats
from o2pl.special import ndtri, student_quantile


@dataclass(frozen=True)
class ErrorBound:
    """The slope with its standard error and confidence interval."""

    slope: float
    error: float
    low: float
    high: float
    points: int  # number of points of the upper edge

    @property
    def beta(self) -> float:
        """The exponent of the bound: min(1, slope)."""
        return min(1.0, self.slope)


def error_bound(excess: ArrayLike, variance: ArrayLike, *, bins: int = 12, level: float = 0.95) -> ErrorBound:
    """Estimate β from exact pairs (excess risk, importance-weight variance) of policies, [J] each; zeros are dropped.

    The error is that of the regression: it measures how straight the edge is, and ignores noise in the pairs.
    """
    excess, variance = np.asarray(excess, np.float64), np.asarray(variance, np.float64)
    if excess.shape != variance.shape or excess.ndim != 1:
        raise InvalidInput(f"variance: found shape {variance.shape}, expected that of excess, {excess.shape}, one-dim.")
    x, y = _heb_upper_edge(excess, variance, bins)
    slope, error = _heb_slope(x, y)
    reach = error * student_quantile((1 + level) / 2, len(x) - 2)
    return ErrorBound(slope, error, slope - reach, slope + reach, len(x))


def error_bound_of_sample(
    excess: ArrayLike,
    variance: ArrayLike,
    generator: np.random.Generator,
    *,
    bins: int = 12,
    level: float = 0.95,
    resamples: int = 200,
) -> ErrorBound:
    """Estimate β from the contributions of n sampled contexts to excess risk and variance of J policies, [n, J] each.

    Error and interval are from a bootstrap over contexts (a normal interval around the estimate).
    """
    excess, variance = np.asarray(excess, np.float64), np.asarray(variance, np.float64)
    if excess.shape != variance.shape or excess.ndim != 2:
        raise InvalidInput(f"variance: found shape {variance.shape}, expected that of excess, {excess.shape}, two-dim.")
    n = len(excess)
    x, y = _heb_upper_edge(excess.mean(axis=0), variance.mean(axis=0), bins)
    slope, _ = _heb_slope(x, y)
    counts = generator.multinomial(n, np.full(n, 1 / n), size=resamples) / n  # [resamples, n]
    slopes = np.array(
        [_heb_slope(*_heb_upper_edge(e, v, bins))[0] for e, v in zip(counts @ excess, counts @ variance, strict=True)]
    )
    error = float(slopes.std(ddof=1))
    reach = error * float(ndtri((1 + level) / 2))
    return ErrorBound(slope, error, slope - reach, slope + reach, len(x))


def _heb_upper_edge(excess: Floats, variance: Floats, bins: int) -> tuple[Floats, Floats]:
    """Return the logs of the pairs with the largest variance, one per bin of log excess."""
    seen = (excess > 0) & (variance > 0)
    x, y = np.log(excess[seen]), np.log(variance[seen])
    if len(np.unique(x)) < 3:
        raise InvalidInput(f"excess: found {len(np.unique(x))} different policies off the best, expected at least 3")
    width = (x.max() - x.min()) / bins
    place = np.minimum(((x - x.min()) / width).astype(np.int64), bins - 1)
    order = np.lexsort((y, place))
    last = np.append(place[order][1:] != place[order][:-1], True)  # largest y of each bin
    return x[order][last], y[order][last]


def _heb_slope(x: Floats, y: Floats) -> tuple[float, float]:
    """Return the least squares slope and its standard error."""
    if len(x) < 3:
        raise InvalidInput(
            f"excess: found an upper edge of {len(x)} policies, expected at least 3: more policies, or bins"
        )
    centred = x - x.mean()
    spread = float(centred @ centred)
    slope = float(centred @ y) / spread
    residuals = y - y.mean() - slope * centred
    return slope, math.sqrt(float(residuals @ residuals) / (len(x) - 2) / spread)
