"""`fit`: train all candidates, evaluate them on held-out rows, and train the best one on all rows.

The value of a candidate on held-out rows is

    V = mean [ Σ_a π(a|x) m(x, a) + min(w, α) (r - m(x, a)) ],   w = π(a|x) / q of the policy as it would act,

the clipped doubly robust estimate, with a reward model m fitted within the held-out rows. The choice maximises the
pessimistic value V - z e, with z for all candidates jointly (Bonferroni): a lower confidence bound. This is the
learners' pessimism with the standard error e of the estimate instead of its proxy, which does not account for rare
rewards. With n held-out rows and standard deviation s of their values,

    e² = s²/n + (w̄ d/n)²,   w̄ = Σ w²/Σ w,   d = max |r - m|:

as if there were one more row with the largest surprise d in the log, and the weight of a row that the policy chooses.
Without it, a policy that meets none of a few rewards would seem certain of its value. Clipped values are too low where
large weights meet good surprises: the upper confidence bound is that of the clipped or of the unclipped estimate,
whichever is higher.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.evaluation.calibration import FEWEST, propensity_calibration
from o2pl.evaluation.estimators import EstimatorInput, EstimatorSettings, row_values
from o2pl.evaluation.intervals import check_delta, normal_interval, one_more_row
from o2pl.evaluation.logs import as_log, with_numbers
from o2pl.evaluation.propensities import estimate_propensities
from o2pl.evaluation.reward_models import fit_rewards
from o2pl.evaluation.values import columns_of, never_logged
from o2pl.fitting.candidates import Candidate, candidates_for, guessed_range, named
from o2pl.interactions import Interactions
from o2pl.learners.targets import as_target
from o2pl.objectives.weights import clip_weights
from o2pl.protocols import Array, Floats, Ints
from o2pl.validation import RewardRange, check_number

FEW = 30_000  # with fewer rows, every row is held out once; otherwise a quarter of the rows
_FOLDS, _SHARE = 3, 4
_SURE = 0.01  # p-values below this are reported

Kept = Callable[[str, Callable[[], Array]], Array]  # returns the cached result of a name, or computes it
Told = Callable[[str, int, int], None]  # progress: candidate, parts done, parts in total


@dataclass(frozen=True)
class Judged:
    """The value of a candidate on held-out rows."""

    name: str
    value: float
    low: float  # the pessimistic value: a joint lower confidence bound
    high: float
    gain: float  # gain over the logging policy, on the same rows
    gain_low: float
    effective: float  # effective sample size

    @property
    def better(self) -> bool:
        """Whether it is better than the logging policy, with confidence."""
        return self.gain_low > 0


@dataclass(frozen=True, eq=False)
class Fit:
    """The result of `fit`. `print` shows a table; `figure()` draws it."""

    learner: Any  # the chosen learner, trained on all rows
    chosen: Judged
    candidates: tuple[Judged, ...]  # sorted by pessimistic value
    logged: float  # mean reward of the held-out rows, under the logging policy
    rows: int
    held_out: int
    delta: float
    warnings: tuple[str, ...] = ()
    reward_range: RewardRange = (0.0, 1.0)
    sample: int | None = None  # rows on which the candidates were compared; None: all

    @property
    def verdict(self) -> str:
        """The result as a sentence."""
        sure = f"with {1 - self.delta:.0%} confidence (jointly for all candidates)"
        if self.chosen.better:
            gain = f"by at least {self.chosen.gain_low:.4f}"
            return f"{self.chosen.name} is better than the logging policy, {gain}, {sure}"
        return f"{self.chosen.name} and the logging policy cannot be distinguished, {sure}"

    def __str__(self) -> str:
        from o2pl.fitting.render import as_text

        return as_text(self)

    def figure(self) -> Any:
        """Draw all candidates with their intervals, and the logging policy, as a matplotlib figure."""
        from o2pl.fitting.render import draw_fit

        return draw_fit(self)


def fit(
    log: Any,
    *,
    candidates: Sequence[Any] | None = None,
    reward_range: RewardRange | None = None,
    delta: float = 0.05,
    seed: int = 0,
    kept: Kept | None = None,
    told: Told | None = None,
    learned: Callable[[Candidate], Any] | None = None,
) -> Fit:
    """Learn from a log with several learners, and keep the one with the highest pessimistic value on held-out rows.

    `log`: as for `evaluate`. `candidates`: learners; None: `Bandit`, its members one by one, and `O2PL` with several
    classes, λ and L2, chosen by the kind of log. With fewer than 30,000 rows, three folds are held out in turn;
    otherwise a quarter of the rows. `reward_range`: None: that of the log, or 0 to 1 if all rewards are within, or the
    observed range. `kept(name, compute)`: a cache, to resume after a restart; `told(name, done, of)`: a progress
    callback. `learned(candidate)`: returns the chosen learner trained on all rows, if `log` is only a sample.
    """
    check_delta(delta)
    check_number("seed", seed, 0)
    rows = as_log(log, reward_range)
    rows = rows if rows.reward_range else rows.changed(reward_range=guessed_range(rows.rewards))
    known = rows.has_propensities
    rows = rows if known else estimate_propensities(rows, seed=seed)
    ends: Any = rows.reward_range
    chosen_from = candidates_for(rows, ends, seed) if candidates is None else named(candidates)
    parts = held_out_parts(len(rows), seed)
    judges = [_Judge(with_numbers(rows)[own]) for own, _ in parts]
    keep: Kept = kept or (lambda name, compute: compute())
    readings: dict[Any, Interactions] = {}
    found: dict[str, list[Floats]] = {one.name: [] for one in chosen_from}
    done, total = 0, len(parts) * len(chosen_from)
    for candidate in chosen_from:
        for place, ((own, rest), judge) in enumerate(zip(parts, judges, strict=True)):

            def values(
                candidate: Candidate = candidate, own: Ints = own, rest: Ints = rest, judge: _Judge = judge
            ) -> Floats:
                read = _read_once(rows, candidate, readings)
                return judge.values(candidate.made().fit(read[rest]), read.contexts[own])

            found[candidate.name].append(keep(f"{candidate.name}, part {place}", values))
            done += 1
            if told is not None:
                told(candidate.name, done, total)
    held_out = (EstimatorInput(rows.rewards[own], np.ones(len(own)), row_weights=_some(rows, own)) for own, _ in parts)
    rewards = np.concatenate([one.contributions(one.rewards) for one in held_out])
    each = delta / len(chosen_from)
    judged = [
        _judged(name, _Values(*np.concatenate(part, axis=1)), rewards, each, ends) for name, part in found.items()
    ]
    judged.sort(key=lambda one: one.low, reverse=True)
    winner = next(one for one in chosen_from if one.name == judged[0].name)
    learner = winner.made().fit(rows) if learned is None else learned(winner)
    return Fit(
        learner, judged[0], tuple(judged), float(rewards.mean()), len(rows), len(rewards), delta,
        _warnings(rows, judged[0], known), ends,
    )  # fmt: skip


def held_out_parts(n: int, seed: int) -> list[tuple[Ints, Ints]]:
    """Return pairs of held-out rows and training rows."""
    if n < 2 * _FOLDS:
        raise InvalidInput(f"fit: found {n} rows, expected at least {2 * _FOLDS}")
    order = np.random.default_rng(seed).permutation(n)
    if n < FEW:
        return [(np.flatnonzero(order % _FOLDS == k), np.flatnonzero(order % _FOLDS != k)) for k in range(_FOLDS)]
    return [(np.flatnonzero(order % _SHARE == 0), np.flatnonzero(order % _SHARE != 0))]


def _some(rows: Interactions, own: Ints) -> Floats | None:
    return None if rows.row_weights is None else rows.row_weights[own]


def _read_once(rows: Interactions, candidate: Candidate, readings: dict[Any, Interactions]) -> Interactions:
    """Return the log with contexts encoded for this learner; learners with the same encoding share it."""
    learner: Any = candidate.learner
    kind = (getattr(learner, "_action_sets", False), getattr(learner, "_hashed", None))
    if kind not in readings:
        readings[kind] = replace(rows, contexts=learner._reader_for(rows).rows(rows.contexts))
    return readings[kind]


class _Judge:
    """Evaluates policies on held-out rows."""

    def __init__(self, rows: Interactions) -> None:
        self.rows = rows
        self.alpha = EstimatorSettings.theory(len(rows)).clip
        self.model = fit_rewards(rows)

    def values(self, learner: Any, contexts: Any) -> Floats:
        """Return rows of `_Values`. [5, n]"""
        rows, n = self.rows, len(self.rows)
        target = as_target(learner, rows, contexts=contexts)
        (columns,) = columns_of(rows, [target], self.model)
        weights = columns.inputs.weights
        cut = np.asarray(clip_weights(weights, self.alpha))
        clipped = row_values("dr", columns.inputs._replace(weights=cut))
        whole = row_values("dr", columns.inputs) if np.isfinite(weights).all() else np.full(n, np.inf)
        counted = cut if rows.row_weights is None else cut * rows.row_weights / rows.row_weights.mean()
        assert columns.inputs.played is not None  # a learner has probabilities of all actions
        surprises = np.abs(rows.rewards - columns.inputs.played)
        return np.stack([clipped, whole, counted, surprises, np.full(n, never_logged(rows, columns))])


class _Values(NamedTuple):
    """What is known of a candidate from each held-out row. [n]"""

    clipped: Floats  # terms of V
    whole: Floats  # with unclipped weights; ∞ if one overflowed
    weights: Floats  # clipped, times the row's own
    surprises: Floats  # |r - m|
    never: Floats  # mass of actions that the log does not contain


def _judged(name: str, values: _Values, rewards: Floats, delta: float, ends: RewardRange) -> Judged:
    """Return the result from all held-out rows; intervals at level 1 - δ."""
    total, squares = float(values.weights.sum()), float(values.weights @ values.weights)
    one_more = one_more_row(values.weights, values.surprises)
    low, high = _interval(values.clipped, one_more, delta)
    gain_low, _ = _interval(values.clipped - rewards, one_more, delta)
    highest = _interval(values.whole, one_more, delta)[1] if np.isfinite(values.whole).all() else ends[1]
    unknown = float(values.never.mean()) * (ends[1] - ends[0])  # actions that were never logged may earn any reward
    return Judged(
        name, float(values.clipped.mean()), max(low - unknown, ends[0]), min(max(high, highest) + unknown, ends[1]),
        float((values.clipped - rewards).mean()), gain_low - unknown, total**2 / squares if squares else 0.0,
    )  # fmt: skip


def _interval(values: Floats, one_more: float, delta: float) -> tuple[float, float]:
    low, high = normal_interval(values, delta, one_more)
    mean = float(values.mean())
    return (mean, mean) if math.isinf(low) and not np.ptp(values) else (low, high)


def _warnings(rows: Interactions, chosen: Judged, known: bool) -> tuple[str, ...]:
    found = []
    numbers = with_numbers(rows[-50_000:].thinned())
    if not known:
        found.append(
            "The log has no propensities: they were estimated from the contexts. `o2pl evaluate` reports how wrong they"
            " may be before the result changes."
        )
    elif len(numbers) >= FEWEST:
        tested = propensity_calibration(numbers)
        if tested.p_value < _SURE:
            found.append(
                f"The logged propensities do not match the actions (p = {tested.p_value:.1g}): do not trust any"
                " estimate"
                " before this is explained. `o2pl describe` shows where."
            )
    if (rows.propensities == 1).all() and not rows.continuous:
        found.append("All propensities are 1: either actions were not random, or propensities were not recorded.")
    if chosen.effective < 50:
        found.append(
            f"The estimate of {chosen.name} has an effective sample size of {chosen.effective:.0f}:"
            " its interval may be too short."
        )
    return tuple(found)
