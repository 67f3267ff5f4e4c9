"""Terms of a policy's value, or of its gain over a baseline, one per row: doubly robust, and counted at the worst case.

With u = (r - lowest)/(highest - lowest), a reward model m, g = π - π' (π alone, for a value), W = w - w' and
v = Σ_a g(a|x) m(x, a):

    estimate   v + W (u - m)                                       mean: the gain, if the log supports both policies
    lower      v - Σ_{a hardly shown} (g m + g⁻) + W (u - m), where |W| > α: α u - W m  (W < 0: α (1 - u) + W (1 - m))
    upper      v - Σ_{a hardly shown} (g m - g⁺) + W (u - m), where |W| > α: W (1 - m) - α (1 - u)   (-α u - W m)

What the log hardly shows (`support`) is counted at the worst reward in `lower`, at the best in `upper`; so is what lies
above α. E[lower] ≤ gain ≤ E[upper], whatever the model says. The logging policy contributes the reward itself.
Without the policy's other probabilities m is a constant; of the actions that a row does not show it is only known that
their propensities sum to 1 - q.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from o2pl.data.interactions import BLOCK, Interactions
from o2pl.evaluation.bounds import Kind, TermSums, lower_bound, sums_for_bounds
from o2pl.evaluation.sequences import ConfidenceSequence
from o2pl.evaluation.support import Support, largest_supported_weight
from o2pl.evaluation.unshown import Hidden, Model, Side, Unshown, hidden_in_unshown, unshown_of, unshown_other_mass
from o2pl.protocols import Floats, Ints
from o2pl.theory.betting import betting_lower
from o2pl.validation import RewardRange

_BEYOND = 1.5  # standard errors by which mean weights below 1 are chance, unless something is hidden already:
_CLEARLY = 0.01  # share of the decisions that the log hardly shows


@dataclass(frozen=True, eq=False)
class Gains:
    """The terms of a comparison, in rewards scaled to [0, 1], and what the log does not show. [n]"""

    estimate: Floats
    lower: Floats
    upper: Floats
    more: Floats  # Σ g⁺ over what the log hardly shows
    less: Floats  # Σ g⁻
    whole: Floats  # what the reward is multiplied by: W, and the sign of the logging policy
    surprises: Floats  # u - m
    rewards: Floats  # u
    largest: float  # the largest of the log
    weights: tuple[Floats, ...]  # of the policies that are not the logger
    floors: tuple[float, float]  # B of `lower` and of -`upper`
    ends: RewardRange  # of the value or of the gain
    scale: tuple[float, float]  # what terms of 0 and 1 are in rewards
    known_range: bool
    row_weights: Floats | None = None
    kept: Ints | None = None  # rows in the bets; None: all
    stretch: float = 1.0  # factor of the distances of both ends from the mean: `held_out`

    def __len__(self) -> int:
        return len(self.estimate)

    def rows(self, some: Ints) -> Gains:
        """Return the terms of some rows, in order."""
        return replace(
            self, estimate=self.estimate[some], lower=self.lower[some], upper=self.upper[some], more=self.more[some],
            less=self.less[some], whole=self.whole[some], surprises=self.surprises[some], rewards=self.rewards[some],
            weights=tuple(one[some] for one in self.weights),
            row_weights=None if self.row_weights is None else self.row_weights[some],
            kept=None if self.kept is None else np.flatnonzero(np.isin(some, self.kept)),
        )  # fmt: skip

    @cached_property
    def sums(self) -> GainSums:
        return self.sums_around((float(self._weighed(self.lower).mean()), -float(self._weighed(self.upper).mean())))

    def sums_around(self, about: tuple[float, float]) -> GainSums:
        """Return the sums over the rows. about: numbers near the means of `lower` and -`upper`."""
        n, kept = len(self), slice(None) if self.kept is None else self.kept
        sides = [
            sums_for_bounds(self._weighed(terms), floor, around, terms[kept])
            for terms, floor, around in zip((self.lower, -self.upper), self.floors, about, strict=True)
        ]
        weights = [self._weighed(one) for one in self.weights]
        return GainSums(
            sides[0], sides[1], float(self._weighed(self.estimate).sum()),
            np.array([np.abs(self.whole).sum(), self.whole @ self.whole, ((self.whole * self.surprises) ** 2).sum()]),
            self.largest, n * np.array([self._mean(self.more), self._mean(self.less)]),
            np.array([[one.sum(), one @ one] for one in weights]).reshape(-1, 2),
            np.array([[one.sum(), one @ one] for one in map(self._multiplied, self.weights)]).reshape(-1, 2),
            n, len(self.lower[kept]), self.ends, self.scale, self.known_range, self._far(), self.stretch,
        )  # fmt: skip

    def _far(self) -> Floats:
        """Return how far surprises go in the log and how far they could go, down and up, as the gain feels them. [4]"""
        some = np.flatnonzero(self.whole)
        if not len(some) or not self.known_range:
            return np.zeros(4)
        sign, e = np.sign(self.whole[some]), self.surprises[some]
        felt, middle = sign * e, sign * (self.rewards[some] - e - 0.5)
        return np.array([-felt.min(), 0.5 + middle.max(), felt.max(), 0.5 - middle.min()])

    @property
    def average(self) -> float:
        """The mean row weight."""
        return 1.0 if self.row_weights is None else float(self.row_weights.mean())

    def _multiplied(self, weights: Floats) -> Floats:
        return weights if self.row_weights is None else self.row_weights * weights

    def _mean(self, terms: Floats) -> float:
        return float(np.average(terms, weights=self.row_weights))

    def _weighed(self, terms: Floats) -> Floats:
        """Return terms whose plain mean is the mean over decisions, as `EstimatorInput.contributions`."""
        if self.row_weights is None:
            return terms
        mean = self._mean(terms)
        return np.asarray(mean + self.row_weights * (terms - mean) / self.row_weights.mean())


class GainSums(NamedTuple):
    """What an interval is computed from: sums over rows, which may come in parts."""

    lower: TermSums
    upper: TermSums  # of -upper
    estimate: float
    felt: Floats  # Σ |W|, Σ W², Σ (W e)²
    largest: float  # surprise
    hidden: Floats  # Σ more, Σ less
    weights: Floats  # Σ w, Σ w² of each policy that is not the logger, [J, 2]
    products: Floats  # the same of w times the row weights
    rows: float
    bet_rows: float
    ends: RewardRange
    scale: tuple[float, float]
    known_range: bool
    far: Floats  # `Gains._far`
    stretch: float = 1.0

    def added(self, other: GainSums) -> GainSums:
        return self._replace(
            lower=self.lower.added(other.lower), upper=self.upper.added(other.upper),
            estimate=self.estimate + other.estimate, felt=self.felt + other.felt,
            largest=max(self.largest, other.largest), hidden=self.hidden + other.hidden,
            far=np.maximum(self.far, other.far),
            weights=self.weights + other.weights, products=self.products + other.products,
            rows=self.rows + other.rows, bet_rows=self.bet_rows + other.bet_rows,
        )  # fmt: skip

    @property
    def unshown(self) -> float:
        """The share of the decisions that the log hardly shows."""
        return float(self.hidden.max()) / self.rows

    @property
    def lost(self) -> float:
        """The mass that the mean weights say is missing beyond that."""
        unshown = self.unshown
        if not np.isfinite(self.weights).all():
            return 0.0
        beyond = 0.0 if unshown > _CLEARLY else _BEYOND
        return max(
            0.0, sum(_shortfall_of_gains(one, two, self.rows, beyond) for one, two in self.weights.tolist()) - unshown
        )

    @property
    def unsupported(self) -> float:
        """The share of the decisions that the log does not support."""
        return min(1.0, self.unshown + self.lost)

    @property
    def effective(self) -> float:
        """The effective sample size (Σ w)²/Σ w², of the policy that has the smallest."""
        if not np.isfinite(self.products).all():
            return 1.0
        return min((one**2 / two if two else 0.0 for one, two in self.products.tolist()), default=self.rows)

    @property
    def surprised(self) -> float:
        """Σ (W e)²/(W̄ d)²: how many of the largest surprises d the rows hold that the policies choose, of weight W̄.

        Where rewards are rare those rows may have none by chance; their own variance would not show it. Of a policy
        beside the logging policy these are the rows where the two differ: the few that it gives up count most.
        """
        total, squares, felt = self.felt.tolist()
        return felt / (squares / total * self.largest) ** 2 if total and self.largest else 0.0

    @property
    def unseen(self) -> tuple[float, float]:
        """By what one more row could move the mean, down and up, beyond the worst row of the log: W̄ (d' - d)/n."""
        total, squares, _ = self.felt.tolist()
        row = squares / total / self.rows if total else 0.0
        down, most_down, up, most_up = self.far.tolist()
        return row * max(most_down - down, 0.0), row * max(most_up - up, 0.0)


class Ends(NamedTuple):
    """An estimate and its interval, in rewards."""

    estimate: float
    low: float
    high: float
    kind: Kind
    surprises: float


def gains_of(
    log: Interactions, sides: Sequence[Side], model: Model | None, support: Support | None, predictable: bool = False,
    limit: float | None = None, share: float = 1.0, unshown: Unshown | None = None,
) -> Gains:  # fmt: skip
    """Return the terms of Σ sign V(policy).

    predictable: for sequences, m may not depend on the row or later ones. limit: of weights; None:
    `largest_supported_weight`, of rows that are a share of what is judged. unshown: of these sides, if it is known.
    """
    frame = _Frame.of(log.rewards, log.reward_range, [side.sign for side in sides])
    u = frame.scaled(log.rewards)
    weighed = [side for side in sides if not side.logged]
    weights = [side.inputs.weights for side in weighed]
    W = _total_of_gains([side.sign * side.inputs.weights for side in weighed], len(log))
    logged = sum(side.sign for side in sides if side.logged)
    kept = None if log.row_weights is None else log.thinned_rows()
    if not np.isfinite(W).all():
        return _overflowed_gains(frame, weights, log.row_weights, kept)
    limit = largest_supported_weight(W, share) if limit is None else limit
    found = _modelled_gains(weighed, frame, len(log))
    if found is None:
        unshown = None
    elif unshown is None:
        unshown = unshown_of(log, weighed, limit, support)
    if unshown is None or model is None:
        hidden = unshown_other_mass(log, weighed, limit, float(u.mean()))
    else:
        hidden = hidden_in_unshown(log, unshown, model, frame.scaled)
    played, value = found or _constant_for_gains(u, sum(side.sign for side in weighed), predictable)
    return _assembled_gains(frame, u, W, weights, logged, played, value, hidden, limit, log.row_weights, kept)


def gains_of_weights(
    rewards: Floats, ends: RewardRange | None, weights: Sequence[tuple[int, Floats | None]], predictable: bool = False,
    model: tuple[Floats, Floats] | None = None,
) -> Gains:  # fmt: skip
    """Return the terms of Σ sign V(policy) from signs and weights alone; None: the logging policy.

    model: m of the logged actions and v, in rewards; None: a constant.
    """
    frame = _Frame.of(rewards, ends, [sign for sign, _ in weights])
    u, n = frame.scaled(rewards), len(rewards)
    weighed = [(sign, one) for sign, one in weights if one is not None]
    W = _total_of_gains([sign * one for sign, one in weighed], n)
    own = [one for _, one in weighed]
    if not np.isfinite(W).all():
        return _overflowed_gains(frame, own, None, None)
    total = sum(sign for sign, _ in weighed)
    if model is None:
        played, value = _constant_for_gains(u, total, predictable)
    else:  # a difference of values has no zero
        played, value = np.clip(frame.scaled(model[0]), 0.0, 1.0), (model[1] - total * frame.low) / frame.span
    logged = sum(sign for sign, one in weights if one is None)
    hidden = Hidden(np.zeros(n), np.zeros(n), np.zeros(n))
    return _assembled_gains(frame, u, W, own, logged, played, value, hidden, largest_supported_weight(W), None, None)


class _Frame(NamedTuple):
    """Where rewards and their combination lie."""

    low: float
    span: float
    alone: bool  # one value, no difference
    known: bool

    @classmethod
    def of(cls, rewards: Floats, ends: RewardRange | None, signs: Sequence[int]) -> _Frame:
        low, high = ends or (float(rewards.min()), float(rewards.max()))
        return cls(low, high - low if high > low else 1.0, sum(signs) != 0, ends is not None)

    def scaled(self, rewards: Floats) -> Floats:
        return np.asarray((rewards - self.low) / self.span)

    @property
    def ends(self) -> RewardRange:
        return (0.0, 1.0) if self.alone else (-1.0, 1.0)

    @property
    def scale(self) -> tuple[float, float]:
        return (self.low if self.alone else 0.0, self.span)


def _overflowed_gains(frame: _Frame, weights: Sequence[Floats], row_weights: Floats | None, kept: Ints | None) -> Gains:
    unknown = np.full(len(weights[0]), math.nan)
    nothing = np.ones(len(unknown))
    return Gains(
        unknown, unknown, unknown, nothing, nothing, nothing, nothing, nothing, 1.0, tuple(weights), (0.0, 0.0),
        frame.ends, frame.scale, frame.known, row_weights, kept,
    )  # fmt: skip


def _assembled_gains(
    frame: _Frame, u: Floats, W: Floats, weights: Sequence[Floats], logged: int, played: Floats, value: Floats,
    hidden: Hidden, limit: float, row_weights: Floats | None, kept: Ints | None,
) -> Gains:  # fmt: skip
    estimate, lower, upper, whole, surprises = (np.empty(len(u)) for _ in range(5))
    floors, middle = [0.0, 0.0], u.mean()
    for start in range(0, len(u), BLOCK):  # in blocks: temporary arrays of all rows would take most of the time
        at = slice(start, start + BLOCK)
        x, V, m = u[at], W[at], played[at]
        plain, slope, shown = V * (x - m), V + logged, logged * x if logged else 0.0
        base = value[at] - hidden.model[at]
        starts = base - hidden.less[at], base + hidden.more[at]
        below, above = (one + plain + shown for one in starts)
        most = V * m
        # The smallest terms that rewards in [0, 1] allow: at u = 0, or at u = 1 where the slope is negative.
        least = starts[0] - most + np.minimum(slope, 0.0), most - starts[1] + np.minimum(-slope, 0.0)
        big = np.abs(V) > limit
        if big.any():
            v, y, k = V[big], x[big], m[big]
            below[big] += np.where(v > 0, limit * y - v * k, v * (1 - k) + limit * (1 - y)) - plain[big]
            above[big] += np.where(v > 0, v * (1 - k) - limit * (1 - y), -limit * y - v * k) - plain[big]
            least = least[0][~big], least[1][~big]
        floors = [max(floor, -float(one.min(initial=0.0))) for floor, one in zip(floors, least, strict=True)]
        estimate[at], lower[at], upper[at], whole[at] = value[at] + plain + shown, below, above, slope
        surprises[at] = x - (m if weights else middle)
    return Gains(
        estimate, lower, upper, hidden.more, hidden.less, whole, surprises, u, float(np.abs(surprises).max()),
        tuple(weights), (floors[0], floors[1]), frame.ends, frame.scale, frame.known, row_weights, kept,
    )  # fmt: skip


def ends_of_gains(sums: GainSums, delta: float, at_any_time: bool = False) -> Ends:
    """Return estimate and interval at level 1 - δ: each end is a bound at δ/2."""
    (zero, unit), (least, most) = sums.scale, sums.ends
    if not math.isfinite(sums.estimate):
        least, most = (least, most) if sums.known_range else (-math.inf, math.inf)
        return Ends(math.nan, zero + unit * least, zero + unit * most, "none", 0.0)
    few = min(sums.surprised, sums.lower.surprises), min(sums.surprised, sums.upper.surprises)
    unseen = sums.unseen
    below, kind = lower_bound(sums.lower, delta / 2, few[0], at_any_time, sums.bet_rows, unseen[0])
    above, other = lower_bound(sums.upper, delta / 2, few[1], at_any_time, sums.bet_rows, unseen[1])
    below -= (sums.stretch - 1) * (sums.lower.mean - below)
    above -= (sums.stretch - 1) * (sums.upper.mean - above)
    mean, lost = sums.estimate / sums.rows, sums.lost
    low, high = _gains_within(sums, below - lost, lost - above)
    if sums.known_range:
        mean = min(max(mean, least), most)
    low, high = min(low, mean), max(high, mean)  # an estimate lies inside its interval
    known: Kind = "none" if math.isinf(low) else kind if kind == other else "betting"
    return Ends(zero + unit * mean, zero + unit * low, zero + unit * high, known, min(few))


def _gains_within(sums: GainSums, low: float, high: float) -> RewardRange:
    """Return the interval within what is possible; everything, if the reward range is needed and not known."""
    least, most = sums.ends
    if not sums.known_range:
        return (low, high) if sums.unsupported < 1e-3 and low <= high else (-math.inf, math.inf)
    low, high = max(low, least), min(high, most)
    return (low, high) if low <= high else (least, most)


def running_gains(gains: Gains, delta: float) -> ConfidenceSequence:
    """Return the interval after each row, for the mean over the rows so far: valid at all rows together."""
    kept = slice(None) if gains.kept is None else gains.kept
    (zero, unit), (least, most), found = gains.scale, gains.ends, []
    for terms, floor in ((gains.lower, gains.floors[0]), (-gains.upper, gains.floors[1])):
        some = terms[kept] + floor
        raised = np.cumsum(np.maximum(-some, 0.0)) / np.arange(1, len(some) + 1)
        found.append(betting_lower(np.maximum(some, 0.0), delta / 2, common=False) - floor - raised)
    low, high = np.maximum(found[0] - gains.sums.lost, least), np.minimum(gains.sums.lost - found[1], most)
    return ConfidenceSequence(zero + unit * np.minimum(low, most), zero + unit * np.maximum(high, least))


# -- columns


def _modelled_gains(sides: Sequence[Side], frame: _Frame, n: int) -> tuple[Floats, Floats] | None:
    """Return m of the logged actions and v, scaled; None: there is no model."""
    if not sides:
        return np.zeros(n), np.zeros(n)
    value = np.zeros(n)
    for side in sides:
        if side.inputs.played is None or side.inputs.expected is None:
            return None
        value += side.sign * frame.scaled(side.inputs.expected)
    assert sides[0].inputs.played is not None
    return np.clip(frame.scaled(sides[0].inputs.played), 0.0, 1.0), value


def _constant_for_gains(u: Floats, signs: int, predictable: bool) -> tuple[Floats, Floats]:
    """Return the mean reward in place of m and v; of the earlier rows, where that must be predictable."""
    n = len(u)
    level = (np.cumsum(u) - u + 0.5) / np.arange(1, n + 1) if predictable else np.full(n, u.mean())
    return level, signs * level


def _total_of_gains(parts: Sequence[Floats], n: int) -> Floats:
    return np.asarray(sum(parts, np.zeros(n)))


def _shortfall_of_gains(total: float, squares: float, rows: float, beyond: float) -> float:
    """Return 1 minus the mean weight, beyond so many standard errors: mass that is not in the log."""
    if rows < 2:
        return 0.0
    mean = total / rows
    spread = beyond * math.sqrt(max(squares / rows - mean**2, 0.0) / (rows - 1))
    return min(max(1 - mean - spread, 0.0), 1.0)
