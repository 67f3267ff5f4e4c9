"""The tasks of docs/practice.md, each written as a user would write it."""

from __future__ import annotations

import numpy as np

import o2pl


def test_forty_changing_articles() -> None:
    generator = np.random.default_rng(0)
    taste = generator.normal(size=(8, 8)) / 3
    learner = o2pl.Bandit(random_state=0)
    earned, by_chance, best = [], [], []
    for _ in range(1000):
        user, articles = generator.normal(size=8), generator.normal(size=(40, 8))
        chances = 1 / (1 + np.exp(2 - user @ taste @ articles.T))
        decision = learner.act(user, articles)
        learner.update(decision, reward=float(generator.random() < chances[decision.action]))
        earned.append(chances[decision.action])
        by_chance.append(chances.mean())
        best.append(chances.max())
    chance = np.mean(by_chance)
    assert (np.mean(earned[-300:]) - chance) / (np.mean(best) - chance) > 0.8
    ids = [f"article-{k}" for k in range(40)]
    seen = ids[:30]
    action, propensity = learner.act(user, articles, ids=ids, exclude=seen)
    assert action in ids[30:]
    assert 0 < propensity <= 1


def test_three_slots() -> None:
    generator = np.random.default_rng(0)
    taste = generator.normal(size=(4, 4))
    learner = o2pl.Bandit(random_state=0)
    shown, by_chance = [], []
    for _ in range(500):
        user, articles = generator.normal(size=4), generator.normal(size=(10, 4))
        odds = user @ taste @ articles.T - 1
        decision = learner.act(user, articles, slots=3)
        rewards = generator.random(3) < 1 / (1 + np.exp(-(odds[decision.action] - [0, 1, 2])))
        learner.update(decision, rewards.astype(float))
        shown.append(odds[decision.action].mean())
        by_chance.append(odds.mean())
    actions, propensity = decision
    assert len(set(actions)) == 3
    assert propensity == np.prod(decision.propensities)
    assert np.mean(shown[-150:]) > np.mean(by_chance[-150:]) + 1
