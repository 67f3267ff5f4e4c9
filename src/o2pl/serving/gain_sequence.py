"""How much one group of units earns above another, at any time: a confidence sequence of what a coin decided.

A unit is in the control group with probability c, whatever was seen before. With u its reward as a fraction of the
range, b what units have had before it, and Z = 1 in the control group,

    d = ((1 - Z)/(1 - c) - Z/c) (u - b)             E[d | everything before] = gain of the others over the control group

b takes away what both groups have in common, so that the variance of d is that of a comparison of two groups. With
B = max(1/c, 1/(1 - c)) ≥ |d|, (B + d)/(B + 1) is not negative and its mean is at most 1: `theory.betting` bounds it.
Nothing is assumed but the coin: units may differ, policies may learn, and rewards may drift. The interval is for the
average gain over the units so far.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from o2pl.evaluation.judgement import Judgement, judge
from o2pl.protocols import Floats
from o2pl.theory.betting import BETS, bet_sums, betting_lower_from_sums


class Contrast(msgspec.Struct):
    """Sums of the units so far. It is stored as JSON."""

    units: list[int] = msgspec.field(default_factory=lambda: [0, 0])  # of the service, of the control group
    earned: list[float] = msgspec.field(default_factory=lambda: [0.0, 0.0])  # Σ u
    above: list[float] = msgspec.field(default_factory=lambda: [0.0] * len(BETS))  # Σ log(1 + κ (B + d)/(B + 1))
    below: list[float] = msgspec.field(default_factory=lambda: [0.0] * len(BETS))  # the same of -d


class Gain(NamedTuple):
    """What the service earns above the control group, in rewards."""

    estimate: float
    low: float
    high: float
    means: tuple[float, float]  # of the service, of the control group; NaN: no units


def added(
    sums: Contrast, rewards: Floats, control: NDArray[np.bool_], share: float, ends: tuple[float, float]
) -> Contrast:
    """Return the sums with further units, in the order in which they came. rewards: of each unit; share: c."""
    low, high = ends
    u = np.clip((np.asarray(rewards, float) - low) / (high - low), 0.0, 1.0)
    before = np.concatenate([[0.0], np.cumsum(u)[:-1]]) + sum(sums.earned)
    b = (before + 0.5) / (np.arange(len(u)) + sum(sums.units) + 1)
    d = np.where(control, -1 / share, 1 / (1 - share)) * (u - b)
    B = _largest(share)
    return Contrast(
        [sums.units[0] + int((~control).sum()), sums.units[1] + int(control.sum())],
        [sums.earned[0] + float(u[~control].sum()), sums.earned[1] + float(u[control].sum())],
        (np.array(sums.above) + bet_sums((B + d) / (B + 1))).tolist(),
        (np.array(sums.below) + bet_sums((B - d) / (B + 1))).tolist(),
    )


def _largest(share: float) -> float:
    return max(1 / share, 1 / (1 - share))


def gain(sums: Contrast, share: float, ends: tuple[float, float], delta: float) -> Gain:
    """Return the gain with its interval, which holds at all times simultaneously with probability 1 - δ."""
    B, rows, scale = _largest(share), sum(sums.units), ends[1] - ends[0]
    below, above = (
        max(min((B + 1) * betting_lower_from_sums(np.array(own), rows, delta / 2) - B, 1.0), -1.0)
        for own in (sums.above, sums.below)
    )
    with np.errstate(invalid="ignore"):
        means = np.array(sums.earned) / np.array(sums.units)
    gap = float(means[0] - means[1]) if min(sums.units) else (below - above) / 2
    told = [float(ends[0] + scale * mean) for mean in means]
    low, high = scale * below, -scale * above
    return Gain(min(max(scale * gap, low), high), low, high, (told[0], told[1]))


def judged(
    found: Gain, units: int, delta: float, lower_is_better: bool = False, tolerance: float = 0.0, condition: str = ""
) -> Judgement:
    """Return whether the service is better than the control group, by the one judgement.

    lower_is_better: less is better, such as complaints. tolerance: by which it may be worse. condition: in words.
    """
    estimate, low, high = found.estimate, found.low, found.high
    if lower_is_better:
        estimate, low, high = -estimate, -high, -low
    return judge(
        "the service", "the control group", estimate, low, high, delta=delta, kind="betting, at any time", rows=units,
        effective=units, tolerance=tolerance, condition=condition,
    )  # fmt: skip
