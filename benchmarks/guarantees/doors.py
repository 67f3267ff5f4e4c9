"""The doors that say whether a policy is better, each on one case: what was said, and whether it was so."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import o2pl
from benchmarks.guarantees.worlds import Case

DELTA = 0.05
_ROUNDING = 1e-9


class Said(NamedTuple):
    better: bool
    worse: bool
    covered: bool | None  # the interval contains the truth; None: it has none


def difference(case: Case, at_any_time: bool = False) -> Said:
    found = o2pl.evaluate(case.log, case.policy, baseline=case.baseline, delta=DELTA, at_any_time=at_any_time)
    assert found.difference is not None
    gap, verdict = found.difference, found.judgement.verdict
    covered = gap.low - _ROUNDING <= case.gain <= gap.high + _ROUNDING
    return Said(verdict == "better", verdict == "worse", None if found.doubt else covered)


def any_time(case: Case) -> Said:
    return difference(case, True)


def value(case: Case) -> Said:
    found = o2pl.evaluate(case.log, case.policy, delta=DELTA)
    low, high = found.interval
    return Said(False, False, None if found.doubt else low - _ROUNDING <= case.value <= high + _ROUNDING)


def candidates(case: Case) -> Said:
    found = o2pl.evaluate(case.log, {"policy": case.policy, "baseline": case.baseline}, delta=DELTA)
    out = {one.name for one in found.overall.candidates if one.eliminated}
    mine = next(one for one in found.overall.candidates if one.name == "policy")
    covered = mine.low - _ROUNDING <= case.value <= mine.high + _ROUNDING
    return Said("baseline" in out, "policy" in out, None if found.doubt else covered)


def fit(case: Case) -> Said:
    """`fit` of one learner, in worlds where no action matters: whatever it learned gains nothing."""
    learner = o2pl.O2PL(case.log.n_actions, policy="linear", random_state=0)
    found = o2pl.fit(case.log, candidates=[learner], delta=DELTA).judgement
    return Said(found.verdict == "better", found.verdict == "worse", None)


DOORS: dict[str, Callable[[Case], Said]] = {
    "evaluate, difference": difference,
    "evaluate, value": value,
    "evaluate, any time": any_time,
    "candidates": candidates,
    "fit": fit,
}
