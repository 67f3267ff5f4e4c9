"""Confidence bounds behind every judgement: the ends of an interval for a value or a gain, from one term per row.

A gain has two columns of terms, in rewards scaled to [0, 1] (`gains`): `lower`, whose mean is at most the gain, and
`upper`, whose mean is at least the gain. Each end of the interval is a one-sided bound for the mean of its own column.
Two kinds of bounds:

"normal, with skew"   mean - z s/√n + min(0, (1 + 2 z²) γ s / 6n), z Student's quantile, γ the skewness: Johnson's
                      correction, applied only where it widens. Used if the effective number of surprises
                      (Σ u²)²/Σ u⁴, u = term - mean, is at least `ENOUGH`, and if one more row with the worst surprise
                      that the reward range allows would move the mean by less than a `_PART` of the distance: what
                      happens in one of n rows is missed by a log of n rows every third time.
"betting"             the betting sequence of `theory.betting` for terms that are at least -B, valid for any number of
                      rows, at any time. Terms below -B are raised to -B, and what that adds is subtracted again.

Everything is computed from sums over rows (`TermSums`), so a log may come in parts.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, Self

import numpy as np

from o2pl.protocols import Floats
from o2pl.special import student_quantile
from o2pl.theory.betting import bet_sums, betting_lower_from_sums

Kind = Literal["normal, with skew", "betting", "betting, at any time", "none"]
_PART = 0.25
ENOUGH = 12.0  # effective surprises below which a normal bound is not trusted
_FEWEST = 30  # rows of a normal bound


class TermSums(NamedTuple):
    """Sums of terms t over rows: power sums around `about`, and the sums of the bets on max(t, -floor)."""

    rows: float
    about: float
    powers: Floats  # Σ (t - about)^k, k = 1, …, 4
    floor: float  # B
    raised: float  # Σ max(0, -B - t)
    bets: Floats  # A_k of t + B

    def added(self, other: Self) -> Self:
        if (self.about, self.floor) != (other.about, other.floor):
            raise ValueError("sums around different numbers cannot be added")
        return self._replace(
            rows=self.rows + other.rows, powers=self.powers + other.powers, raised=self.raised + other.raised,
            bets=self.bets + other.bets,
        )  # fmt: skip

    @property
    def mean(self) -> float:
        return self.about + float(self.powers[0]) / self.rows

    def central(self) -> tuple[float, float, float]:
        """Return the second to fourth central moments."""
        a, b, c, d = (self.powers / self.rows).tolist()
        second = max(b - a * a, 0.0)
        third = c - 3 * a * b + 2 * a**3
        fourth = max(d - 4 * a * c + 6 * a * a * b - 3 * a**4, 0.0)
        return second, third, fourth

    @property
    def surprises(self) -> float:
        """The effective number of surprises, (Σ u²)²/Σ u⁴; 0 for constant terms."""
        second, _, fourth = self.central()
        return self.rows * second**2 / fourth if fourth > 1e-280 and second > 1e-24 else 0.0


def sums_for_bounds(terms: Floats, floor: float, about: float | None = None, bet_on: Floats | None = None) -> TermSums:
    """Return the sums of terms ≥ -floor. bet_on: the terms of the bets, if they are fewer rows than the others."""
    middle = float(terms.mean()) if about is None else about
    u = terms - middle
    square = u * u
    powers = np.array([u.sum(), square.sum(), square @ u, square @ square])
    bet_on = terms if bet_on is None else bet_on
    shifted = bet_on + floor
    raised = float(np.maximum(-shifted, 0.0).sum()) * len(terms) / len(bet_on)
    return TermSums(len(terms), middle, powers, floor, raised, bet_sums(np.maximum(shifted, 0.0)))


class Bound(NamedTuple):
    end: float  # one-sided lower bound of the mean
    kind: Kind


def lower_bound(
    sums: TermSums, delta: float, surprises: float, at_any_time: bool = False, bet_rows: float | None = None,
    unseen: float = 0.0,
) -> Bound:  # fmt: skip
    """Return a lower bound for the mean of the terms with error probability δ.

    surprises: their effective number, at most `sums.surprises`. bet_rows: rows in the bets. unseen: by what one more
    row could lower the mean beyond the worst row of the log.
    """
    if not at_any_time and sums.rows >= _FEWEST and surprises >= ENOUGH:
        end = _normal_bounds(sums, delta)
        if unseen <= _PART * (sums.mean - end):
            return Bound(end, "normal, with skew")
    bound = betting_lower_from_sums(sums.bets, sums.rows if bet_rows is None else bet_rows, delta)
    bound -= sums.floor + sums.raised / sums.rows
    return Bound(bound, "betting, at any time" if at_any_time else "betting")


def _normal_bounds(sums: TermSums, delta: float) -> float:
    n = sums.rows
    second, third, _ = sums.central()
    deviation = math.sqrt(second * n / (n - 1))
    z = student_quantile(1 - delta, round(n) - 1)
    skew = third / second**1.5
    return float(sums.mean - z * deviation / math.sqrt(n) + min(0.0, (1 + 2 * z * z) * skew * deviation / (6 * n)))
