"""Confidence sequences: anytime-valid intervals, which hold after every row simultaneously.

With probability ≥ 1 - δ, the mean is in all intervals [lower_t, upper_t], t = 1, 2, …, for any stopping rule. Rows may
be collected adaptively: the assumption is on the mean of row t given the earlier rows.

All are built from lower sequences for values y ≥ 0; an upper sequence is that of the complement. There are three
methods: "betting" is nearly always the narrowest, "plugin" is a published empirical Bernstein sequence, "realized" is
the paper's Prop. B.1.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from o2pl.errors import InvalidInput
from o2pl.evaluation.bernstein import plugin_bernstein_lower, realized_bernstein_lower
from o2pl.evaluation.intervals import bounded_column_for_interval, check_interval_delta, finite_column_for_interval
from o2pl.objectives.improvement import improvement_values
from o2pl.protocols import Floats
from o2pl.theory.betting import LARGEST, betting_lower
from o2pl.validation import check_count, check_reward_range

SequenceMethod = Literal["betting", "plugin", "realized"]
SEQUENCE_METHODS = ("betting", "plugin", "realized")


class ConfidenceSequence(NamedTuple):
    """The interval after each row. lower > upper: the rows contradict a common mean (otherwise: probability ≤ δ)."""

    lower: Floats  # [n]
    upper: Floats  # [n]

    @property
    def last(self) -> tuple[float, float]:
        return float(self.lower[-1]), float(self.upper[-1])


def confidence_sequence(
    values: ArrayLike,
    delta: float = 0.05,
    lower: float = 0.0,
    upper: float = 1.0,
    method: SequenceMethod = "betting",
    *,
    common: bool = True,
) -> ConfidenceSequence:
    """Return a confidence sequence for the common mean of values in [lower, upper], intersected over time.

    The assumption is E[value_t | earlier rows] = mean. With `common=False` the conditional means may differ, and
    interval t is for the average of the first t of them: it is not intersected, and not available for "plugin", which
    weights rows differently.
    """
    column = bounded_column_for_interval("values", values, lower, upper)
    scale = upper - lower
    low = _sequence_lower((column - lower) / scale, check_interval_delta(delta) / 2, method, common)
    high = _sequence_lower((upper - column) / scale, delta / 2, method, common)
    return ConfidenceSequence(lower + scale * low, upper - scale * high)


def weighted_sequence(
    weights: ArrayLike,
    rewards: ArrayLike,
    delta: float = 0.05,
    reward_range: tuple[float, float] = (0.0, 1.0),
    *,
    clip: float = math.inf,
    method: SequenceMethod = "betting",
    candidates: int = 1,
) -> ConfidenceSequence:
    """Return a confidence sequence for the value E_π r of a policy, from weights w = π(a|x)/q and logged rewards.

    The lower bound is that of E min(w, α)(r - lowest), the upper bound uses E min(w, α)(highest - r): each is
    conservative under clipping, so no bias correction is needed. Clipping increases the width: the bounds stay at least
    E (w - α)₊ = 1 - E min(w, α) of the reward range apart. The same holds for mass that π puts
    where q has none, and for propensities that are too large. No bound on w is needed, so α = ∞ is a good choice. To
    compare J policies on the same rows, `candidates=J` makes all J sequences hold jointly (δ/J each).
    """
    w, share, (lowest, highest) = _sequence_weights_and_shares(weights, rewards, reward_range, clip)
    level = check_interval_delta(delta) / (2 * check_count("candidates", candidates))
    low = _sequence_lower(w * share, level, method)
    high = _sequence_lower(w * (1 - share), level, method)
    scale = highest - lowest
    return ConfidenceSequence(lowest + scale * low, highest - scale * high)


def difference_sequence(
    rewards: Floats, reward_range: tuple[float, float], weights: Floats, against: Floats, delta: float, moving: bool
) -> ConfidenceSequence:
    """Return a confidence sequence of V(π) - V(π'). For a logger that learned, its value is the mean so far."""
    low, high = reward_range

    def below(one: Floats, two: Floats) -> Floats:
        values = (1 + improvement_values(one, two, rewards, low, high)) / 2  # ≥ 0, of mean ≤ 1
        return np.minimum(2 * betting_lower(values, delta / 2, not moving) - 1, 1.0) * (high - low)

    return ConfidenceSequence(below(weights, against), -below(against, weights))


def _sequence_lower(values: Floats, delta: float, method: str, common: bool = True) -> Floats:
    """Return lower bounds after each row at level δ, for values ≥ 0 with mean in [0, 1]."""
    if method == "betting":
        bounds = betting_lower(values, delta, common)
    elif method == "realized":
        bounds = realized_bernstein_lower(values, delta, common)
    elif method == "plugin" and common:
        bounds = plugin_bernstein_lower(values, delta)
    else:
        expected = SEQUENCE_METHODS if common else ("betting", "realized")
        raise InvalidInput(f"method: found {method!r}, expected one of {', '.join(expected)}")
    return np.minimum(bounds, 1.0)


def _sequence_weights_and_shares(
    weights: ArrayLike, rewards: ArrayLike, reward_range: object, clip: float
) -> tuple[Floats, Floats, tuple[float, float]]:
    """Return min(w, α) and (r - lowest)/(highest - lowest)."""
    lowest, highest = check_reward_range(reward_range)
    w = _clipped_for_sequence("weights", weights, clip)
    share = (bounded_column_for_interval("rewards", rewards, lowest, highest) - lowest) / (highest - lowest)
    if len(w) != len(share):
        raise InvalidInput(f"columns differ in length: {len(w)} weights, {len(share)} rewards")
    return w, share, (lowest, highest)


def _clipped_for_sequence(name: str, weights: ArrayLike, clip: float) -> Floats:
    """Return min(w, α), capped at the largest number that the bets can use: infinite weights have overflowed."""
    if not (isinstance(clip, int | float | np.number) and clip > 0):
        raise InvalidInput(f"clip: found {clip!r}, expected a number > 0, or infinity")
    column = finite_column_for_interval(name, weights, min(clip, LARGEST))
    if column.min() < 0:
        row = int(np.argmax(column < 0))
        raise InvalidInput(f"{name}, row {row}: found {column[row]}, expected a weight ≥ 0")
    return column
