"""Warnings about a log, as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.evaluation.judgement import judgement_explore, judgement_few_rows
from o2pl.evaluation.unusable import SURE, said_of_unusable, unusable_log, unusable_share_certain
from o2pl.objectives.weights import effective_sample_size
from o2pl.protocols import Floats
from o2pl.validation import LEAST_PROPENSITY

if TYPE_CHECKING:
    from o2pl.evaluation.results import Diagnostics, Valued

_CHANGED = 1e-4  # p-values below this are said in the verdict itself
_LEARNED = 0.05  # fraction of training rows in the log that hardly biases the result


def said_within_finding(one: Valued) -> str:
    return f"{one.value:.4g} ({one.low:.4g} to {one.high:.4g})"


def warnings_of_findings(
    log: Interactions,
    seen: Diagnostics,
    left_out: dict[str, str],
    overflow: bool,
    estimates: tuple[Valued, ...],
    learned_from: float,
    why_estimated: str = "",
) -> tuple[str, ...]:
    found = []
    if learned_from:
        found.append(
            f"The policy has learned from {learned_from:.1%} of this log. On these rows all estimates are too"
            " optimistic:"
            " hold out rows, or use later rows."
        )
    if log.slots is not None and log.slots.any():
        found.append(
            "The rows are slots of lists. These are values of single slots, given the logged items above them;"
            " use evaluate_lists for the values of the policy's own lists."
        )
    found += finding_of_uneven_rows(log, at_any_time=estimates[0].name == "any-time")
    found += _findings_of_estimates(seen, why_estimated) if why_estimated else _findings_of_propensities(log, seen)
    found += finding_of_tiny_propensities(log)
    if overflow:
        found.append(
            "Some importance weights overflowed: their propensities are nearly 0. Intervals are as wide as the reward"
            " range, or infinite;"
            f" omitted: {', '.join(left_out)}."
        )
    elif left_out:
        found += [f"{name} could not be computed: {reason}." for name, reason in left_out.items()]
    found += _findings_outside_range(log, estimates)
    found += _findings_of_weights(seen, overflow)
    found += _findings_of_support(log, seen, estimates)
    found += _findings_of_drift(seen)
    if seen.n == 1:
        found.append("With a single row the variance is unknown, so normal intervals are infinite.")
    elif any(math.isinf(one.low) for one in estimates) and not overflow and not (seen.missing and not log.reward_range):
        found.append("Some estimates have no variance, so they have no normal interval.")
    return tuple(found)


def finding_of_uneven_rows(log: Interactions, at_any_time: bool) -> list[str]:
    """Say what does not use row weights."""
    if log.row_weights is None:
        return []
    counted = f"{len(log.thinned_rows()):,} of {len(log):,} rows, drawn so that each decision is equally likely"
    which = (
        "Anytime-valid intervals, drift and the test of the propensities"
        if at_any_time
        else ("Drift and the test of the propensities")
    )
    return [
        "Rows stand for different numbers of decisions (pdrop): estimates weight them by 1/(1 - pdrop)."
        f" {which} cannot, and use {counted}. The reward model counts each row once, so `dm` may be biased."
    ]


def finding_of_tiny_propensities(log: Interactions) -> list[str]:
    """Warn about rows whose propensities are too small to be plausible."""
    small = np.flatnonzero(log.propensities < LEAST_PROPENSITY)
    if log.continuous or not len(small):
        return []
    row = int(small[0])
    more = f", and {len(small) - 1} more rows too" if len(small) > 1 else ""
    return [
        f"Row {row} has the propensity {log.propensities[row]:.2g}, below {LEAST_PROPENSITY:g}{more}: a drawn action is"
        " practically never that unlikely. Learners reject such rows."
    ]


def finding_of_doubt(
    log: Interactions, seen: Diagnostics, learned_from: float, estimated: bool = False, against: Floats | None = None
) -> str:
    """Return why no number should be trusted; empty if there is no reason. against: weights of the baseline."""
    reason = unusable_log(log, seen.calibration, estimated)
    if reason:
        return reason
    if _finding_unsupported(seen.effective, seen.n):
        return judgement_few_rows(seen.n, seen.effective)
    if against is not None and _finding_unsupported(effective_sample_size(against), seen.n):
        return f"the log does not support the baseline: it hardly shows its actions. {judgement_explore()}"
    return "it has learned from rows of this log" if learned_from > _LEARNED else ""


def _finding_unsupported(effective: float, n: int) -> bool:
    """Return whether the effective sample size is below three for at least a few dozen rows, or 0."""
    return effective < min(3.0, n / 20)


def _findings_of_estimates(seen: Diagnostics, why: str) -> list[str]:
    found = [
        f"Propensities are estimated from the contexts: {why}. Influences on the actions that are not in the contexts"
        " are missed; the table of Γ shows how much of that the result tolerates."
    ]
    if seen.calibration.worst is not None and seen.calibration.p_value < SURE:
        found.append(
            f"The estimates do not match the actions either (p = {seen.calibration.p_value:.1g}):"
            f" {said_of_unusable(seen.calibration.worst)}."
        )
    return found


def _findings_of_propensities(log: Interactions, seen: Diagnostics) -> list[str]:
    test = seen.calibration
    if unusable_share_certain(log) > 0.5:
        return [
            f"{unusable_share_certain(log):.0%} of the rows have propensity 1: their action was certain. If it"
            " was drawn at random,"
            " the"
            " propensities are wrong. If not, the log has no information about other actions in these rows."
        ]
    if test.worst is None or test.p_value >= SURE:
        return []
    return [
        f"The logged propensities do not match the actions (p = {test.p_value:.1g}):"
        f" {said_of_unusable(test.worst)}: its logged"
        " propensities are too small. Do not trust any weighted estimate before this is explained."
    ]


def _findings_outside_range(log: Interactions, estimates: tuple[Valued, ...]) -> list[str]:
    """Warn about estimates outside the reward range; the pessimistic one is not an estimate of the value."""
    if log.reward_range is None:
        return []
    low, high = log.reward_range
    names = [one.name for one in estimates if not low <= one.value <= high and one.name != "pessimistic"]
    if not names:
        return []
    verb = "is" if len(names) == 1 else "are"
    return [
        f"{', '.join(names)} {verb} outside the reward range, {low:g} to {high:g}: too few rows have too much weight."
        " Do not report it."
    ]


def _findings_of_weights(seen: Diagnostics, overflow: bool) -> list[str]:
    found = []
    if seen.effective < max(30.0, 0.01 * seen.n):
        found.append(
            f"The {seen.n:,} rows have an effective sample size of {seen.effective:,.0f} for this policy: it rarely"
            " takes the logged actions."
        )
    if seen.tail.largest_share > 0.05 and seen.n > 20 and not overflow:
        found.append(f"One row has {seen.tail.largest_share:.0%} of the total weight.")
    if seen.tail.exponent + 2 * seen.tail.error < 2:
        found.append(
            f"The weights have a heavy tail (exponent {seen.tail.exponent:.1f}, below 2): their variance may be"
            " infinite and normal intervals too short. Use at_any_time, or the clipped and shrunk estimates."
        )
    return found


def _findings_of_support(log: Interactions, seen: Diagnostics, estimates: tuple[Valued, ...]) -> list[str]:
    found = []
    if log.n_actions is not None and (log.actions == log.actions[0]).all():
        found.append(
            f"The log contains only one action ({log.action_name(int(log.actions[0]))}): it has no information about"
            " others."
        )
    never = [one for one in seen.overlap if one.rows == 0 and one.mass > 1e-3]
    if never:
        named = ", ".join(f"{one.action} ({one.mass:.1%} of the policy)" for one in never[:5])
        found.append(f"Played by the policy but never logged: {named}.")
    short = 1 - seen.mean_weight
    if seen.missing > 1e-3:
        cost = "widened by what that could earn" if log.reward_range else "infinite: the reward range is unknown"
        if not never:
            found.append(
                f"The weights average {seen.mean_weight:.3f} instead of 1: about {short:.0%} of what the policy does"
                " is not in"
                " the log, or propensities are too large."
            )
        found.append(f"Intervals are {cost}.")
    return found


def finding_over_which_rows(seen: Diagnostics) -> str:
    """Say of a verdict for which rows it holds, if the policy's value changes along the log beyond doubt."""
    if not seen.drift.p_value < _CHANGED:
        return ""
    return f", on average over these {seen.n:,} rows, along which rewards change"


def _findings_of_drift(seen: Diagnostics) -> list[str]:
    found = []
    if seen.drift.p_value < SURE:
        found.append(
            f"The policy's value changes over the log (p = {seen.drift.p_value:.1g}): rewards or contexts have"
            " changed, and the average may not hold in the future."
        )
    if seen.drift.context_p_value < SURE:
        found.append(
            f"The contexts change over the log (p = {seen.drift.context_p_value:.1g}), {seen.drift.name} most."
        )
    return found
