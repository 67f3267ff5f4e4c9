from __future__ import annotations

import math

import numpy as np

import o2pl
from o2pl.explaining.action_support import action_support_in


def log_of(n: int) -> o2pl.Interactions:
    """Action 1 is played where x0 > 0 only, and pays there; the second column is noise of a large scale."""
    generator = np.random.default_rng(0)
    x = np.column_stack([generator.choice([-1.0, 1.0], n) + 0.01 * generator.normal(size=n), generator.normal(size=n)])
    actions = np.where(x[:, 0] > 0, generator.integers(2, size=n), 0)
    return o2pl.Interactions(x, actions, actions.astype(float), np.where(x[:, 0] > 0, 0.5, 1.0), n_actions=3)


def test_near_rows_are_counted() -> None:
    log = log_of(2000)
    here = action_support_in(log, None, np.array([[1.0, 0.0]], np.float32), [0, 1, 2], [0, 1, 2])
    there = action_support_in(log, None, np.array([[-1.0, 0.0]], np.float32), ["a", "b", "c"], [0, 1, 2])
    assert here is not None
    assert there is not None
    assert here.rows == 2000
    assert here.actions[0].near == here.actions[1].near == 100  # a twentieth
    assert here.actions[0].near_plays + here.actions[1].near_plays == 100
    assert 30 < here.actions[1].near_plays < 70
    assert here.actions[1].near_reward == 1
    assert here.actions[1].plays == int((log.actions == 1).sum())
    assert there.actions["a"].near_plays == 100
    assert there.actions["b"].near_plays == 0
    assert math.isnan(there.actions["b"].near_reward)
    assert math.isnan(there.actions["c"].reward)
    assert "a was played 100 times in the 100 most similar rows, with a mean reward of 0" in there.says("a")
    assert there.says("b") == "b was never played in the 100 most similar rows"


def test_short_logs_and_ties() -> None:
    few = action_support_in(log_of(8), None, np.zeros((1, 2), np.float32), [0, 1], [0, 1])
    assert few is not None
    assert few.actions[0].near == few.rows == 8
    assert "too few to rely on" in few.says(0)
    same = o2pl.Interactions(np.ones((300, 2)), np.zeros(300, int), np.ones(300), np.ones(300), n_actions=2)
    tied = action_support_in(same, None, np.ones((1, 2), np.float32), [0], [0])
    assert tied is not None
    assert tied.actions[0].near == 300  # all are as near
    assert action_support_in(same[:0], None, np.ones((1, 2), np.float32), [0], [0]) is None


def test_items_like_this_one() -> None:
    generator = np.random.default_rng(1)
    learner = o2pl.Bandit(policy="actionwise", random_state=0)
    sets = generator.choice([-1.0, 1.0], (400, 3, 1)) + 0.01 * generator.normal(size=(400, 3, 1))
    actions = np.argmax(sets[:, :, 0] > 0, axis=1)  # a high one where there is any
    rewards = (sets[np.arange(400), actions, 0] > 0).astype(float)
    learner.fit(sets, actions, rewards, np.ones(400))
    found = learner.explain(np.array([[1.0], [-1.0]])).support
    assert found is not None
    assert found.offers
    assert found.actions[0].near_plays > found.actions[1].near_plays
    assert all(own.near >= 1200 // 20 for own in found.actions.values())
    assert "most similar offers" in found.says(0)


def test_hashed_contexts_like_this_one() -> None:
    learner = o2pl.Bandit(2, policy="hashed", random_state=0)
    contexts = [{"city": "Rome" if k % 10 == 0 else "Oslo", "id": "u3"} for k in range(1000)]
    actions = np.array([k % 10 == 0 for k in range(1000)]).astype(int)
    learner.fit(contexts, actions, np.ones(1000), np.ones(1000))
    found = learner.explain({"city": "Rome", "id": "u3"}).support
    assert found is not None
    assert found.actions[1].near_plays >= 50
    assert found.actions[0].near_plays == 0
