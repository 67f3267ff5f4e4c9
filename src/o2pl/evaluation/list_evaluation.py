"""`evaluate_lists`: the value of a policy that shows lists, by slot and for the whole list, from logged lists.

A list was drawn slot by slot, so with w_j = π(a_j | remaining items)/q_j

    V_s    = E [w_0 … w_s r_s]          assumes that lower slots do not affect a slot's reward
    V_list = E [w_0 … w_S mean_s r_s]   holds for any interaction between slots

All intervals hold jointly: each is at level δ divided by their number.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.evaluation.bounds import Kind
from o2pl.evaluation.calibration import propensity_calibration
from o2pl.evaluation.evaluated_logs import as_evaluated_log, numeric_evaluated_log
from o2pl.evaluation.findings import said_within_finding
from o2pl.evaluation.gains import ends_of_gains, gains_of_weights
from o2pl.evaluation.intervals import check_interval_delta
from o2pl.evaluation.judgement import DeployVerdict, Judgement, judge, judged_without_conclusion, judgement_on_deploying
from o2pl.evaluation.list_estimators import LIST_ESTIMATORS, list_estimates
from o2pl.evaluation.results import Valued
from o2pl.evaluation.unusable import unusable_log
from o2pl.learners.targets import Target, as_target
from o2pl.objectives.weights import effective_sample_size, policy_weights
from o2pl.protocols import Floats, Ints
from o2pl.validation import RewardRange

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FEW = 30.0  # warn if the effective number of lists is below
_WHOLE = "list"


@dataclass(frozen=True, eq=False)
class ListEvaluation:
    """The result of `evaluate_lists`. `print` shows a table; `figure()` draws it."""

    policy: str
    slots: tuple[Valued, ...]  # the value of each slot
    whole: Valued  # of the list: the mean over its slots
    baseline: tuple[Valued, ...]  # the same for the baseline, slots and list; empty without one
    differences: tuple[Valued, ...]  # policy minus baseline, slots and list
    baseline_name: str
    delta: float
    at_any_time: bool
    n: int  # number of lists
    effective: tuple[float, ...]  # effective sample sizes, for each slot and for the list
    warnings: tuple[str, ...]
    doubt: str = ""  # why the numbers should not be trusted
    kind: Kind = "none"  # of the interval of the difference, for whole lists
    unsupported: float = 0.0  # share of the policy's lists that the log hardly shows
    estimates: tuple[Valued, ...] = ()  # of the list's value, if they were asked for, with normal intervals

    @property
    def value(self) -> float:
        return self.whole.value

    @property
    def interval(self) -> tuple[float, float]:
        return self.whole.low, self.whole.high

    @property
    def difference(self) -> Valued | None:
        """The difference from the baseline, for whole lists."""
        return self.differences[-1] if self.differences else None

    @property
    def judgement(self) -> Judgement:
        """Whether whole lists of the policy are better than the baseline's."""
        return self._judged()

    def _judged(self, tolerance: float = 0.0) -> Judgement:
        gap = self.difference
        if gap is None:
            raise InvalidInput(
                "baseline: found None, expected a baseline to compare with: evaluate_lists(log, policy, baseline=...)"
            )
        return judge(
            f"a list of {self.policy}", f"one of {self.baseline_name}", gap.value, gap.low, gap.high, delta=self.delta,
            kind=self.kind, rows=self.n, effective=self.effective[-1], unsupported=self.unsupported, doubt=self.doubt,
            tolerance=tolerance,
        )  # fmt: skip

    @property
    def verdict(self) -> str:
        if self.difference is not None:
            return str(self.judgement)
        if self.doubt:
            return judged_without_conclusion(self.doubt, self.policy)
        return f"a list of {self.policy} is worth {said_within_finding(self.whole)}, the mean over its slots"

    def safe_to_deploy(self, tolerance: float = 0.0) -> DeployVerdict:
        """Return whether the lower bound of policy minus baseline, for whole lists, is above -tolerance."""
        return judgement_on_deploying(self._judged(tolerance), tolerance)

    def __str__(self) -> str:
        from rich.console import Console
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        headings = ["", "value", "from", "to", "effective lists"]
        headings += [self.baseline_name, "difference", "from", "to"] if self.differences else []
        for heading in headings:
            table.add_column(heading, justify="right" if heading else "left")
        for k, one in enumerate((*self.slots, self.whole)):
            row = [one.name, *(f"{number:.4f}" for number in (one.value, one.low, one.high))]
            row.append(f"{self.effective[k]:,.0f}")
            if self.differences:
                gap = self.differences[k]
                row += [f"{number:.4f}" for number in (self.baseline[k].value, gap.value, gap.low, gap.high)]
            table.add_row(*row)
        for one in self.estimates:
            table.add_row(one.name, *(f"{number:.4f}" for number in (one.value, one.low, one.high)))
        written = io.StringIO()
        Console(file=written, width=110, color_system=None).print(table)
        kind = "anytime-valid" if self.at_any_time else "fixed sample"
        lines = [line.rstrip() for line in written.getvalue().splitlines()]
        lines += ["", f"{self.n:,} lists; intervals: {1 - self.delta:.0%}, joint, {kind}"]
        return "\n".join([*lines, f"verdict: {self.verdict}", *(f"warning: {one}" for one in self.warnings)])

    def figure(self) -> Figure:
        """Draw the value of each slot and of the list, with confidence intervals."""
        from o2pl.evaluation.evaluation_figures import evaluation_figure_of_lists

        return evaluation_figure_of_lists(self)


