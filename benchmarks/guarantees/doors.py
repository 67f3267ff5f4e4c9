"""The doors that say whether a policy is better, each on one case: what was said, and whether it was so."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import o2pl
from benchmarks.guarantees.controlling import looked
from benchmarks.guarantees.guarding import withdrawn
from benchmarks.guarantees.worlds import Array, Case
from o2pl.errors import InvalidInput
from o2pl.evaluation.calibration import propensity_calibration
from o2pl.evaluation.unusable import SURE

DELTA = 0.05
_ROUNDING, _HARM = 1e-9, 0.01
_SHARES = (0.5, 0.2, 0.1, 0.03, 0.01)  # of ones, in the metrics
_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)


class Said(NamedTuple):
    better: bool
    worse: bool
    covered: bool | None  # the interval contains the truth; None: it has none
    gain: float  # the true gain that this was said of
    estimate: float = float("nan")


class Door(NamedTuple):
    """What is said of a case; shares of logs that are promised at most."""

    say: Callable[[Case], Said]
    wrong: float = DELTA / 2  # with a false "better"; as many with a false "worse"
    missed: float = DELTA


def difference(case: Case, at_any_time: bool = False) -> Said:
    found = o2pl.evaluate(case.log, case.policy, baseline=case.baseline, delta=DELTA, at_any_time=at_any_time)
    assert found.difference is not None
    gap, verdict = found.difference, found.judgement.verdict
    covered = _within(gap.low, case.gain, gap.high) and gap.low <= gap.value <= gap.high
    return Said(verdict == "better", verdict == "worse", None if found.doubt else covered, case.gain, gap.value)


def value(case: Case) -> Said:
    found = o2pl.evaluate(case.log, case.policy, delta=DELTA)
    low, high = found.interval
    return Said(False, False, None if found.doubt else _within(low, case.value, high), case.gain, found.value)


def safe_to_deploy(case: Case) -> Said:
    """Any time, with the lower end alone at level δ."""
    found = o2pl.evaluate(case.log, case.policy, baseline=case.baseline, delta=2 * DELTA, at_any_time=True)
    said = found.safe_to_deploy()
    covered = None if found.doubt else said.bound <= case.gain + _ROUNDING and said.bound <= said.estimate
    return Said(bool(said), False, covered, case.gain, said.estimate)


def candidates(case: Case) -> Said:
    found = o2pl.evaluate(case.log, {"policy": case.policy, "baseline": case.baseline}, delta=DELTA)
    out = {one.name for one in found.overall.candidates if one.eliminated}
    mine = next(one for one in found.overall.candidates if one.name == "policy")
    covered = None if found.doubt else _within(mine.low, case.value, mine.high)
    return Said("baseline" in out, "policy" in out, covered, case.gain, mine.value)


def fit(case: Case) -> Said:
    """`fit` of one learner. The truth is that of the learner it returns."""
    learner = o2pl.O2PL(case.log.n_actions, policy="linear", random_state=0)
    found = o2pl.fit(case.log, candidates=[learner], delta=DELTA)
    verdict = found.judgement.verdict
    return Said(verdict == "better", verdict == "worse", None, case.gain_of(found.learner.predict_proba))


def from_incumbent(case: Case) -> Said:
    """Missed: a bound above the true gain of what is deployed, or a kept "incumbent" that is worse by more than .01."""
    try:
        learner: Any = o2pl.O2PL.from_incumbent(case.log, random_state=0)
    except InvalidInput:
        return Said(False, False, True, 0.0)  # nothing is deployed or kept
    gain, verdict = case.gain_of(learner.predict_proba), learner.improvement_
    covered = verdict.lower <= gain + _ROUNDING if verdict.deploy else gain >= -_HARM
    return Said(verdict.deploy, False, covered, gain)


def from_given_incumbent(case: Case) -> Said:
    """The same, where the incumbent is given as a policy."""
    found = o2pl.SafeImprovement(random_state=0).fit(case.log, incumbent=_Given(case.logger))
    gain = case.gain_of(found.predict_proba)
    covered = found.verdict_.lower <= gain + _ROUNDING if found.deploy_ else gain >= -_ROUNDING
    return Said(found.deploy_, False, covered, gain)


class _Given:
    def __init__(self, table: Callable[[Array], Array]) -> None:
        self.predict_proba = table


def propensity_test(case: Case, looks: int = 1) -> Said:
    """Missed: exact propensities are rejected, at any of the looks at the growing log."""
    ends = [len(case.log) * look // looks for look in range(1, looks + 1)]
    rejected = any(propensity_calibration(case.log[:end]).p_value < SURE for end in ends)
    return Said(False, False, not rejected, 0.0)


def lists(case: Case, at_any_time: bool = False) -> Said:
    """Missed: any of the joint intervals."""
    found = o2pl.evaluate_lists(case.log, case.policy, baseline=case.baseline, delta=DELTA, at_any_time=at_any_time)
    ends = np.array([[one.low, one.high] for one in (*found.slots, found.whole)]).T
    assert found.difference is not None
    covered = bool(((ends[0] <= case.value + _ROUNDING) & (case.value <= ends[1] + _ROUNDING)).all())
    verdict = found.judgement.verdict
    return Said(verdict == "better", verdict == "worse", covered, case.gain, found.difference.value)


def guard(case: Case) -> Said:
    """Missed: the policy is withdrawn, though it is as good as the baseline."""
    acted = withdrawn(*case.log)
    return Said(False, acted, not acted, 0.0)


def service_control(case: Case) -> Said:
    """The service's own comparison. Missed: at any of the daily looks, any of the joint intervals."""
    found = looked(*case.log)
    return Said(found.better, found.worse, not found.missed, case.gain, found.estimate)


