"""What there is to worry about in a log, in plain words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from o2pl.evaluation.calibration import Calibration, CalibrationCell
from o2pl.evaluation.propensities import deterministic
from o2pl.interactions import Interactions
from o2pl.objectives.weights import effective_sample_size
from o2pl.protocols import Floats
from o2pl.validation import LEAST_PROPENSITY

if TYPE_CHECKING:
    from o2pl.evaluation.results import Diagnostics, Valued

SURE = 0.01  # p-values below this are reported
_LEARNED = 0.05  # a share of rows that the policy has learned from and that cannot bend the answer much


def within(one: Valued) -> str:
    return f"{one.value:.4g} ({one.low:.4g} to {one.high:.4g})"


def warnings(
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
            f"The policy has learned from {learned_from:.1%} of this log. On those rows every estimate flatters it:"
            " keep rows aside, or use rows that came later."
        )
    if log.slots is not None and log.slots.any():
        found.append(
            "The rows are slots of lists. These are values of single slots, after what the log shows above them;"
            " evaluate_lists gives those of the policy's own lists."
        )
    found += _estimated(seen, why_estimated) if why_estimated else _propensities(log, seen)
    found += tiny_propensities(log)
    if overflow:
        found.append(
            "Some weights are too large for a number: propensities of nearly 0. Intervals are infinite;"
            f" left out: {', '.join(left_out)}."
        )
    elif left_out:
        found += [f"{name} could not be computed: {reason}." for name, reason in left_out.items()]
    found += _outside(log, estimates)
    found += _weights(seen, overflow)
    found += _support(log, seen, estimates)
    found += _drift(seen)
    if estimates[0].name == "any-time" and not estimates[0].low <= estimates[0].value <= estimates[0].high:
        found.append(
            "The estimate lies outside the any-time interval: early rows of the log contradict later ones. Either"
            " things have changed, or this is one of the few logs in which the interval misses."
        )
    if seen.n == 1:
        found.append("One row: nothing is known of the spread, so intervals are infinite.")
    elif any(math.isinf(one.low) for one in estimates) and not overflow and not (seen.missing and not log.reward_range):
        found.append("Some estimates show no spread at all, so no interval can be given for them.")
    return tuple(found)


def tiny_propensities(log: Interactions) -> list[str]:
    """That some rows were hardly drawn with the probabilities that they have."""
    small = np.flatnonzero(log.propensities < LEAST_PROPENSITY)
    if log.continuous or not len(small):
        return []
    row = int(small[0])
    more = f", as have {len(small) - 1} more" if len(small) > 1 else ""
    return [
        f"Row {row} has the propensity {log.propensities[row]:.2g}, below {LEAST_PROPENSITY:g}{more}: an action that"
        " was drawn is hardly that unlikely. Learners refuse such rows."
    ]


def doubt(
    log: Interactions, seen: Diagnostics, learned_from: float, estimated: bool = False, against: Floats | None = None
) -> str:
    """What forbids to act on any number here; empty if nothing does. `against`: weights of the baseline."""
    if estimated and deterministic(log.propensities, bool(log.continuous)):
        return "the log is deterministic, its contexts decide its actions, so it shows one action in each"
    if not estimated and fault(log, seen.calibration):
        return fault(log, seen.calibration).partition(":")[0]
    if not estimated and _certain(log) > 0.99:
        return "the log is deterministic, nearly all its propensities are 1"
    if _unsupported(seen.effective, seen.n):
        return f"the log has no support for it, {seen.n:,} rows are worth {seen.effective:.0f}"
    if against is not None and _unsupported(effective_sample_size(against), seen.n):
        return "the log has no support for the baseline"
    return "it has learned from rows of this log" if learned_from > _LEARNED else ""


def _unsupported(effective: float, n: int) -> bool:
    """Fewer than three rows of equal weight, of at least a few dozen; or none at all."""
    return effective < min(3.0, n / 20)


def fault(log: Interactions, test: Calibration) -> str:
    """Why the logged propensities cannot be used; empty if they can."""
    if _certain(log) == 1:
        return "every logged propensity is 1, yet the log holds several actions"
    if test.worst is None or test.p_value >= SURE:
        return ""
    return f"the logged propensities do not match the actions: p = {test.p_value:.1g}; {_worst(test.worst)}"


def _worst(worst: CalibrationCell) -> str:
    where = "" if worst.rows == "all" else f", in rows with {worst.rows}"
    return f"action {worst.action} was played {worst.ratio:.2f} times as often as they say{where}"


def _estimated(seen: Diagnostics, why: str) -> list[str]:
    found = [
        f"Propensities are estimated from the contexts: {why}. Whatever decided the actions and is not in the contexts"
        " is missed; the table of Γ says how much of that the answer bears."
    ]
    if seen.calibration.worst is not None and seen.calibration.p_value < SURE:
        found.append(
            f"The estimates do not match the actions either (p = {seen.calibration.p_value:.1g}):"
            f" {_worst(seen.calibration.worst)}."
        )
    return found


def _certain(log: Interactions) -> float:
    """The share of rows whose action is said to have been certain, in a log of several actions."""
    if log.continuous or (log.actions == log.actions[0]).all():
        return 0.0
    return float((log.propensities > 0.999).mean())


def _propensities(log: Interactions, seen: Diagnostics) -> list[str]:
    test = seen.calibration
    if _certain(log) > 0.5:
        return [
            f"{_certain(log):.0%} of the rows say that their action was certain (propensity 1). If it was drawn by"
            " chance, the propensities are wrong; if it was not, the log says nothing of other actions in those rows."
        ]
    if test.worst is None or test.p_value >= SURE:
        return []
    cause = (
        "its logged propensities are too small"
        if test.worst.ratio > 1
        else "its logged propensities are too large, or it was not on offer in some rows"
    )
    return [
        f"The logged propensities do not match the actions (p = {test.p_value:.1g}): {_worst(test.worst)}: {cause}."
        " No estimate that uses weights can be trusted before this is explained."
    ]


def _outside(log: Interactions, estimates: tuple[Valued, ...]) -> list[str]:
    """Estimates that no policy can be worth; the pessimistic one is no estimate of the value."""
    if log.reward_range is None:
        return []
    low, high = log.reward_range
    names = [one.name for one in estimates if not low <= one.value <= high and one.name != "pessimistic"]
    if not names:
        return []
    verb = "lies" if len(names) == 1 else "lie"
    return [
        f"{', '.join(names)} {verb} outside the reward range, {low:g} to {high:g}: too few rows carry too much weight."
        " Do not quote it."
    ]


def _weights(seen: Diagnostics, overflow: bool) -> list[str]:
    found = []
    if seen.effective < max(30.0, 0.01 * seen.n):
        found.append(
            f"The {seen.n:,} rows are worth {seen.effective:,.0f} for this policy (effective sample size): it rarely"
            " does what was logged."
        )
    if seen.tail.largest_share > 0.05 and seen.n > 20 and not overflow:
        found.append(f"One row carries {seen.tail.largest_share:.0%} of all weight.")
    if seen.tail.exponent + 2 * seen.tail.error < 2:
        found.append(
            f"The weights have a heavy tail (exponent {seen.tail.exponent:.1f}, below 2): their variance may be"
            " infinite and normal intervals too short. Prefer at_any_time, or the clipped and shrunk estimates."
        )
    return found


def _support(log: Interactions, seen: Diagnostics, estimates: tuple[Valued, ...]) -> list[str]:
    found = []
    if log.n_actions is not None and (log.actions == log.actions[0]).all():
        found.append(
            f"The log holds one action only ({log.action_name(int(log.actions[0]))}): it says nothing of others."
        )
    never = [one for one in seen.overlap if one.rows == 0 and one.mass > 1e-3]
    if never:
        named = ", ".join(f"{one.action} ({one.mass:.1%} of the policy)" for one in never[:5])
        found.append(f"Never logged, but played by the policy: {named}.")
    short = 1 - seen.mean_weight
    if seen.missing > 1e-3:
        cost = "widened by what that could bring" if log.reward_range else "infinite: the reward range is not known"
        if not never:
            found.append(
                f"The weights average {seen.mean_weight:.3f} where they should average 1: about {short:.0%} of what the"
                " policy does is not in the log, or propensities are too large."
            )
        found.append(f"Intervals are {cost}.")
    return found


def _drift(seen: Diagnostics) -> list[str]:
    found = []
    if seen.drift.p_value < SURE:
        found.append(
            f"The policy's value is not the same along the log (p = {seen.drift.p_value:.1g}): rewards or contexts have"
            " changed, and the average may not be what the future brings."
        )
    if seen.drift.context_p_value < SURE:
        found.append(
            f"The contexts change along the log (p = {seen.drift.context_p_value:.1g}), {seen.drift.name} most."
        )
    return found
