"""Logs that cannot tell are recognised, and sound ones are not accused."""

from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.cases import log_of, policy

import o2pl
from o2pl.data.interactions import Interactions
from o2pl.evaluation.calibration import propensity_calibration
from o2pl.evaluation.unusable import unusable_arrival, unusable_log, unusable_repetition


def said(log: Interactions) -> str:
    return unusable_log(log, propensity_calibration(log))


def test_a_sound_log_is_trusted() -> None:
    assert all(said(log_of(500, seed)) == "" for seed in range(20))


@pytest.mark.parametrize("times", [2, 4])
def test_rows_that_repeat(times: int) -> None:
    log = log_of(500)
    for repeated in (log[np.repeat(np.arange(500), times)], log[np.tile(np.arange(500), times)]):
        assert said(repeated).startswith("rows repeat: ")
        found = o2pl.evaluate(repeated, policy, baseline="logged")
        assert found.judgement.verdict == "cannot be judged"


def test_equal_contexts_are_no_repetition() -> None:
    """One context, or four; a learner that sharpens; certain actions."""
    g = np.random.default_rng(0)
    for levels in (1, 4):
        log = log_of(3000).changed(contexts=g.integers(levels, size=(3000, 1)) * 1.0)
        assert not unusable_repetition(log).alarm
    bandit = o2pl.Bandit(3, exploration=0.1, random_state=0)
    bandit.run((np.zeros((1500, 1)), np.array([[0.2, 0.5, 0.8]]).repeat(1500, axis=0)))
    assert not unusable_repetition(bandit.log_).alarm
    assert not unusable_repetition(log_of(300, propensities=np.ones(300), contexts=np.zeros((300, 1)))).alarm


def test_rewards_that_arrive_by_their_value() -> None:
    log = log_of(1500)
    at = np.arange(1500) + 300 * (log.rewards == 0)
    order = np.argsort(at, kind="stable")
    late = log[order[at[order] < 1500]]
    assert said(late).startswith("rewards seem to arrive by their value: the first ")
    assert unusable_arrival(late.rewards[::-1].copy()).at_start is False
    assert not unusable_arrival(np.zeros(100))
    assert not unusable_arrival(log.rewards)
    assert not unusable_arrival(np.linspace(0, 1, 10))


def test_all_certain() -> None:
    assert said(log_of(300, propensities=np.ones(300))).startswith("the log is deterministic: nearly all propensities")
