"""Description of a log: its columns, the calibration of its propensities, and what it can be used for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from o2pl.data.frames import KINDS
from o2pl.data.interactions import Interactions
from o2pl.data.kinds import DICTIONARIES, MATRIX, OFFER, ROW
from o2pl.evaluation.calibration import FEWEST, propensity_calibration
from o2pl.evaluation.diagnostics import diagnostics_of_drift
from o2pl.evaluation.estimators import EstimatorInput
from o2pl.evaluation.evaluated_logs import numeric_evaluated_log
from o2pl.protocols import Floats

_SAMPLE = 50_000  # largest number of rows used by tests
_LEVEL = 0.01  # significance level of tests


@dataclass(frozen=True)
class Description:
    """The description by heading, and the suggested next command."""

    sections: dict[str, tuple[str, ...]]
    warnings: tuple[str, ...]
    following: str

    def __str__(self) -> str:
        lines = [f"{heading:12s} {line}" for heading, found in self.sections.items() for line in found]
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join([*lines, f"next: {self.following}"])


def describe(log: Interactions, name: str = "LOG") -> Description:
    """Describe a log. name: its name in the suggested next command."""
    warnings: list[str] = []
    numbers = numeric_evaluated_log(log[-_SAMPLE:].thinned())
    sections = {
        "rows": _describe_rows(log),
        "context": _describe_contexts(log),
        "actions": _describe_actions(log, warnings),
        "rewards": _describe_rewards(log, warnings),
        "propensities": _describe_propensities(log, numbers, warnings),
        "drift": _describe_drift(numbers, warnings),
    }
    sections["use"] = _describe_uses(log, warnings)
    kind = _POLICIES.get(log.kind, "union")
    low, high = _describe_range(log)
    ends = f" --rewards {low:g},{high:g}"
    out = "new.o2pl" if name.endswith(_MODEL) else _MODEL  # a saved learner is not overwritten
    following = f"o2pl fit {name} --out {out}{ends}"
    if not log.continuous:
        learner = f'o2pl.Bandit(policy="{kind}", reward_range=({low:g}, {high:g}))'
        sections["learn"] = (f'{learner}.fit(o2pl.read_log("{name}"))',)
    return Description(sections, tuple(warnings), following)


def _describe_rows(log: Interactions) -> tuple[str, ...]:
    w = log.row_weights
    if w is None:
        return (f"{len(log):,}",)
    effective = f"effective sample size {w.sum() ** 2 / (w @ w):,.0f}"
    return (
        f"{len(log):,}, which stand for {w.sum():,.0f} decisions: similar ones were dropped when the log was written",
        f"weights 1/(1 - pdrop) from {w.min():.3g} to {w.max():.3g}, {effective}; `fit` and `evaluate` use them",
    )


_MODEL = "model.o2pl"
_POLICIES = {OFFER: "items", MATRIX: "actionwise", DICTIONARIES: "hashed actionwise"}


def _describe_sets(log: Interactions) -> bool:
    return log.kind != ROW


def _describe_range(log: Interactions) -> tuple[float, float]:
    """Return the reward range, or a guess: 0 to 1 if all rewards are within, else the observed range."""
    if log.reward_range is not None:
        return log.reward_range
    low, high = float(log.rewards.min()), float(log.rewards.max())
    return (0.0, 1.0) if low >= 0 and high <= 1 else (low, high if high > low else low + 1)


def _describe_contexts(log: Interactions) -> tuple[str, ...]:
    contexts: Any = log.contexts
    if log.form == "frame":
        lines = []
        for name, column in contexts.columns.items():
            missing = float(column.missing().mean()) if len(contexts) else 0.0
            words = f", {len(column.words)} different" if column.kind == "word" else ""
            lines.append(f"{name}: {KINDS[column.kind]}{words}{f', {missing:.1%} missing' if missing else ''}")
        return (f"{len(lines)} columns", *lines[:20], *(["…"] if len(lines) > 20 else []))
    if log.form == "records":
        example = repr(contexts[0])
        return ("dictionaries", f"such as {example if len(example) < 160 else example[:157] + '...'}")
    if log.encoded.items is not None and contexts.shared is not None:
        own = contexts.values.shape[1]
        return (f"{contexts.shared.shape[1]} numbers for the user, and {own} for each item",)
    if log.encoded.items is not None:
        return ("a numeric row for each action",)
    return (f"rows of {contexts.shape[1]} numbers",)


def _describe_actions(log: Interactions, warnings: list[str]) -> tuple[str, ...]:
    if log.continuous:
        quantiles = np.quantile(log.actions, [0, 0.5, 1])
        return (f"real numbers from {quantiles[0]:.4g} to {quantiles[2]:.4g}, median {quantiles[1]:.4g}",)
    if _describe_sets(log):
        sizes: Any = log.contexts.sizes
        counts = f"{sizes.min()} to {sizes.max()}" if sizes.min() < sizes.max() else str(sizes.min())
        return (f"sets of {counts} actions with their own features, mean {sizes.mean():.1f}",)
    plays = np.bincount(log.actions, minlength=log.n_actions or 0)
    order = np.argsort(-plays, kind="stable")
    shares = [f"{log.action_name(int(a))} {plays[a] / len(log):.1%}" for a in order[:10]]
    never = int((plays == 0).sum())
    if never:
        warnings.append(f"{never} of {len(plays)} actions were never played: the log has no information about them.")
    if (plays > 0).sum() == 1:
        warnings.append("Only one action was played: nothing can be learned from this log.")
    return (f"{len(plays)}, played " + ", ".join(shares) + (", …" if len(plays) > 10 else ""),)


def _describe_rewards(log: Interactions, warnings: list[str]) -> tuple[str, ...]:
    rewards = log.rewards
    values = EstimatorInput(rewards, np.ones(len(rewards)), row_weights=log.row_weights).contributions(rewards)
    low, high, mean = float(rewards.min()), float(rewards.max()), float(values.mean())
    if low == high:
        warnings.append(f"Every reward is {low:g}: nothing can be learned from this log.")
        return (f"all {low:g}",)
    binary = bool(((rewards == low) | (rewards == high)).all())
    error = float(values.std(ddof=1)) / np.sqrt(len(rewards))
    kinds = f"{low:g} or {high:g}" if binary else f"from {low:g} to {high:g}"
    return (f"{kinds}, mean {mean:.4g} ± {error:.2g} (standard error)",)


def _describe_propensities(log: Interactions, numbers: Interactions, warnings: list[str]) -> tuple[str, ...]:
    q: Floats = log.propensities
    if not log.has_propensities:
        warnings.append("No propensity column: `evaluate` estimates propensities, and reports how wrong they may be.")
        return ("none",)
    lines = [f"from {q.min():.3g} to {q.max():.3g}, mean {q.mean():.3g}"]
    if not log.continuous:
        certain = float((q == 1).mean())
        if certain == 1:
            warnings.append(
                "All propensities are 1: either actions were not random, or propensities were not recorded."
            )
        weight = float((1 / q).max() / (1 / q).sum())
        if weight > 0.01 and len(log) > 1000:
            row = int(np.argmin(q))
            warnings.append(
                f"Row {row} has the propensity {q[row]:.2g}: this row alone has {weight:.1%} of the total weight."
            )
    if len(numbers) < FEWEST:
        return (*lines, f"not tested: fewer than {FEWEST} rows")
    tested = propensity_calibration(numbers)
    if tested.p_value < _LEVEL and tested.worst is not None:
        worst = tested.worst
        warnings.append(
            f"The propensities do not match the actions (p = {tested.p_value:.1g}): action {worst.action} was played"
            f" {worst.ratio:.2f} times as often as they imply, in rows: {worst.rows}."
        )
    lines.append(f"test against the actions: p = {tested.p_value:.2g}, {tested.tests} cells")
    return tuple(lines)


def _describe_drift(numbers: Interactions, warnings: list[str]) -> tuple[str, ...]:
    found = diagnostics_of_drift(numbers, numbers.rewards)
    if not len(found.means):
        return ("not tested: too few rows",)
    if found.p_value < _LEVEL:
        warnings.append(
            f"Rewards change over the log (p = {found.p_value:.1g}): early rows may no longer be representative."
        )
    means = ", ".join(f"{mean:.3g}" for mean in np.asarray(found.means)[:10])
    return (f"mean reward over the log: {means}; p = {found.p_value:.2g}",)


def _describe_uses(log: Interactions, warnings: list[str]) -> tuple[str, ...]:
    """Return what the log can be used for, as text."""
    if any("nothing can be learned" in warning for warning in warnings):
        return ("none: see the warnings",)
    if any("do not match" in warning or "All propensities are 1" in warning for warning in warnings):
        return ("learning, with care; do not trust weighted estimates before this is explained",)
    if not log.has_propensities:
        return ("evaluation with estimated propensities; learning from o2pl.estimate_propensities(log)",)
    floor = float(np.quantile(log.propensities, 0.01))
    if log.continuous:
        return ("learning a real-valued action (ContinuousBandit); policies near the logging policy can be evaluated",)
    wide = f"propensities fall to {floor:.2g}"
    if floor >= 0.01:
        return (f"learning, and evaluation of any policy: {wide}",)
    return (f"learning; policies near the logging policy can be evaluated, others only with wide intervals: {wide}",)
