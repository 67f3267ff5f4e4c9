"""Comparison of several policies on one log: the best, those that are worse with confidence, and rows still needed.

All statements hold jointly, and at every row of the log, with probability ≥ 1 - δ. Half of δ is for the intervals of
the J values (δ/2J each), half for the differences of all J(J - 1) ordered pairs, so that the leader may be chosen from
the data. Differences are taken row by row, so that common noise cancels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.evaluation import findings
from o2pl.evaluation.calibration import propensity_calibration
from o2pl.evaluation.estimators import EstimatorInput, estimator_value
from o2pl.evaluation.evaluated_logs import as_evaluated_log, numeric_evaluated_log
from o2pl.evaluation.gains import Gains, ends_of_gains, gains_of, running_gains
from o2pl.evaluation.intervals import check_interval_delta
from o2pl.evaluation.judgement import Judgement, judge, judged_among_candidates, judgement_of_candidate
from o2pl.evaluation.reward_models import fit_rewards
from o2pl.evaluation.running_rewards import running_rewards
from o2pl.evaluation.support import support_of
from o2pl.evaluation.unshown import Side
from o2pl.evaluation.unusable import unusable_log
from o2pl.evaluation.values import columns_for_values
from o2pl.learners.targets import Target, as_target, with_target_names
from o2pl.protocols import Array, Ints, Seed
from o2pl.validation import RewardRange, check_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FEWEST = 30  # segments with fewer rows are skipped
_SLACK = 1.1  # for the logarithms in anytime-valid widths, which grow slowly with the rows


@dataclass(frozen=True)
class CandidateValue:
    """One policy. All intervals and comparisons with the leader hold jointly."""

    name: str
    value: float  # DR; SNIPS if π is known only for the logged actions
    low: float
    high: float
    behind: float  # lower confidence bound of the leader's advantage; 0 for the leader
    gap: float  # estimate of the leader's advantage
    effective: float  # effective sample size
    out_at: int | None  # first row after which the leader was ahead with confidence; None: it is not
    judgement: Judgement | None = None  # of the leader against it; None for the leader

    @property
    def eliminated(self) -> bool:
        return self.judgement is not None and self.judgement.better

    @property
    def said(self) -> str:
        return judgement_of_candidate(self.judgement, self.out_at)


@dataclass(frozen=True, eq=False)
class Contest:
    """The candidates on some rows, sorted by value."""

    rows: str  # "all", or the name of a segment
    n: int
    candidates: tuple[CandidateValue, ...]

    @property
    def leader(self) -> CandidateValue:
        return self.candidates[0]

    @property
    def left(self) -> tuple[CandidateValue, ...]:
        """The candidates that may still be the best."""
        return tuple(one for one in self.candidates if not one.eliminated)

    @property
    def decided(self) -> bool:
        return len(self.left) == 1

    @property
    def rows_needed(self) -> float:
        """Estimated additional rows until all others are worse with confidence: widths decrease as 1/√n."""
        needed = [more_rows_for_candidates(one.gap, one.gap - one.behind, self.n) for one in self.left[1:]]
        return max(needed, default=0.0)


@dataclass(frozen=True, eq=False)
class Candidates:
    """The result of `evaluate` for several policies. `print` shows a table; `figure()` draws it."""

    overall: Contest
    segments: tuple[Contest, ...]
    delta: float
    warnings: tuple[str, ...]
    doubt: str = ""
    rows_per_day: float | None = None

    @property
    def best(self) -> str:
        """The name of the leading policy."""
        return self.overall.leader.name

    @property
    def verdict(self) -> str:
        return self.said(self.overall)

    def said(self, contest: Contest) -> str:
        """Return the result on all rows, or in a segment, as a sentence."""
        left = [one.name for one in contest.left]
        return judged_among_candidates(left, len(contest.candidates), 1 - self.delta, self.doubt, self.wait(contest))

    def wait(self, contest: Contest) -> str:
        """Return the expected number of rows (or days) until a decision, as text."""
        needed = contest.rows_needed
        if needed == 0:
            return "decided"
        if math.isinf(needed) or needed > 1000 * contest.n:
            return "no reasonable number of rows would separate them"
        more = _rounded_rows_for_candidates(needed)
        rows = f"about {more:,} more rows are needed to decide, if the estimated differences are right"
        if not self.rows_per_day:
            return rows
        return f"{rows}: {needed / self.rows_per_day:,.1f} days at {self.rows_per_day:,.0f} rows per day"

    def __str__(self) -> str:
        from o2pl.evaluation.candidates_report import candidates_text

        return candidates_text(self)

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(str(self))}</pre>"

    def figure(self) -> Figure:
        """Draw the values with confidence intervals (eliminated policies in grey), one panel per segment."""
        from o2pl.evaluation.candidates_report import draw_candidates

        return draw_candidates(self)


def more_rows_for_candidates(gap: float, width: float, n: int) -> float:
    """Return the rows needed until width √(n / (n + more)) ≤ gap; ∞ without a gap."""
    if gap <= 0 or not math.isfinite(width):
        return math.inf
    return max(0.0, n * (_SLACK * (width / gap) ** 2 - 1))


def _rounded_rows_for_candidates(rows: float) -> int:
    """Round to two digits."""
    return int(float(f"{rows:.2g}"))


def as_candidates(given: object) -> dict[str, Any] | None:
    """Return named policies if several are given (a dictionary, or a list of policies), else None."""
    if isinstance(given, Mapping):
        return {str(name): policy for name, policy in given.items()}
    if not isinstance(given, list) or not len(given) or isinstance(given[0], int | float | np.number):
        return None
    if isinstance(given[0], list | tuple) and isinstance(given[0][0], int | float | np.number):
        return None  # a table of probabilities
    names = [one if isinstance(one, str) else f"policy {k}" for k, one in enumerate(given)]
    return dict(zip(names, given, strict=True))


def evaluate_candidates(
    log: object,
    policies: Mapping[str, object],
    *,
    segments: object = None,
    delta: float = 0.05,
    reward_range: RewardRange | None = None,
    rows_per_day: float | None = None,
    seed: Seed = 0,
) -> Candidates:
    """Compare several named policies on one log, with logged propensities. The reward range is required.

    `segments`: a label per row, or the name of a context column. Each segment is compared separately. The statements
    about all rows and all segments hold jointly: each gets its share of δ.
    """
    check_interval_delta(delta)
    if rows_per_day is not None:
        check_number("rows_per_day", rows_per_day, 0.0, open_low=True)
    if len(policies) < 2:
        raise InvalidInput(f"policy: found {len(policies)} candidates, expected two or more, or a single policy")
    given = with_target_names(as_evaluated_log(log, reward_range), *policies.values())
    if given.reward_range is None or not given.has_propensities:
        lacking = "reward_range" if given.reward_range is None else "propensities"
        raise InvalidInput(f"{lacking}: found None, required for several candidates")
    rows = numeric_evaluated_log(given)
    targets = [as_target(policy, rows, name, contexts=given.contexts) for name, policy in policies.items()]
    columns = columns_for_values(rows, targets, fit_rewards(rows, seed=seed) if len(rows) > 1 else None)
    labels = _candidate_segments(given, segments)
    parts = [] if labels is None else [(str(one), np.flatnonzero(labels == one)) for one in np.unique(labels)]
    names, inputs = list(policies), [one.inputs for one in columns]
    doubt = unusable_log(rows, propensity_calibration(rows.thinned()))
    contests = [_Contest("all", None, inputs, rows)]
    contests += [_Contest(name, own, inputs, rows) for name, own in parts if len(own) >= _FEWEST]
    _fill_candidates(contests, rows, targets, names, delta / (1 + len(parts)), doubt, seed)
    overall, *others = (one.done(names) for one in contests)
    return Candidates(
        overall, tuple(others), delta, _candidate_warnings(rows, overall, names, parts, doubt), doubt, rows_per_day
    )


def _candidate_segments(log: Interactions, segments: object) -> Array | None:
    if segments is None:
        return None
    if isinstance(segments, str):
        named = log.form == "frame"
        if not named or segments not in log.contexts.columns:
            known = ", ".join(log.contexts.columns) if named else "which have no names"
            raise InvalidInput(
                f"segments: found {segments!r}, expected labels or one of the context's columns: {known}"
            )
        segments = log.contexts[segments]
    labels = np.asarray(segments)
    if labels.shape != (len(log),):
        raise InvalidInput(f"segments: found shape {labels.shape}, expected one label per row ({len(log)})")
    return labels.astype(str)


class _Contest:
    """A contest in the making: the rows, and what is known of every candidate."""

    def __init__(self, label: str, own: Ints | None, inputs: Sequence[EstimatorInput], log: Interactions) -> None:
        self.label, self.own = label, own
        mine = list(inputs) if own is None else [_some_rows_of_candidate(one, own) for one in inputs]
        self.n, self.effective = len(mine[0].rewards), [one.effective_sample_size for one in mine]
        self.values = [_candidate_value(one) for one in mine]
        self.order = sorted(range(len(mine)), key=lambda j: (math.isnan(self.values[j]), -self.values[j]))
        self.found: dict[int, CandidateValue] = {}
        if log.row_weights is not None:  # bounds count each row once
            kept = log.thinned_rows()
            self.n = len(kept) if own is None else int(np.isin(own, kept).sum())

    @property
    def leader(self) -> int:
        return self.order[0]

    def rows_of(self, gains: Gains) -> Gains:
        return gains if self.own is None else gains.rows(self.own)

    def out_at(self, gains: Gains, delta: float) -> int:
        """Return the first row after which the leader is ahead."""
        row = int(np.argmax(running_gains(gains, delta).lower > 0))
        return row if gains.kept is None else int(gains.kept[row])

    def done(self, names: list[str]) -> Contest:
        return Contest(self.label, self.n, tuple(self.found[j] for j in self.order))


def _fill_candidates(
    contests: Sequence[_Contest], log: Interactions, targets: Sequence[Target], names: list[str], delta: float,
    doubt: str, seed: Seed,
) -> None:  # fmt: skip
    """Judge every candidate in every contest: its value, and the lower bound of the leader's advantage."""
    model, support, count = running_rewards(log, seed), support_of(log), len(names)
    sides = [
        Side(target, one.inputs) for target, one in zip(targets, columns_for_values(log, targets, model), strict=True)
    ]
    level = 2 * delta / (2 * count * (count - 1))  # of an interval whose lower end has half of it
    for j, side in enumerate(sides):
        alone = gains_of(log, [side], model, support, True)
        values = [ends_of_gains(one.rows_of(alone).sums, delta / (2 * count), True) for one in contests]
        ahead: dict[int, Gains] = {}
        for contest, value in zip(contests, values, strict=True):
            leader, judgement, out_at, behind = contest.leader, None, None, 0.0
            if j != leader:
                if leader not in ahead:
                    pair = [sides[leader], side._replace(sign=-1)]
                    ahead = {leader: gains_of(log, pair, model, support, True)}
                mine = contest.rows_of(ahead[leader])
                gap = ends_of_gains(mine.sums, level, True)
                judgement = judge(
                    names[leader], names[j], gap.estimate, gap.low, gap.high, delta=delta, kind=gap.kind,
                    rows=contest.n, effective=mine.sums.effective, unsupported=mine.sums.unsupported, doubt=doubt,
                )  # fmt: skip
                behind = gap.low
                out_at = contest.out_at(mine, level) if judgement.better else None
            point = contest.values[j]
            reach = (value.low, value.high) if math.isnan(point) else (min(value.low, point), max(value.high, point))
            contest.found[j] = CandidateValue(
                names[j], point, *reach, behind, contest.values[leader] - point, contest.effective[j], out_at, judgement
            )


