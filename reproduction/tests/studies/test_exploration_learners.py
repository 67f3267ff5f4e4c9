"""The rivals of `exploration` that it brings along."""

from __future__ import annotations

import numpy as np
import pytest

from o2pl.evaluation.play import play
from o2pl.simulation.rivals import RAW
from o2pl.simulation.rivals.linear import LinUCB
from o2pl_reproduction.studies.exploration_learners import (
    BANDITS,
    BanditOfItems,
    BetaThompson,
    LinUCBOfItems,
    ThompsonOfItems,
    item_descriptions,
)
from o2pl_reproduction.studies.exploration_worlds import Arms


def test_thompson_sampling_plays_an_arm_as_often_as_it_is_the_best_one() -> None:
    """After 3 wins of 5 and 1 of 4: P(Beta(4, 3) > Beta(2, 4)), by quadrature, against 4,000 decisions."""
    learner = BetaThompson(2, random_state=0)
    for action, rewards in ((0, (1, 1, 1, 0, 0)), (1, (1, 0, 0, 0))):
        for reward in rewards:
            learner.update([1.0], action, float(reward), 1.0)
    x = (np.arange(20_000) + 0.5) / 20_000
    first, second = x**3 * (1 - x) ** 2, x * (1 - x) ** 3
    expected = float((first / first.sum()) @ (np.cumsum(second) / second.sum()))
    played = np.mean([learner.act([1.0]).action == 0 for _ in range(4000)])
    assert played == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 4000))


def test_thompson_sampling_finds_the_better_arm() -> None:
    rounds = Arms((0.2, 0.8)).sample(500, np.random.default_rng(0))
    assert np.mean(play(BetaThompson(2, random_state=0), rounds).actions[100:]) > 0.9


def test_linucb_of_items_is_linucb_on_raw_users_where_items_stay() -> None:
    generator = np.random.default_rng(0)
    plain = LinUCB(3, alpha=1.0, features=RAW)
    own, shown = LinUCBOfItems(3, 2, 0), np.arange(3)
    for _ in range(200):
        user = np.round(generator.normal(size=2), 2).astype(np.float32).astype(np.float64)
        place, propensity = own.choose(user, shown, np.empty((3, 0)))
        assert propensity == 1
        assert plain.act(np.append(1.0, user)).action == place
        reward = float(generator.random() < 0.3 + 0.2 * place)
        own.learn(user, place, reward)
        plain.update(np.append(1.0, user), place, reward, 1.0)


def test_items_are_known_by_their_ids() -> None:
    learner = ThompsonOfItems(50, 2, 0)
    for _ in range(200):
        learner.learn(np.zeros(2), 40, 1.0)
        learner.learn(np.zeros(2), 3, 0.0)
    assert learner.choose(np.zeros(2), np.array([3, 40]), np.empty((2, 0))) == (1, 1.0)
    assert learner.choose(np.zeros(2), np.array([40, 3]), np.empty((2, 0))) == (0, 1.0)


def test_bandit_returns_the_place_on_the_page_and_its_propensity() -> None:
    bandit = BanditOfItems(BANDITS["bandit-0.05"](None, 0))  # items: no number of actions
    generator = np.random.default_rng(0)
    for _ in range(60):
        shown = generator.choice(20, size=4, replace=False)
        user, features = generator.normal(size=2), generator.normal(size=(4, 2))
        place, propensity = bandit.choose(user, shown, features)
        assert bandit._decision.action == str(shown[place])
        assert propensity >= 0.05 / 4
        bandit.learn(user, int(shown[place]), float(shown[place] > 10))


def test_descriptions_hold_what_differs() -> None:
    found = {each["name"]: each for each in item_descriptions()}
    assert found["bandit-0.05"]["params"]["exploration"] == 0.05
    assert found["linucb"]["alpha"] == 1.0
