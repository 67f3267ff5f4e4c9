"""Figures with 95 % confidence intervals: by bootstrap over units (seeds, data sets), from counts, or exact.

A sample is an array whose rows are units; values in one row are paired. Samples are resampled independently. A
bootstrap of few units is too narrow, so its interval is widened by t_{n-1} √(n/(n-1)) / 1.96. With fewer than `FEWEST`
units the interval is unbounded, and every claim stays undecided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from o2pl.protocols import Floats
from o2pl.special import ndtri, student_quantile

LEVEL = 0.95
FEWEST = 5
RESAMPLES = 4000
EXACT = "exact: nothing is sampled"
_ROUNDING = 1e-9  # of a figure past its limits
_CHUNK = 2_000_000  # numbers drawn at a time
Function = Callable[..., Floats]  # of arrays of means, [B, ...] each, to figures [B] or [B, m]


@dataclass(frozen=True)
class Measurement:
    """A figure, its confidence interval, and the method."""

    value: float
    low: float
    high: float
    method: str

    @property
    def is_bounded(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)


def exact(value: float) -> Measurement:
    """Return an exact figure, without randomness."""
    return Measurement(float(value), float(value), float(value), EXACT)


def not_run() -> Measurement:
    """Return the estimate of something that was not run."""
    return Measurement(math.nan, -math.inf, math.inf, "not run")


def binomial(hits: int, trials: int, over: str = "runs") -> Measurement:
    """Return a fraction with its Clopper-Pearson interval."""
    low, high = _clopper_pearson(np.array([hits]), np.array([trials]), 1 - LEVEL)
    return Measurement(
        hits / trials if trials else math.nan, float(low[0]), float(high[0]), f"exact binomial, {trials} {over}"
    )


def record(wins: int, losses: int, trials: int, over: str) -> Measurement:
    """Return the fraction won minus the fraction lost; the exact intervals of both hold jointly."""
    low, high = _clopper_pearson(np.array([wins, losses]), np.array([trials, trials]), (1 - LEVEL) / 2)
    method = f"exact binomial, wins and losses of {trials} {over} at once"
    return Measurement((wins - losses) / trials, float(low[0] - high[1]), float(high[0] - low[1]), method)


def greatest_share(hits: Any, trials: Any, scale: Any, over: str) -> Measurement:
    """Return the greatest of fractions / scale; the intervals of all fractions hold jointly (Bonferroni)."""
    hits, trials, scale = (np.asarray(each) for each in (hits, trials, scale))
    low, high = _clopper_pearson(hits, trials, (1 - LEVEL) / len(hits))
    ends = [float((each / scale).max()) for each in (hits / trials, low, high)]
    return Measurement(
        ends[0], ends[1], ends[2], f"exact binomial, {len(hits)} at once, {int(trials.min())} {over} each"
    )


def _clopper_pearson(hits: Any, trials: Any, error: float) -> tuple[Floats, Floats]:
    from scipy.stats import beta

    low = np.where(hits > 0, beta.ppf(error / 2, np.maximum(hits, 1), trials - hits + 1), 0.0)
    high = np.where(hits < trials, beta.ppf(1 - error / 2, hits + 1, np.maximum(trials - hits, 1)), 1.0)
    return low, high


def of_means(
    function: Function, *samples: Any, over: str = "seeds", limits: tuple[float, float] = (-np.inf, np.inf)
) -> Measurement:
    """Return function(mean of every sample), vectorised over a first axis; percentile bootstrap. Means ignore NaN."""
    units, value, drawn = _bootstrap(function, samples)
    if units < FEWEST:
        return _too_few(float(value), units, over)
    low, high = (float(each) for each in np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    stretch = _stretch(units)
    ends = float(value - stretch * (value - low)), float(value + stretch * (high - value))
    return _within(Measurement(float(value), ends[0], ends[1], f"bootstrap over {units} {over}"), limits)


def mean(values: Any, over: str = "seeds") -> Measurement:
    return of_means(lambda means: means, values, over=over)


def ratio(above: Any, below: Any, over: str = "seeds") -> Measurement:
    """Return the ratio of means of paired runs."""
    return of_means(lambda means: means[:, 0] / means[:, 1], np.column_stack([above, below]), over=over)


def least(
    function: Function, *samples: Any, over: str = "seeds", limits: tuple[float, float] = (-np.inf, np.inf)
) -> Measurement:
    """Return the least of the m figures of `function`. Its interval accounts for the selection:

    bands value_j ± c sd_j cover all m figures jointly (c the 95 % quantile of max_j |draw_j - value_j| / sd_j), and the
    least figure is between the least lower and the least upper end.
    """
    units, value, low, high = _bands(function, samples)
    at_once = f", {len(value)} at once" if len(value) > 1 else ""
    if units < FEWEST:
        return _too_few(float(value.min()), units, over)
    found = Measurement(
        float(value.min()), float(low.min()), float(high.min()), f"bootstrap over {units} {over}{at_once}"
    )
    return _within(found, limits)


def least_ratio(function: Function, *samples: Any, over: str = "seeds") -> Measurement:
    """Return the least of several ratios, like `least`, with symmetric bands on the log scale."""
    found = least(lambda *means: np.log(function(*means)), *samples, over=over)
    value, low, high = (float(np.exp(each)) for each in (found.value, found.low, found.high))
    return replace(found, value=value, low=low if found.is_bounded else -math.inf, high=high)


def greatest(
    function: Function, *samples: Any, over: str = "seeds", limits: tuple[float, float] = (-np.inf, np.inf)
) -> Measurement:
    """Return the greatest of several figures, like `least`."""
    turned = least(lambda *means: -function(*means), *samples, over=over, limits=(-limits[1], -limits[0]))
    return replace(turned, value=0.0 - turned.value, low=0.0 - turned.high, high=0.0 - turned.low)  # 0, not -0


def greatest_size(function: Function, *samples: Any, over: str = "seeds") -> Measurement:
    """Return the greatest absolute value of several figures, like `least`."""

    def both_signs(*means: Floats) -> Floats:
        figures = function(*means)
        return np.concatenate([figures, -figures], axis=-1)

    return greatest(both_signs, *samples, over=over, limits=(0.0, np.inf))


def median_ratio(above: Any, below: Any, over: str = "seeds") -> Measurement:
    """Return the ratio of medians of paired runs."""
    both = np.column_stack([above, below])
    value = float(np.median(both[:, 0]) / np.median(both[:, 1]))
    if len(both) < FEWEST:
        return _too_few(value, len(both), over)
    chosen = both[np.random.default_rng(0).integers(len(both), size=(RESAMPLES, len(both)))]
    medians = np.median(chosen, axis=1)
    low, high = np.quantile(medians[:, 0] / medians[:, 1], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    stretch = _stretch(len(both))
    ends = float(value - stretch * (value - low)), float(value + stretch * (high - value))
    return Measurement(value, ends[0], ends[1], f"bootstrap over {len(both)} {over}")


def wider(first: Measurement, second: Measurement) -> Measurement:
    """Return the first, with an interval that contains both intervals."""
    method = f"{first.method}, and {second.method}: the wider ends"
    return replace(first, low=min(first.low, second.low), high=max(first.high, second.high), method=method)


def permutation_p(figure: Callable[[Floats], float], labels: Floats, resamples: int = RESAMPLES) -> float:
    """Return the one-sided p-value of a permutation test."""
    generator, here = np.random.default_rng(0), figure(labels)
    reached = sum(figure(generator.permutation(labels)) >= here for _ in range(resamples))
    return (reached + 1) / (resamples + 1)


# -- resampling


def _bootstrap(function: Function, samples: Sequence[Any]) -> tuple[int, Any, Floats]:
    """Return the smallest number of units of a mean, the figures, and the figures of resamples."""
    generator = np.random.default_rng(0)
    arrays = [np.asarray(each, np.float64) for each in samples]
    with np.errstate(divide="ignore", invalid="ignore"):
        value = function(*(_weighted(np.ones((1, len(each))), each) for each in arrays))[0]
        drawn = function(*(_resampled_means(each, generator) for each in arrays))
    units = min(int((~np.isnan(each)).sum(axis=0).min()) for each in arrays)
    return units, value, drawn


def _resampled_means(values: Floats, generator: np.random.Generator) -> Floats:
    n = len(values)
    step = max(1, _CHUNK // max(n, 1))
    found = []
    for first in range(0, RESAMPLES, step):
        size = min(step, RESAMPLES - first)
        places = generator.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        counts = np.bincount(places.reshape(-1), minlength=size * n).reshape(size, n).astype(np.float64)
        found.append(_weighted(counts, values))
    return np.concatenate(found)


def _weighted(counts: Floats, values: Floats) -> Floats:
    """Return the means of values [n, ...] with these counts [B, n], ignoring NaN. [B, ...]"""
    flat = values.reshape(len(values), -1)
    there = ~np.isnan(flat)
    weights = counts @ there
    sums = counts @ np.where(there, flat, 0.0)
    means = np.divide(sums, weights, out=np.full_like(sums, np.nan), where=weights > 0)
    return means.reshape(len(counts), *values.shape[1:])


def _bands(function: Function, samples: Sequence[Any]) -> tuple[int, Floats, Floats, Floats]:
    units, value, drawn = _bootstrap(function, samples)
    spread = drawn.std(axis=0)
    off = np.divide(np.abs(drawn - value), spread, out=np.zeros_like(drawn), where=spread > 0)
    width = _stretch(units) * np.quantile(off.max(axis=1), LEVEL) * spread if units >= FEWEST else 0 * spread
    return units, value, value - width, value + width


def _stretch(units: int) -> float:
    end = (1 + LEVEL) / 2
    return student_quantile(end, units - 1) * math.sqrt(units / (units - 1)) / float(ndtri(end))


def _too_few(value: float, units: int, over: str) -> Measurement:
    one = over.removesuffix("s") if units == 1 else over
    return Measurement(value, -math.inf, math.inf, f"{units} {one}: too few for an interval")


def _within(found: Measurement, limits: tuple[float, float]) -> Measurement:
    if math.isnan(found.low) or math.isnan(found.high):
        return replace(found, low=-math.inf, high=math.inf)
    if not limits[0] - _ROUNDING <= found.value <= limits[1] + _ROUNDING:
        return found  # it contradicts its limits: the claim should see that
    value, low, high = (float(np.clip(each, *limits)) for each in (found.value, found.low, found.high))
    return replace(found, value=value, low=low, high=high)