def _candidate_value(inputs: EstimatorInput) -> float:
    """Return DR; without a model Σ w r / Σ w; nan if all weights are 0 or one overflowed."""
    if not inputs.weights.any():
        return math.nan
    value = estimator_value("snips" if inputs.expected is None else "dr", inputs)
    return value if math.isfinite(value) else math.nan


def _some_rows_of_candidate(inputs: EstimatorInput, own: object) -> EstimatorInput:
    some: Any = {name: None if column is None else column[own] for name, column in inputs._asdict().items()}
    return EstimatorInput(**some)


def _candidate_warnings(
    log: Interactions, overall: Contest, names: list[str], parts: list[tuple[str, Any]], doubt: str
) -> tuple[str, ...]:
    said = f"{doubt[:1].upper()}{doubt[1:]}."
    if "propensities" in doubt:
        said += " Evaluate a single policy instead: that works with estimated propensities."
    found = [*([said] if doubt else []), *findings.finding_of_uneven_rows(log, at_any_time=True)]
    effective = {one.name: one.effective for one in overall.candidates}
    weak = [name for name in names if effective[name] < 30]
    if weak:
        found.append(
            f"The log has little information about {', '.join(weak[:5])}: the effective sample size is below 30."
        )
    few = [name for name, own in parts if len(own) < _FEWEST]
    if few:
        found.append(f"Segments with fewer than {_FEWEST} rows are skipped: {', '.join(few[:5])}.")
    return tuple(found)
