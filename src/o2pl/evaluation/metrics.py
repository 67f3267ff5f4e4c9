"""Several metrics at once: is a policy better in what it should be, and not much worse in the rest?

Every metric is judged as a reward is (`judgement`), each at level δ/J for J metrics: the differences of all metrics
hold jointly, and so do the values. Weights, the test of the propensities and what the log hardly shows are the same for
all metrics and are found once; each metric has a reward model of its own.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from o2pl.data.frames import Frame
from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.evaluation import findings
from o2pl.evaluation.comparison import Comparison, Shown
from o2pl.evaluation.evaluate import PropensityChoice, TrustedLog, compared_in_evaluation, evaluated_log
from o2pl.evaluation.evaluated_logs import as_evaluated_log, numeric_evaluated_log
from o2pl.evaluation.intervals import bounded_column_for_interval, check_interval_delta
from o2pl.evaluation.judgement import DeployVerdict, Judgement, judge, judgement_few_rows, judgement_on_deploying
from o2pl.evaluation.results import Valued
from o2pl.evaluation.reward_models import fit_rewards
from o2pl.evaluation.unusable import unusable_log
from o2pl.evaluation.values import columns_for_values, estimated_values, headline_value, settings_for_values
from o2pl.learners.targets import PolicyRows, Target, as_target, with_target_names
from o2pl.objectives.weights import effective_sample_size
from o2pl.protocols import Floats, Seed
from o2pl.threads import in_threads
from o2pl.validation import RewardRange, check_number, check_reward_range

_HELD = 5e7  # entries of a policy's table that are kept instead of asked for again
_REWARD = "reward"


@dataclass(frozen=True)
class Metric:
    """A column to judge by, one number per row.

    values: the numbers, "reward" (the log's own), or the name of a context column, which is then no context.
    value_range: lowest and highest possible value; None: that of the log for its reward, 0 to 1 if all values are 0 or
    1, else unknown. fewer_is_better: complaints, minutes of waiting. at_most_worse: makes the metric a guardrail: the
    policy may be worse by this much. Without it the metric is a goal: the policy should be better.
    """

    values: Any = _REWARD
    value_range: RewardRange | None = None
    fewer_is_better: bool = False
    at_most_worse: float | None = None


@dataclass(frozen=True)
class Measured:
    """One metric of the policy and of the baseline."""

    name: str
    value: Valued
    baseline: Valued | None
    difference: Valued | None  # policy minus baseline, in units of the metric
    judgement: Judgement | None  # of the improvement: minus the difference, if fewer is better


@dataclass(frozen=True, eq=False)
class Metrics:
    """The result of `evaluate` for several metrics. `print` shows a table; `found["clicks"]` is one of them."""

    policy: str
    measured: tuple[Measured, ...]
    delta: float
    at_any_time: bool
    rows: int
    effective: float
    warnings: tuple[str, ...]
    doubt: str = ""

    def __getitem__(self, name: str) -> Measured:
        found = [one for one in self.measured if one.name == name]
        if not found:
            names = ", ".join(one.name for one in self.measured)
            raise InvalidInput(f"metric: found {name!r}, expected one of {names}")
        return found[0]

    @property
    def judgements(self) -> dict[str, Judgement]:
        """The judgement of each metric; they hold jointly."""
        found = {one.name: one.judgement for one in self.measured if one.judgement is not None}
        if not found:
            raise InvalidInput("baseline: found None, expected a baseline to compare with: evaluate(log, policy, ...)")
        return found

    @property
    def verdict(self) -> str:
        """The result as a sentence for each metric."""
        if self.measured[0].judgement is None:
            return "; ".join(
                f"{one.name}: {self.policy} is worth {findings.said_within_finding(one.value)}" for one in self.measured
            )
        together = " (jointly for all metrics)" if len(self.measured) > 1 else ""
        return "; ".join(f"{name}: {one.sentence(together)}" for name, one in self.judgements.items())

    def safe_to_deploy(self) -> DeployVerdict:
        """Return whether every goal is better and every guardrail holds; the reason is that of the first that fails."""
        found = self.judgements
        name = next((name for name, one in found.items() if not one.better), next(iter(found)))
        said = judgement_on_deploying(found[name], found[name].tolerance)
        return replace(said, reason=f"{name}: {said.reason}")

    def __str__(self) -> str:
        from rich.console import Console
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        headings = ["metric", "policy", "from", "to"]
        headings += ["baseline", "difference", "from", "to"] if self.measured[0].difference else []
        for heading in headings:
            table.add_column(heading, justify="left" if heading == "metric" else "right")
        for one in self.measured:
            numbers = [one.value.value, one.value.low, one.value.high]
            if one.difference is not None and one.baseline is not None:
                numbers += [one.baseline.value, one.difference.value, one.difference.low, one.difference.high]
            table.add_row(one.name, *(f"{number:.4f}" for number in numbers))
        written = io.StringIO()
        Console(file=written, width=110, color_system=None).print(table)
        kind = "anytime-valid" if self.at_any_time else "fixed sample"
        lines = [line.rstrip() for line in written.getvalue().splitlines()]
        lines += ["", f"n = {self.rows:,}, effective sample size {self.effective:,.0f}"]
        lines.append(f"intervals: {1 - self.delta:.0%}, jointly for all metrics, {kind}")
        lines += [f"verdict: {part}" for part in self.verdict.split("; ")]
        return "\n".join([*lines, *(f"warning: {warning}" for warning in self.warnings)])


def evaluate_metrics(
    log: object,
    policy: object,
    metrics: Mapping[str, object],
    *,
    baseline: object = None,
    at_any_time: bool = False,
    delta: float = 0.05,
    reward_range: RewardRange | None = None,
    propensities: PropensityChoice = "auto",
    seed: Seed = 0,
) -> Metrics:
    """Judge a policy by several metrics: see `evaluate`."""
    check_interval_delta(delta)
    rows, columns = _metric_columns(as_evaluated_log(log, reward_range), metrics, at_any_time)
    given = with_target_names(rows, policy, baseline)
    source = evaluated_log(numeric_evaluated_log(given), propensities, seed)
    named = [("policy", policy)] + ([] if baseline is None else [("baseline", baseline)])
    targets: list[Target] = [
        _Remembered(as_target(one, source.log, name, contexts=given.contexts), source.log) for name, one in named
    ]
    weights = [one.inputs.weights for one in columns_for_values(source.log, targets, None)]
    effective = min(effective_sample_size(one) for one in weights)
    doubt = unusable_log(source.log, source.calibration, bool(source.why))
    if not doubt and effective < min(3.0, len(rows) / 20):
        doubt = judgement_few_rows(len(rows), effective)
    shown, level = Shown(source.log), delta / len(columns)
    one_seed = int(seed.integers(2**32)) if isinstance(seed, np.random.Generator) else seed  # threads share none

    def measured(name: str) -> Measured:
        metric, values, ends = columns[name]
        one = source.log.changed(rewards=values, reward_range=ends)
        compared = _compared_metrics(one, policy, targets, level, at_any_time, one_seed, shown)
        return _measured_metric(name, metric, compared, targets, delta, effective, doubt, len(rows))

    first, *others = columns
    found = {first: measured(first)}  # what the log shows and what the policy does is known then, for all metrics

    def work(place: int) -> None:
        found[others[place]] = measured(others[place])

    in_threads(work, len(others))
    return Metrics(
        targets[0].name, tuple(found[name] for name in columns), delta, at_any_time, len(rows), effective,
        _metric_warnings(source, doubt), doubt,
    )  # fmt: skip


def _compared_metrics(
    log: Interactions, policy: object, targets: list[Target], delta: float, at_any_time: bool, seed: Seed, shown: Shown
) -> Comparison:
    model = fit_rewards(log, seed=seed) if len(log) > 1 else None
    columns = columns_for_values(log, targets, model)
    names = None if columns[0].inputs.expected is None else ("ips", "dr")
    *_, errors, _ = estimated_values(columns[0].inputs, settings_for_values(policy, log), names, delta)
    noisy = headline_value(errors) == "ips"
    return compared_in_evaluation(log, targets, columns, model, delta, at_any_time, noisy, seed, shown)


def _measured_metric(
    name: str, metric: Metric, compared: Comparison, targets: list[Target], delta: float, effective: float,
    doubt: str, rows: int,
) -> Measured:  # fmt: skip
    value = Valued(name, "", *compared.value[:3])
    gap = compared.difference
    if gap is None:
        return Measured(name, value, None, None, None)
    ends = (gap.value, gap.low, gap.high)
    estimate, low, high = (-gap.value, -gap.high, -gap.low) if metric.fewer_is_better else ends
    judgement = judge(
        targets[0].name, targets[1].name, estimate, low, high, delta=delta, kind=compared.kind, rows=rows,
        effective=effective, unsupported=compared.unsupported, doubt=doubt, tolerance=metric.at_most_worse or 0.0,
    )  # fmt: skip
    return Measured(name, value, compared.baseline, gap, judgement)


def _metric_warnings(source: TrustedLog, doubt: str) -> tuple[str, ...]:
    said = [f"Propensities are estimated from the contexts: {source.why}."] if source.why else []
    return (
        *said,
        *([f"{doubt[:1].upper()}{doubt[1:]}."] if doubt else []),
        *findings.finding_of_uneven_rows(source.log, False),
    )


# -- columns


_Column = tuple[Metric, Floats, RewardRange | None]


def _metric_columns(
    log: Interactions, metrics: Mapping[str, object], at_any_time: bool
) -> tuple[Interactions, dict[str, _Column]]:
    """Return the log without the context columns that are metrics, and what is measured."""
    if not isinstance(metrics, Mapping) or not metrics:
        raise InvalidInput(f"metrics: found {metrics!r}, expected a dictionary of names and columns")
    asked = {str(name): one if isinstance(one, Metric) else Metric(one) for name, one in metrics.items()}
    taken = [one.values for one in asked.values() if isinstance(one.values, str) and one.values != _REWARD]
    found = {name: _metric_column(name, one, log, at_any_time) for name, one in asked.items()}
    if taken and log.form == "frame":
        kept = {name: column for name, column in log.contexts.columns.items() if name not in taken}
        log = log.changed(contexts=Frame(kept, len(log)))
    return log, found


def _metric_column(name: str, metric: Metric, log: Interactions, at_any_time: bool) -> _Column:
    where = f"metrics, {name!r}"
    if metric.at_most_worse is not None:
        check_number(f"{where}, at_most_worse", metric.at_most_worse, 0.0, open_low=True)
    values, ends = metric.values, metric.value_range
    if isinstance(values, str):
        if values != _REWARD and not (log.form == "frame" and values in log.contexts.columns):
            known = ", ".join(log.contexts.columns) if log.form == "frame" else "the contexts have no names"
            raise InvalidInput(f"{where}: found no column {values!r}, expected 'reward' or a context column: {known}")
        ends = log.reward_range if ends is None and values == _REWARD else ends
        values = log.rewards if values == _REWARD else log.contexts[values]
    try:
        column = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{where}: found values that are no numbers, expected one number per row") from None
    if column.shape != (len(log),):
        raise InvalidInput(f"{where}: found shape {column.shape}, expected one number per row ({len(log)})")
    if not np.isfinite(column).all():
        row = int(np.argmax(~np.isfinite(column)))
        raise InvalidInput(f"{where}, row {row}: found {column[row]}, expected a finite number")
    if ends is None and bool(((column == 0) | (column == 1)).all()):
        ends = (0.0, 1.0)
    if ends is None and at_any_time:
        raise InvalidInput(
            f"{where}: found no value_range, expected the lowest and highest possible value, for at_any_time"
        )
    within: Floats = column if ends is None else bounded_column_for_interval(where, column, *check_reward_range(ends))
    return metric, within, ends


def metrics_of(names: Sequence[str], fewer_is_better: Sequence[str], at_most_worse: Sequence[str]) -> dict[str, Metric]:
    """Return the metrics that the command line names: columns, those of which fewer is better, and NAME=BOUND."""
    bounds: dict[str, float] = {}
    for text in at_most_worse:
        name, _, bound = text.partition("=")
        try:
            bounds[name] = float(bound)
        except ValueError:
            raise InvalidInput(f"--at-most-worse: found {text!r}, expected a metric and a number: NAME=0.01") from None
    unknown = sorted({*fewer_is_better, *bounds} - set(names))
    if unknown:
        raise InvalidInput(
            f"--metric: found no {unknown[0]!r}, which another option names; expected --metric {unknown[0]}"
        )
    return {name: Metric(name, None, name in fewer_is_better, bounds.get(name)) for name in names}


class _Remembered:
    """A target whose table is kept, if it is not too large: every metric asks for it."""

    def __init__(self, target: Target, log: Interactions) -> None:
        self._target, self.name = target, target.name
        entries = len(log) * (log.n_actions or 1)
        self._kept: dict[tuple[int, int], PolicyRows] | None = {} if entries <= _HELD else None
        self._asking = threading.Lock()  # a policy may be a function that threads cannot share

    def on(self, rows: slice) -> PolicyRows:
        place = (rows.start, rows.stop)
        if self._kept is not None and place in self._kept:
            return self._kept[place]
        with self._asking:
            found = self._target.on(rows)
        if self._kept is not None:
            self._kept[place] = found
        return found
