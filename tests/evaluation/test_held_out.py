"""Parts of held-out rows, put together, say what the whole rows say."""

from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.cases import dropped_log, log_of, policy

import o2pl
from o2pl.evaluation.held_out import (
    HeldOut,
    gains_held_out,
    held_out_doubts,
    held_out_evidence,
    over_the_logger_held_out,
)
from o2pl.learners.targets import as_target


def test_one_part_is_judged_as_by_evaluate() -> None:
    log = log_of(2000)
    found = held_out_evidence("policy", [HeldOut(log).values(as_target(policy, log))], log, 0.05)
    same = o2pl.evaluate(log, policy, baseline="logged")
    assert (found.value.low, found.value.high) == pytest.approx(same.interval, abs=1e-9)
    assert found.judgement.verdict == same.judgement.verdict == "better"
    assert found.judgement.interval == pytest.approx(same.judgement.interval, abs=1e-9)
    assert found.pessimistic < found.value.estimate


def test_against_a_given_policy() -> None:
    log = log_of(2000)
    part = HeldOut(log)
    one, two = as_target(policy, log), as_target("uniform", log, "baseline")
    found = held_out_evidence("policy", [part.values(one)], log, 0.05, "", "uniform", [part.values(one, two)])
    same = o2pl.evaluate(log, policy, baseline="uniform")
    assert found.judgement.interval == pytest.approx(same.judgement.interval, abs=1e-9)


def test_what_another_part_s_policy_would_have_earned_widens_the_interval() -> None:
    log = log_of(2000)
    parts = [HeldOut(log).values(as_target(policy, log))]
    plain, same, other = (
        held_out_evidence("policy", parts, log, 0.05, others=others)
        for others in (None, parts[0][0], np.zeros(len(log)))
    )
    assert same.judgement.interval == plain.judgement.interval
    gap = parts[0][0] - log.rewards
    stretch = np.sqrt(1 + parts[0][0].var() / gap.var())
    for before, after in zip(plain.judgement.interval, other.judgement.interval, strict=True):
        middle = plain.judgement.estimate
        assert after - middle == pytest.approx(stretch * (before - middle), rel=0.01)


def test_the_gain_over_the_logger_row_by_row() -> None:
    log = log_of(500).changed(reward_range=(-1, 3))
    value = gains_held_out([HeldOut(log).values(as_target(policy, log))], log)
    gain = over_the_logger_held_out(value, log)
    np.testing.assert_allclose(value.lower - gain.lower, (log.rewards + 1) / 4)
    assert (gain.lower >= -gain.floors[0] - 1e-9).all()
    assert (-gain.upper >= -gain.floors[1] - 1e-9).all()


def test_rows_that_stand_for_several_and_logs_that_cannot_tell() -> None:
    weighted, _, truth = dropped_log(12_000)
    third = as_target(lambda x: np.full(len(x), 2), weighted)
    found = held_out_evidence("third", [HeldOut(weighted).values(third)], weighted, 0.05)
    assert found.value.low < truth < found.value.high
    assert held_out_doubts(log_of(500)) == ""
    assert held_out_doubts(log_of(500, propensities=np.ones(500))).startswith("the log is deterministic")
    assert held_out_doubts(log_of(20)) == ""
