"""Whether a log can tell anything at all: what makes every interval from it wrong, in the same words everywhere."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.evaluation.calibration import Calibration, CalibrationCell
from o2pl.evaluation.judgement import judgement_explore
from o2pl.evaluation.propensities import deterministic_propensities
from o2pl.protocols import Floats

SURE = 0.01  # p-values below this are reported
_NEARLY = 0.99  # share of rows with propensity 1 above which a log is deterministic
_MOST = 1_000_000  # rows searched for repetitions
_RARE = 6.0  # standard errors
_RUN = 20  # rows at an end of the log
DETERMINISTIC = (
    "the log is deterministic: {why}. It shows one action per context, so it cannot tell what others would earn. "
    + judgement_explore()
)


def unusable_log(log: Interactions, test: Calibration, estimated: bool = False) -> str:
    """Return why no verdict can come from this log; empty if there is no reason.

    log: with contexts as numbers. estimated: its propensities are estimates.
    """
    found, wrong = unusable_repetition(log), "" if estimated else unusable_propensities(log, test).partition(":")[0]
    if found.alarm:  # propensities that are too small look alike: both are said
        return (
            f"rows repeat: {found.rows:,} rows have the context and the action of an earlier row, {found.expected:,.0f}"
            f" are expected{' if the propensities are right, but ' + wrong if wrong else ''}. Intervals take rows for"
            " independent: drop the repetitions"
        )
    if estimated and deterministic_propensities(log.propensities, bool(log.continuous)):
        return DETERMINISTIC.format(why="the contexts determine the actions")
    if not estimated:
        if unusable_share_certain(log) > _NEARLY:
            return DETERMINISTIC.format(why="nearly all propensities are 1")
        if wrong:
            return wrong
    ran = unusable_arrival(log.rewards)
    if ran:
        return (
            f"rewards seem to arrive by their value: the {ran} rows are all {'above' if ran.high else 'below'} the mean"
            " reward. Evaluate only rows old enough to have their rewards, in the order of the decisions"
        )
    return ""


def unusable_propensities(log: Interactions, test: Calibration) -> str:
    """Return why the logged propensities cannot be used; empty if they can."""
    if unusable_share_certain(log) == 1:
        return "every logged propensity is 1, but the log contains several actions"
    if test.worst is None or test.p_value >= SURE:
        return ""
    return f"the logged propensities do not match the actions: p = {test.p_value:.1g}; {said_of_unusable(test.worst)}"


def said_of_unusable(worst: CalibrationCell) -> str:
    where = "" if worst.rows == "all" else f", in rows with {worst.rows}"
    return f"action {worst.action} was played {worst.ratio:.2f} times as often as they imply{where}"


def unusable_share_certain(log: Interactions) -> float:
    """Return the fraction of rows with propensity 1, in a log with several actions."""
    if log.continuous or (log.actions == log.actions[0]).all():
        return 0.0
    return float((log.propensities > 0.999).mean())


# -- repeated rows


class Repetition(NamedTuple):
    """Rows with the context and the action of the row before them with the same context."""

    rows: int
    expected: float  # if actions are drawn anew, as the propensities say
    error: float

    @property
    def alarm(self) -> bool:
        return self.rows - self.expected > max(_RARE * self.error, 10.0)


def unusable_repetition(log: Interactions) -> Repetition:
    """Count neighbours with equal contexts and equal actions: a new draw repeats the action with its propensity q."""
    if log.continuous or len(log) < 2:
        return Repetition(0, 0.0, 0.0)
    places = _unusable_context_places(log)
    order = np.argsort(places, kind="stable")
    if len(order) > _MOST:  # whole groups: the smallest places
        order = order[:_MOST]
    same = places[order[1:]] == places[order[:-1]]
    before, after = order[:-1][same], order[1:][same]
    q = log.propensities[before]
    again = log.actions[before] == log.actions[after]
    return Repetition(int(again.sum()), float(q.sum()), math.sqrt(float((q * (1 - q)).sum())))


def _unusable_context_places(log: Interactions) -> Floats:
    """Return a number per row that rows with equal contexts share. [n]"""
    contexts = log.contexts
    contexts, values = log.encoded, log.encoded.own
    mixed = values.astype(np.float64) @ np.random.default_rng(0).normal(size=values.shape[1])
    if contexts.items is None:
        return np.asarray(mixed)
    place = np.arange(len(mixed)) - contexts.spread(contexts.offsets[:-1])
    return contexts.sums(mixed * (1 + place))


# -- rewards in the order of their values


class RowRun(NamedTuple):
    rows: int
    at_start: bool
    high: bool

    def __bool__(self) -> bool:
        return self.rows > 0

    def __str__(self) -> str:
        return f"{'first' if self.at_start else 'last'} {self.rows:,}"


def unusable_arrival(rewards: Floats) -> RowRun:
    """Return the run of rewards above (or up to) the mean at an end of the log, if it is too long to be chance."""
    high = rewards > rewards.mean()
    for at_start, side in ((True, high), (False, high[::-1])):
        other = np.flatnonzero(side != side[0])
        length = int(other[0]) if len(other) else 0
        rest = side[length:]
        if length >= _RUN and len(rest) > length:
            share = float((rest == side[0]).mean())
            if length * math.log(max(share, 1e-300)) < -25:  # e⁻²⁵
                return RowRun(length, at_start, bool(side[0]))
    return RowRun(0, True, False)