def metrics(case: Case) -> Said:
    """Five metrics that no action changes. Missed: any of the joint intervals of the differences."""
    g = _own(case)
    columns = {f"metric {k}": (g.random(len(case.log)) < share) * 1.0 for k, share in enumerate(_SHARES)}
    found = o2pl.evaluate(case.log, case.policy, baseline=case.baseline, metrics=columns, delta=DELTA)
    gaps = [one.difference for one in found.measured if one.difference is not None]
    verdicts = {one.verdict for one in found.judgements.values()}
    return Said("better" in verdicts, "worse" in verdicts, all(_within(gap.low, 0.0, gap.high) for gap in gaps), 0.0)


def control(case: Case, at_any_time: bool = False) -> Said:
    """A tenth of the rows, by a coin, are called a control group: it earns what the others do."""
    member = _own(case).random(len(case.log)) < 0.1
    found = o2pl.evaluate(case.log, control=member, control_share=0.1, delta=DELTA, at_any_time=at_any_time)
    gap, verdict = found.difference, found.judgement.verdict
    assert gap is not None
    return Said(verdict == "better", verdict == "worse", _within(gap.low, 0.0, gap.high), 0.0, gap.value)


def quantiles(case: Case) -> Said:
    """Where no action matters, every quantile of the policy is the logger's; missed: any of them is told apart."""
    found = o2pl.evaluate_quantiles(case.log, case.policy, baseline="logged", levels=_LEVELS, worst=[0.1], delta=DELTA)
    gaps = [one.interval for one in found.judgements.values()]
    verdicts = {one.verdict for one in found.judgements.values()}
    return Said("better" in verdicts, "worse" in verdicts, all(_within(low, 0.0, high) for low, high in gaps), 0.0)


def _own(case: Case) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(case.log.contexts.tobytes()))


def named_estimate(name: str) -> Callable[[Case], Said]:
    """The interval of an estimate from which no verdict comes."""

    def say(case: Case) -> Said:
        found = next(one for one in o2pl.evaluate(case.log, case.policy, delta=DELTA).estimates if one.name == name)
        return Said(False, False, _within(found.low, case.value, found.high), case.gain, found.value)

    return say


def _within(low: float, truth: float, high: float) -> bool:
    return low - _ROUNDING <= truth <= high + _ROUNDING


DOORS: dict[str, Door] = {
    "evaluate, difference": Door(difference),
    "evaluate, value": Door(value),
    "evaluate, any time": Door(lambda case: difference(case, True)),
    "candidates": Door(candidates),
    "fit": Door(fit),
    "safe_to_deploy": Door(safe_to_deploy, DELTA),
    "from_incumbent": Door(from_incumbent, 0.1, 0.1),
    "from_incumbent, given": Door(from_given_incumbent, 0.1, 0.1),
    "propensity test": Door(propensity_test, 0.0, 0.01),
    "propensity test, ten looks": Door(lambda case: propensity_test(case, 10), 0.0, 0.01),
    "evaluate_lists": Door(lists),
    "evaluate_lists, any time": Door(lambda case: lists(case, True)),
    "service, guard": Door(guard, DELTA, DELTA),
    "service, control group": Door(service_control, DELTA, DELTA),
    "metrics, five": Door(metrics),
    "control group": Door(control),
    "control group, any time": Door(lambda case: control(case, True)),
    "quantiles": Door(quantiles),
    "switch-dr": Door(named_estimate("switch-dr")),
    "dr-shrinkage": Door(named_estimate("dr-shrinkage")),
}
USUAL = ("evaluate, difference", "evaluate, value", "evaluate, any time", "candidates", "fit")
UNPROMISED = ("switch-dr", "dr-shrinkage")  # no verdict comes from them
