"""`fit`: train all candidates, evaluate them on held-out rows, and train the best one on all rows.

Each candidate's value on held-out rows, and its gain over the logging policy, are judged as everywhere
(`evaluation.held_out`), jointly for all candidates (Bonferroni). The choice maximises the pessimistic value: the lower
end's normal bound, in which what the log hardly shows counts at its worst, and which has a standard error

    e² = s²/n + (w̄ d/n)²,   w̄ = Σ w²/Σ w,   d = max |r - m|:

as if there were one more row with the largest surprise d in the log, and the weight of a row that the policy chooses.
Without it, a policy that meets none of a few rewards would seem certain of its value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.encode import Encoder
from o2pl.errors import InvalidInput
from o2pl.evaluation.estimators import EstimatorInput
from o2pl.evaluation.evaluated_logs import as_evaluated_log, numeric_evaluated_log
from o2pl.evaluation.held_out import HeldOut, held_out_doubts, held_out_evidence
from o2pl.evaluation.intervals import check_interval_delta
from o2pl.evaluation.judgement import Judgement
from o2pl.evaluation.propensities import estimate_propensities
from o2pl.fitting.candidate_learners import (
    Candidate,
    candidates_for,
    guessed_range_for_candidate_learners,
    named_candidate_learners,
)
from o2pl.learners.targets import Target, as_target
from o2pl.protocols import Array, Floats, Ints
from o2pl.validation import RewardRange, check_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW = 30_000  # with fewer rows, every row is held out once; otherwise a quarter of the rows
_FOLDS, _SHARE = 3, 4

Part = tuple[Ints, Ints]  # held-out rows, and those learned from
Kept = Callable[[str, Callable[[], Array]], Array]  # returns the cached result of a name, or computes it
Told = Callable[[str, int, int], None]  # progress: candidate, parts done, parts in total


@dataclass(frozen=True)
class Judged:
    """A candidate on held-out rows. Intervals and judgements hold jointly."""

    name: str
    value: float
    low: float
    high: float
    pessimistic: float  # the pessimistic value, by which the choice is made
    judgement: Judgement  # of its gain over the logging policy
    effective: float  # effective sample size

    @property
    def gain(self) -> float:
        """The estimated gain over the logging policy."""
        return self.judgement.estimate

    @property
    def gain_low(self) -> float:
        return self.judgement.low

    @property
    def better(self) -> bool:
        return self.judgement.better


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
    estimated: bool = False  # propensities are estimates

    @property
    def judgement(self) -> Judgement:
        """Whether the chosen candidate is better than the logging policy."""
        return self.chosen.judgement

    @property
    def verdict(self) -> str:
        """The result as a sentence."""
        least = f", by at least {self.chosen.gain_low:.4f}" if self.chosen.better else ""
        if_right = ", if the estimated propensities are right" if self.estimated else ""
        return self.judgement.sentence(f" (jointly for all candidates){least}{if_right}")

    def __str__(self) -> str:
        from o2pl.fitting.fit_report import fit_text

        return fit_text(self)

    def figure(self) -> Figure:
        """Draw all candidates with their intervals, and the logging policy, as a matplotlib figure."""
        from o2pl.fitting.fit_report import draw_fit

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
    check_interval_delta(delta)
    check_number("seed", seed, 0)
    rows = as_evaluated_log(log, reward_range)
    rows = rows if rows.reward_range else rows.changed(reward_range=guessed_range_for_candidate_learners(rows.rewards))
    known = rows.has_propensities
    rows = rows if known else estimate_propensities(rows, seed=seed)
    ends: Any = rows.reward_range
    chosen_from = candidates_for(rows, ends, seed) if candidates is None else named_candidate_learners(candidates)
    parts = held_out_parts_for_choice(len(rows), seed)
    numbers = numeric_evaluated_log(rows)
    judges = [HeldOut(numbers[own], 1 / len(parts)) for own, _ in parts]
    keep: Kept = kept or (lambda name, compute: compute())
    readings: dict[Any, Interactions] = {}
    found: dict[str, list[Floats]] = {one.name: [] for one in chosen_from}
    pooled = numbers[np.concatenate([own for own, _ in parts])]
    done, total = 0, len(parts) * len(chosen_from)
    for candidate in chosen_from:
        for place in range(len(parts)):

            def values(candidate: Candidate = candidate, place: int = place) -> Floats:
                return _held_out_for_choice(
                    candidate, place, _read_once_for_choice(rows, candidate, readings), parts, judges
                )

            found[candidate.name].append(keep(f"{candidate.name}, part {place}", values))
            done += 1
            if told is not None:
                told(candidate.name, done, total)
    doubt = held_out_doubts(numbers, not known)
    each = delta / len(chosen_from)
    judged = [_judged_for_choice(name, part, pooled, parts, each, delta, doubt) for name, part in found.items()]
    judged.sort(key=lambda one: one.pessimistic, reverse=True)
    winner = next(one for one in chosen_from if one.name == judged[0].name)
    learner = winner.made().fit(rows) if learned is None else learned(winner)
    logged = EstimatorInput(pooled.rewards, np.ones(len(pooled)), row_weights=pooled.row_weights)
    return Fit(
        learner, judged[0], tuple(judged), logged.mean(pooled.rewards), len(rows), len(pooled), delta,
        _choice_warnings(judged[0], known, doubt), ends, estimated=not known,
    )  # fmt: skip


def _held_out_for_choice(
    candidate: Candidate, place: int, read: Interactions, parts: Sequence[Part], judges: Sequence[HeldOut]
) -> Floats:
    """Return the columns of a policy learned without a part, in that part, and its estimates in the next. Flat."""
    learner = candidate.made().fit(read[parts[place][1]])

    def target(k: int) -> Target:
        return as_target(learner, judges[k].rows, contexts=read.contexts[parts[k][0]])

    after = (place + 1) % len(parts)
    own = judges[place].values(target(place)).ravel()
    return own if after == place else np.append(own, judges[after].estimates(target(after)))


def _judged_for_choice(
    name: str, flat: Sequence[Floats], pooled: Interactions, parts: Sequence[Part], each: float, delta: float,
    doubt: str,
) -> Judged:  # fmt: skip
    sizes = [len(own) for own, _ in parts]
    after = [len(one) - sizes[(k + 1) % len(parts)] * (len(parts) > 1) for k, one in enumerate(flat)]
    columns = [one[:end].reshape(-1, size) for one, end, size in zip(flat, after, sizes, strict=True)]
    others = [flat[k - 1][after[k - 1] :] for k in range(len(parts))]
    found = held_out_evidence(
        name, columns, pooled, each, doubt, others=np.concatenate(others) if len(parts) > 1 else None
    )
    judgement = replace(found.judgement, confidence=1 - delta)  # jointly
    ends, effective = found.value, found.judgement.effective
    return Judged(name, ends.estimate, ends.low, ends.high, found.pessimistic, judgement, effective)


def held_out_parts_for_choice(n: int, seed: int) -> list[Part]:
    """Return pairs of held-out rows and training rows."""
    if n < 2 * _FOLDS:
        raise InvalidInput(f"fit: found {n} rows, expected at least {2 * _FOLDS}")
    order = np.random.default_rng(seed).permutation(n)
    if n < FEW:
        return [(np.flatnonzero(order % _FOLDS == k), np.flatnonzero(order % _FOLDS != k)) for k in range(_FOLDS)]
    return [(np.flatnonzero(order % _SHARE == 0), np.flatnonzero(order % _SHARE != 0))]


def _read_once_for_choice(rows: Interactions, candidate: Candidate, readings: dict[Any, Interactions]) -> Interactions:
    """Return the log with contexts encoded for this learner; learners with the same encoding share it."""
    learner: Any = candidate.learner
    encoder: Encoder = learner._encoder_for(rows)
    kind = encoder.items, encoder.hashed
    if kind not in readings:
        readings[kind] = replace(rows, contexts=encoder.encode(rows.contexts))
    return readings[kind]


def _choice_warnings(chosen: Judged, known: bool, doubt: str) -> tuple[str, ...]:
    found = []
    if not known:
        found.append(
            "The log has no propensities: they were estimated from the contexts. `o2pl evaluate` reports how wrong they"
            " may be before the result changes."
        )
    if doubt:
        found.append(f"{doubt[:1].upper()}{doubt[1:]}. `o2pl describe` shows the log.")
    if chosen.effective < 50:
        found.append(f"The estimate of {chosen.name} has an effective sample size of {chosen.effective:.0f}.")
    return tuple(found)
