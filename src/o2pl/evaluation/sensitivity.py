"""How wrong may propensities be before the answer changes?

A row's action was drawn with the true probability q*, and q is what is written or was estimated. If the true odds are
within a factor Γ of those of q, then 1/q* lies between 1 + (1/q - 1)/Γ and 1 + (1/q - 1) Γ (for densities: q* between
q/Γ and Γ q). DR is linear in 1/q*, so its lowest and highest value are found row by row.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from o2pl.evaluation.intervals import normal_interval
from o2pl.protocols import Floats

GAMMAS = (1.1, 1.25, 1.5, 2.0)
_MOST = 100.0  # beyond it a verdict counts as one that never flips


class Linear(NamedTuple):
    """Row values base + slope / q*, whose mean is the estimate. [n]"""

    base: Floats
    slope: Floats
    propensities: Floats
    density: bool

    def inverse(self, gamma: float) -> tuple[Floats, Floats]:
        """The smallest and the largest 1/q*."""
        inverse = 1 / self.propensities
        if self.density:
            return inverse / gamma, inverse * gamma
        return 1 + (inverse - 1) / gamma, 1 + (inverse - 1) * gamma

    def ends(self, gamma: float) -> tuple[Floats, Floats]:
        """Row values at the lowest and at the highest estimate."""
        small, large = self.inverse(gamma)
        up = self.slope > 0
        return self.base + self.slope * np.where(up, small, large), self.base + self.slope * np.where(up, large, small)


class Range(NamedTuple):
    """For odds off by at most `gamma`: the estimate, and its interval."""

    gamma: float
    lowest: float
    highest: float
    low: float
    high: float


class Sensitivity(NamedTuple):
    ranges: tuple[Range, ...]
    flips: float  # the Γ at which the verdict of the difference changes; 1: there is none; ∞: none up to 100

    def at(self, gamma: float) -> Range:
        return next(one for one in self.ranges if one.gamma == gamma)


def sensitivity(
    rows: Linear, delta: float, least: float, most: float, missing: float = 0.0, gammas: tuple[float, ...] = GAMMAS
) -> Sensitivity:
    """`least`, `most`: what the value can be at all; `missing`: by how much intervals are widened besides."""
    found = tuple(_range(rows, gamma, delta, least, most, missing) for gamma in (1.0, *gammas))
    return Sensitivity(found, _flips(rows, found[0], delta, least, most, missing))


def _range(rows: Linear, gamma: float, delta: float, least: float, most: float, missing: float) -> Range:
    below, above = rows.ends(gamma)
    low = normal_interval(below, delta)[0] if below.any() else 0.0
    high = normal_interval(above, delta)[1] if above.any() else 0.0
    lowest, highest = (min(max(float(ends.mean()), least), most) for ends in (below, above))
    return Range(gamma, lowest, highest, max(low - missing, least), min(high + missing, most))


def _flips(rows: Linear, now: Range, delta: float, least: float, most: float, missing: float) -> float:
    """By halving log Γ: intervals only grow with Γ."""
    if now.low <= 0 <= now.high:
        return 1.0

    def stands(gamma: float) -> bool:
        one = _range(rows, gamma, delta, least, most, missing)
        return one.low > 0 if now.low > 0 else one.high < 0

    low, high = 0.0, math.log(_MOST)
    if stands(_MOST):
        return math.inf
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if stands(math.exp(middle)) else (low, middle)
    return math.exp(low)
