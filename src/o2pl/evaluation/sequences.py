"""Confidence sequences: intervals that hold after every row at once, so that one may look, and stop, at any time.

With probability ≥ 1 - δ the mean lies in all intervals [lower_t, upper_t], t = 1, 2, …, whatever the rule that stops
the count. Rows may be collected adaptively: what is asked of row t is its mean given the rows before.

Everything rests on one thing, a lower sequence for values y ≥ 0; an upper one is that of the complement. Three are
here: "betting" is the narrowest nearly always, "plugin" a published empirical Bernstein sequence, "realized" the
paper's Prop. B.1.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from o2pl.errors import InvalidInput
from o2pl.evaluation.bernstein import plugin_lower, realized_lower
from o2pl.evaluation.intervals import bounded_column, check_delta, finite_column
from o2pl.objectives.improvement import improvement_values
from o2pl.protocols import Floats
from o2pl.theory.betting import LARGEST, betting_lower
from o2pl.validation import check_count, check_reward_range

SequenceMethod = Literal["betting", "plugin", "realized"]
SEQUENCE_METHODS = ("betting", "plugin", "realized")


class ConfidenceSequence(NamedTuple):
    """The interval after each row. Where lower > upper the rows contradict a common mean (else: probability ≤ δ)."""

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
    """For the common mean of values in [lower, upper], E[value_t | rows before] = mean; intersected over time.

    With `common=False` conditional means may differ, and interval t is for the average of the first t of them: not
    intersected, and not to be had from "plugin", whose rows weigh differently.
    """
    column = bounded_column("values", values, lower, upper)
    scale = upper - lower
    low = _lower((column - lower) / scale, check_delta(delta) / 2, method, common)
    high = _lower((upper - column) / scale, delta / 2, method, common)
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
    """For the value E_π r of a policy from weights w = π(a|x)/q and rewards that q brought.

    The lower end is that of E min(w, α)(r - lowest), the upper one that of E min(w, α)(highest - r): each leans to its
    own safe side, whatever is clipped, so no correction for the bias is due. What clipping costs shows as width: the
    two ends stay E (w - α)₊ = 1 - E min(w, α) of the reward range apart (see `clipping_bias`). The same holds of mass
    that π puts where q has none, and of propensities too large. Neither end needs a bound on w, so α = ∞ is a fine
    choice. When J policies are compared on the same rows, `candidates=J` makes all J sequences hold at once (δ/J each).
    """
    w, share, (lowest, highest) = _weights_and_shares(weights, rewards, reward_range, clip)
    level = check_delta(delta) / (2 * check_count("candidates", candidates))
    low = _lower(w * share, level, method)
    high = _lower(w * (1 - share), level, method)
    scale = highest - lowest
    return ConfidenceSequence(lowest + scale * low, highest - scale * high)


def difference_sequence(
    rewards: Floats, reward_range: tuple[float, float], weights: Floats, against: Floats, delta: float, moving: bool
) -> ConfidenceSequence:
    """V(π) - V(π') at all times; a logger may have moved from row to row, then it is the mean of its values so far."""
    low, high = reward_range

    def below(one: Floats, two: Floats) -> Floats:
        values = (1 + improvement_values(one, two, rewards, low, high)) / 2  # ≥ 0, of mean ≤ 1
        return np.minimum(2 * betting_lower(values, delta / 2, not moving) - 1, 1.0) * (high - low)

    return ConfidenceSequence(below(weights, against), -below(against, weights))


def clipping_bias(
    weights: ArrayLike, clip: float, delta: float = 0.05, *, method: SequenceMethod = "betting"
) -> Floats:
    """Running upper bounds for E (w - α)₊ = 1 - E min(w, α), in units of the reward range, at all times at once. [n]

    So much, at most, is E min(w, α)(r - lowest) below E w (r - lowest).
    """
    w = _clipped("weights", weights, clip)
    return np.asarray(1 - _lower(w, check_delta(delta), method))


def _lower(values: Floats, delta: float, method: str, common: bool = True) -> Floats:
    """Running lower bounds at level δ for values ≥ 0 whose mean is in [0, 1]."""
    if method == "betting":
        bounds = betting_lower(values, delta, common)
    elif method == "realized":
        bounds = realized_lower(values, delta, common)
    elif method == "plugin" and common:
        bounds = plugin_lower(values, delta)
    else:
        expected = SEQUENCE_METHODS if common else ("betting", "realized")
        raise InvalidInput(f"method: found {method!r}, expected one of {', '.join(expected)}")
    return np.minimum(bounds, 1.0)


def _weights_and_shares(
    weights: ArrayLike, rewards: ArrayLike, reward_range: Any, clip: float
) -> tuple[Floats, Floats, tuple[float, float]]:
    """min(w, α) and (r - lowest)/(highest - lowest)."""
    lowest, highest = check_reward_range(reward_range)
    w = _clipped("weights", weights, clip)
    share = (bounded_column("rewards", rewards, lowest, highest) - lowest) / (highest - lowest)
    if len(w) != len(share):
        raise InvalidInput(f"columns differ in length: {len(w)} weights, {len(share)} rewards")
    return w, share, (lowest, highest)


def _clipped(name: str, weights: ArrayLike, clip: float) -> Floats:
    """min(w, α), and never above what the bets can count: an infinite weight was too large for a number."""
    if not (isinstance(clip, int | float | np.number) and clip > 0):
        raise InvalidInput(f"clip: found {clip!r}, expected a number > 0, or infinity")
    column = finite_column(name, weights, min(clip, LARGEST))
    if column.min() < 0:
        row = int(np.argmax(column < 0))
        raise InvalidInput(f"{name}, row {row}: found {column[row]}, expected a weight ≥ 0")
    return column
