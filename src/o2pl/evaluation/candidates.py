"""Comparison of several policies on one log: the best, those that are worse with confidence, and rows still needed.

All statements hold jointly, and at every row of the log, with probability ≥ 1 - δ. Half of δ is for the intervals of
the J values (δ/2J each), half for the differences of all J(J - 1) ordered pairs, so that the leader may be chosen from
the data. Differences are taken row by row, so that common noise cancels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from o2pl.contexts import Frame
from o2pl.errors import InvalidInput
from o2pl.evaluation import findings
from o2pl.evaluation.calibration import propensity_calibration
from o2pl.evaluation.estimators import EstimatorInput, value_of
from o2pl.evaluation.intervals import bounded_column, check_delta
from o2pl.evaluation.logs import as_log, with_numbers
from o2pl.evaluation.reward_models import fit_rewards
from o2pl.evaluation.sequences import confidence_sequence
from o2pl.evaluation.values import columns_of
from o2pl.interactions import Interactions
from o2pl.learners.targets import as_target, with_names
from o2pl.objectives.improvement import improvement_values
from o2pl.protocols import Array, Floats, Seed
from o2pl.theory.betting import betting_lower
from o2pl.theory.betting_end import BettingEnds, End
from o2pl.validation import RewardRange, check_number

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
    out_at: int | None  # row from which it is worse than the leader with confidence; None: it is not

    @property
    def eliminated(self) -> bool:
        return self.out_at is not None


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
        needed = [more_rows(one.gap, one.gap - one.behind, self.n) for one in self.left[1:]]
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
        if self.doubt:
            return f"no conclusion: {self.doubt}"
        sure = f"with {1 - self.delta:.0%} confidence at any time"
        if self.overall.decided:
            return f"{self.best} is the best of {len(self.overall.candidates)}, {sure}"
        names = ", ".join(one.name for one in self.overall.left[:5])
        more = len(self.overall.left) - 5
        others = f" and {more} more" if more > 0 else ""
        out = len(self.overall.candidates) - len(self.overall.left)
        gone = f"; {out} worse {sure}" if out else ""
        return f"{names}{others} may each be the best{gone}; {self.wait(self.overall)}"

    def wait(self, contest: Contest) -> str:
        """Return the expected number of rows (or days) until a decision, as text."""
        needed = contest.rows_needed
        if needed == 0:
            return "decided"
        if math.isinf(needed) or needed > 1000 * contest.n:
            return "no reasonable number of rows would separate them"
        rows = f"about {_rounded(needed):,} more rows are needed to decide, if the estimated differences are right"
        if not self.rows_per_day:
            return rows
        return f"{rows}: {needed / self.rows_per_day:,.1f} days at {self.rows_per_day:,.0f} rows per day"

    def __str__(self) -> str:
        from o2pl.evaluation.candidates_report import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(str(self))}</pre>"

    def figure(self) -> Any:
        """Draw the values with confidence intervals (eliminated policies in grey), one panel per segment."""
        from o2pl.evaluation.candidates_report import draw_candidates

        return draw_candidates(self)


def more_rows(gap: float, width: float, n: int) -> float:
    """Return the rows needed until width √(n / (n + more)) ≤ gap; ∞ without a gap."""
    if gap <= 0 or not math.isfinite(width):
        return math.inf
    return max(0.0, n * (_SLACK * (width / gap) ** 2 - 1))


def _rounded(rows: float) -> int:
    """Round to two digits."""
    return int(float(f"{rows:.2g}"))


def as_candidates(given: Any) -> dict[str, Any] | None:
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
    log: Any,
    policies: Mapping[str, Any],
    *,
    segments: Any = None,
    delta: float = 0.05,
    reward_range: RewardRange | None = None,
    rows_per_day: float | None = None,
    seed: Seed = 0,
) -> Candidates:
    """Compare several named policies on one log, with logged propensities. The reward range is required.

    `segments`: a label per row, or the name of a context column. Each segment is compared separately. The statements
    about all rows and all segments hold jointly: each gets its share of δ.
    """
    check_delta(delta)
    if rows_per_day is not None:
        check_number("rows_per_day", rows_per_day, 0.0, open_low=True)
    if len(policies) < 2:
        raise InvalidInput(f"policy: found {len(policies)} candidates, expected two or more, or a single policy")
    given = with_names(as_log(log, reward_range), *policies.values())
    if given.reward_range is None or not given.has_propensities:
        lacking = "reward_range" if given.reward_range is None else "propensities"
        raise InvalidInput(f"{lacking}: found None, required for several candidates")
    rows = with_numbers(given)
    targets = [as_target(policy, rows, name, contexts=given.contexts) for name, policy in policies.items()]
    columns = columns_of(rows, targets, fit_rewards(rows, seed=seed) if len(rows) > 1 else None)
    labels = _labels(given, segments)
    parts = [] if labels is None else [(str(one), np.flatnonzero(labels == one)) for one in np.unique(labels)]
    share = delta / (1 + len(parts))
    names, inputs = list(policies), [one.inputs for one in columns]
    tested = propensity_calibration(rows.thinned())
    fault = findings.fault(rows, tested)
    overall = _contest("all", rows, names, inputs, share)
    return Candidates(
        overall,
        tuple(_contest(name, rows, names, inputs, share, own) for name, own in parts if len(own) >= _FEWEST),
        delta,
        _warnings(rows, overall, names, parts, fault),
        fault.partition(":")[0],
        rows_per_day,
    )


def _labels(log: Interactions, segments: Any) -> Array | None:
    if segments is None:
        return None
    if isinstance(segments, str):
        if not isinstance(log.contexts, Frame) or segments not in log.contexts.columns:
            known = ", ".join(log.contexts.columns) if isinstance(log.contexts, Frame) else "which have no names"
            raise InvalidInput(
                f"segments: found {segments!r}, expected labels or one of the context's columns: {known}"
            )
        segments = log.contexts[segments]
    labels = np.asarray(segments)
    if labels.shape != (len(log),):
        raise InvalidInput(f"segments: found shape {labels.shape}, expected one label per row ({len(log)})")
    return labels.astype(str)


def _contest(
    label: str, log: Interactions, names: list[str], inputs: list[EstimatorInput], delta: float, own: Any = None
) -> Contest:
    """Return the values, the leader by estimate, and the lower bounds of its advantage over the others."""
    assert log.reward_range is not None
    low, high = log.reward_range
    inputs = inputs if own is None else [_some(one, own) for one in inputs]
    values, effective = [_value(one) for one in inputs], [one.effective_sample_size for one in inputs]
    kept = (log if own is None else log[own]).thinned_rows() if log.row_weights is not None else None
    inputs = inputs if kept is None else [_some(one, kept) for one in inputs]  # bounds count each row once
    rewards, n, count = inputs[0].rewards, len(inputs[0].rewards), len(names)
    shares = (bounded_column("rewards", rewards, low, high) - low) / (high - low)
    moves = [
        bool((one.weights == 1).all()) for one in inputs
    ]  # the logger may have been learning: its value is a mean over time
    order = sorted(range(count), key=lambda j: (math.isnan(values[j]), -values[j]))
    leader = order[0]
    found, sequences, none = [], BettingEnds(shares), np.zeros(n)
    for j in order:
        weights = inputs[j].weights
        if moves[j]:
            ends = confidence_sequence(shares, delta / (2 * count), common=False).last
        else:
            level = delta / (4 * count)
            below, above = sequences.end(weights, none, 1.0, level), sequences.end(none, weights, 1.0, level)
            ends = min(below.bound, 1.0), 1 - min(above.bound, 1.0)
        ends = ends if ends[0] <= ends[1] else (0.0, 1.0)
        ahead = End(0.0, None)
        if j != leader:
            level = delta / (2 * count * (count - 1))
            ahead = _ahead(sequences, inputs[leader].weights, weights, level, moves[j] or moves[leader])
        span, gap = high - low, values[leader] - values[j]
        out_at = ahead.passed if ahead.passed is None or kept is None else int(kept[ahead.passed])
        reach = (low + ends[0] * span, low + ends[1] * span)
        found.append(CandidateValue(names[j], values[j], *reach, ahead.bound * span, gap, effective[j], out_at))
    return Contest(label, n, tuple(found))


def _ahead(ends: BettingEnds, weights: Floats, against: Floats, delta: float, moving: bool) -> End:
    """Return the lower bound of the first policy's gain, and the row from which it is above 0. Rewards in [0, 1].

    moving: one of the policies is a logger that may have learned; its value is the mean so far.
    """
    if moving:
        gains = improvement_values(weights, against, ends.shares, 0.0, 1.0)
        bounds = betting_lower((1 + gains) / 2, delta, common=False)
        end = End(float(bounds[-1]), int(np.argmax(bounds > 0.5)) if bounds[-1] > 0.5 else None)
    else:
        end = ends.end(weights, against, 0.5, delta, level=0.5)
    return End(2 * end.bound - 1, end.passed)


def _value(inputs: EstimatorInput) -> float:
    """Return DR; without a model Σ w r / Σ w; nan if all weights are 0 or one overflowed."""
    if not inputs.weights.any():
        return math.nan
    value = value_of("snips" if inputs.expected is None else "dr", inputs)
    return value if math.isfinite(value) else math.nan


def _some(inputs: EstimatorInput, own: Any) -> EstimatorInput:
    some: Any = {name: None if column is None else column[own] for name, column in inputs._asdict().items()}
    return EstimatorInput(**some)


def _warnings(
    log: Interactions, overall: Contest, names: list[str], parts: list[tuple[str, Any]], fault: str
) -> tuple[str, ...]:
    said = f"{fault[:1].upper()}{fault[1:]}. Evaluate a single policy instead: that works with estimated propensities."
    found = [*([said] if fault else []), *findings.uneven_rows(log, at_any_time=True)]
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
