"""Sensitivity analysis: how wrong may propensities be before the result changes?

A row's action was drawn with the true probability q*; q is the logged or estimated one. If the true odds are within a
factor Γ of those of q, then 1/q* is between 1 + (1/q - 1)/Γ and 1 + (1/q - 1) Γ (for densities: q* is between q/Γ and
Γ q). DR is linear in 1/q*, so its lowest and highest values are found row by row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from o2pl.evaluation.intervals import normal_interval
from o2pl.protocols import Floats

GAMMAS = (1.1, 1.25, 1.5, 2.0)
_MOST = 100.0  # a verdict that holds up to here counts as one that never changes


class Linear(NamedTuple):
    """Row values base + slope / q*, whose mean is the estimate. [n]"""

    base: Floats
    slope: Floats
    propensities: Floats
    density: bool

    def inverse(self, gamma: float) -> tuple[Floats, Floats]:
        """Return the smallest and the largest 1/q*."""
        inverse = 1 / self.propensities
        if self.density:
            return inverse / gamma, inverse * gamma
        return 1 + (inverse - 1) / gamma, 1 + (inverse - 1) * gamma

    def ends(self, gamma: float) -> tuple[Floats, Floats]:
        """Return the row values of the lowest and of the highest estimate."""
        small, large = self.inverse(gamma)
        up = self.slope > 0
        return self.base + self.slope * np.where(up, small, large), self.base + self.slope * np.where(up, large, small)


class Range(NamedTuple):
    """The range of the estimate and its interval, for odds off by at most `gamma`."""

    gamma: float
    lowest: float
    highest: float
    low: float
    high: float


class Sensitivity(NamedTuple):
    ranges: tuple[Range, ...]
    flips: float  # Γ at which the verdict of the difference changes; 1: no verdict; ∞: none up to 100

    def at(self, gamma: float) -> Range:
        return next(one for one in self.ranges if one.gamma == gamma)


def sensitivity(
    rows: Linear, delta: float, least: float, most: float, missing: float = 0.0, gammas: tuple[float, ...] = GAMMAS,
    one_more: float = 0.0,
) -> Sensitivity:  # fmt: skip
    """Return the sensitivity. least, most: the possible range of the value; missing: extra width of intervals.

    one_more: `one_more_row_for_interval` for Γ = 1; its weight may be larger by the factor Γ.
    """

    def found(gamma: float) -> Range:
        return _sensitivity_range(rows, gamma, delta, least, most, missing, gamma * one_more)

    ranges = tuple(found(gamma) for gamma in (1.0, *gammas))
    return Sensitivity(ranges, _sensitivity_flips(ranges[0], found))


def _sensitivity_range(
    rows: Linear, gamma: float, delta: float, least: float, most: float, missing: float, one_more: float
) -> Range:
    below, above = rows.ends(gamma)
    low = normal_interval(below, delta, one_more)[0] if below.any() else 0.0
    high = normal_interval(above, delta, one_more)[1] if above.any() else 0.0
    lowest, highest = (min(max(float(ends.mean()), least), most) for ends in (below, above))
    return Range(gamma, lowest, highest, max(low - missing, least), min(high + missing, most))


def _sensitivity_flips(now: Range, found: Callable[[float], Range]) -> float:
    """Find Γ by bisection of log Γ: intervals grow with Γ."""
    if now.low <= 0 <= now.high:
        return 1.0

    def stands(gamma: float) -> bool:
        one = found(gamma)
        return one.low > 0 if now.low > 0 else one.high < 0

    low, high = 0.0, math.log(_MOST)
    if stands(_MOST):
        return math.inf
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if stands(math.exp(middle)) else (low, middle)
    return math.exp(low)