def evaluate_lists(
    log: object,
    policy: object,
    *,
    baseline: object = None,
    at_any_time: bool = False,
    delta: float = 0.05,
    reward_range: RewardRange | None = None,
    estimators: Sequence[str] = (),
) -> ListEvaluation:
    """Estimate the value of a policy that shows lists, for each slot and for the whole list, from a log of lists.

    `log` is the log of a learner that acts with `slots=`, a log of `Offer(..., slot=...)`, or one of dsjson events with
    several slots. `policy` and `baseline` are as for `evaluate`; they draw slot by slot from the remaining items. The
    intervals of all slots and of the list hold jointly with confidence 1 - δ. With `at_any_time` they hold after every
    list, also for the log of a learner. `estimators`: further estimates of the list's value, from the names in
    `list_estimators.LIST_ESTIMATORS`; each assumes something of how slots depend on each other.
    """
    check_interval_delta(delta)
    for one in estimators:
        if one not in LIST_ESTIMATORS:
            raise InvalidInput(f"estimators: found {one!r}, expected some of {', '.join(LIST_ESTIMATORS)}")
    whole = as_evaluated_log(log, reward_range)
    given = whole.thinned()
    starts = _list_evaluation_starts(given)
    rows = numeric_evaluated_log(given)
    if at_any_time and rows.reward_range is None:
        raise InvalidInput("reward_range: found None, expected the lowest and highest possible reward, for at_any_time")
    columns = _ListColumns(rows, starts)
    target = as_target(policy, rows, contexts=given.contexts)
    own = columns.weights(target)
    level = delta / len(columns.names)
    values = [columns.ends(k, [(1, one)], level, at_any_time) for k, one in enumerate(own)]
    others, gaps, name = list[Valued](), list[_Found](), ""
    if baseline is not None:
        against = as_target(baseline, rows, "baseline", contexts=given.contexts)
        theirs, name = columns.weights(against), against.name
        others = [columns.ends(k, [(1, one)], level, at_any_time).valued for k, one in enumerate(theirs)]
        gaps = [
            columns.ends(k, [(1, one), (-1, two)], level, at_any_time)
            for k, (one, two) in enumerate(zip(own, theirs, strict=True))
        ]
    effective = tuple(effective_sample_size(weights) for weights in own)
    return ListEvaluation(
        target.name, tuple(one.valued for one in values[:-1]), values[-1].valued, tuple(others),
        tuple(one.valued for one in gaps), name, delta, at_any_time, len(starts), effective,
        (*_list_evaluation_uneven(whole, len(given)), *_list_evaluation_warnings(columns, own, effective)),
        unusable_log(rows, propensity_calibration(rows)), (gaps or values)[-1].kind, (gaps or values)[-1].unsupported,
        list_estimates(rows, starts, target, estimators, delta) if estimators else (),
    )  # fmt: skip


