"""The mean reward so far, and what it does to exploration."""

from __future__ import annotations

import numpy as np
import pytest

from o2pl import Bandit
from o2pl.data.log import Log
from o2pl.engine.mean_reward import MeanReward
from o2pl.policies.sampling import CountBonus


def log_of(rewards: np.ndarray) -> Log:
    log = Log(1, n_actions=2, reward_range=(0.0, 10.0))
    n = len(rewards)
    log.extend_columns(np.zeros((n, 1)), np.zeros(n, int), 10 * rewards, np.ones(n))
    return log


def test_it_is_a_share_of_the_range_after_two_rows_of_a_fair_coin() -> None:
    rewards = np.random.default_rng(0).random(50)
    log = log_of(rewards)
    assert MeanReward().value == 0.5
    found = MeanReward().extended(log, 0, 50)
    assert found.value == pytest.approx(np.mean([0.0, 1.0, *rewards]))
    for steps in ((50,), (1, 7, 50), (20, 20, 50)):
        mean = MeanReward()
        for rows in steps:
            mean = mean.extended(log, 0, rows)
        assert mean.value == pytest.approx(found.value)
    assert found.extended(log, 30, 50).value == pytest.approx(np.mean([0.0, 1.0, *rewards[30:]]))


def test_actions_are_tried_less_where_little_is_left_to_gain() -> None:
    bonuses = []
    for paid in (0.9, 1.0), (0.0, 1.0):
        learner = Bandit(3, exploration=CountBonus(), random_state=0)
        for n in range(40):
            learner.update([1.0], n % 3, reward=paid[n % 2], propensity=1 / 3)
        bonuses.append(learner._engine.acting[-3:])
    np.testing.assert_allclose(bonuses[0], bonuses[1] * 2 * (1 - np.mean([0, 1, *20 * [0.9, 1.0]])))