def _list_evaluation_starts(log: Interactions) -> Ints:
    """Return the first row of each list."""
    slots = log.slots
    if slots is None:
        raise InvalidInput("log: found single decisions, expected lists: the log of a learner that acts with slots=3")
    follows = np.concatenate([[-1], slots[:-1]]) + 1
    wrong = np.flatnonzero((slots != 0) & (slots != follows))
    if slots[0] != 0 or len(wrong):
        row = 0 if slots[0] else int(wrong[0])
        after = f" after slot {slots[row - 1]}" if row else ""
        raise InvalidInput(
            f"log, row {row}: found slot {slots[row]}{after}, expected consecutive rows of a list, from slot 0, each"
            " with its reward"
        )
    return np.flatnonzero(slots == 0)


class _ListColumns:
    """Rewards and weights of the slots and of the lists."""

    def __init__(self, log: Interactions, starts: Ints) -> None:
        self.log, self.starts = log, starts
        self.lengths = np.diff(np.append(starts, len(log)))
        self.names = [*(f"slot {slot}" for slot in range(int(self.lengths.max()))), _WHOLE]

    def _rows(self, slot: int) -> Ints:
        """Return the rows of the lists that have this slot."""
        return self.starts[self.lengths > slot] + slot

    def rewards(self, k: int) -> Floats:
        """Return the rewards of slot k, or of whole lists: the mean over their slots."""
        if self.names[k] == _WHOLE:
            return np.asarray(np.add.reduceat(self.log.rewards, self.starts) / self.lengths)
        return self.log.rewards[self._rows(k)]

    def weights(self, target: Target) -> list[Floats]:
        """Return w_0 … w_s of each list, for every slot s and for the whole list."""
        likely = np.empty(len(self.log))
        for block in self.log.blocks():
            likely[block] = target.on(block).played
        single = policy_weights(likely, self.log.propensities)
        running = np.ones(len(self.starts))
        made = []
        with np.errstate(over="ignore", invalid="ignore"):
            for slot in range(len(self.names) - 1):
                has = self.lengths > slot
                running[has] = np.nan_to_num(running[has] * single[self._rows(slot)], nan=0.0, posinf=math.inf)
                made.append(running[has].copy())
        return [*made, running]

    def ends(self, k: int, sides: list[tuple[int, Floats]], delta: float, at_any_time: bool) -> _Found:
        """Return a value or a difference (signs and weights) of slot k, with its interval."""
        rewards, ends = self.rewards(k), self.log.reward_range
        given = [(sign, None if (weights == 1).all() else weights) for sign, weights in sides]
        gains = gains_of_weights(rewards, ends, given, at_any_time)
        found = ends_of_gains(gains.sums, delta, at_any_time)
        name, says = ("difference", self.names[k]) if len(sides) > 1 else (self.names[k], "")
        if len(sides) > 1 and np.array_equal(sides[0][1], sides[1][1]):
            found = found._replace(estimate=0.0, low=0.0, high=0.0)  # the same lists
        return _Found(Valued(name, says, *found[:3]), found.kind, gains.sums.unsupported)


class _Found(NamedTuple):
    valued: Valued
    kind: Kind
    unsupported: float


def _list_evaluation_warnings(
    columns: _ListColumns, weights: Sequence[Floats], effective: Sequence[float]
) -> tuple[str, ...]:
    found = []
    for k, name in enumerate(columns.names):
        if effective[k] < _FEW:
            found.append(
                f"{name}: {len(weights[k]):,} lists have an effective sample size of {effective[k]:,.0f} for this"
                " policy: it"
                " rarely shows the logged items. Weights multiply from slot to slot; a log with more exploration"
                " (exploration=0.1) has more information."
            )
    if len(set(columns.lengths.tolist())) > 1:
        found.append(
            f"Lists have {columns.lengths.min()} to {columns.lengths.max()} slots. A slot's value is computed from the"
            " lists"
            " that have it."
        )
    return tuple(found)


def _list_evaluation_uneven(log: Interactions, rows: int) -> list[str]:
    if log.row_weights is None:
        return []
    return [
        "Rows stand for different numbers of decisions (pdrop). Estimates of lists do not weight them: they use"
        f" {rows:,} of {len(log):,} rows, drawn so that each list is equally likely."
    ]
