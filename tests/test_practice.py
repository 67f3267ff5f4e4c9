"""The tasks of docs/practice.md, each written as a user would write it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

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


def test_why_this_action() -> None:
    generator = np.random.default_rng(0)
    n = 2000
    visits = pd.DataFrame(
        {
            "age": generator.integers(18, 80, n),
            "device": generator.choice(["phone", "desktop"], n),
            "hour": generator.integers(0, 24, n),
        }
    )
    young = visits.age < 45
    shown = generator.choice(["news", "sport"], n)
    chance = np.where(shown == "sport", 0.1 + 0.6 * young, 0.4)
    clicks = (generator.random(n) < chance).astype(float)
    learner = o2pl.Bandit(random_state=0).fit(visits, shown, clicks, np.full(n, 0.5))
    why = learner.explain({"age": 25, "device": "phone", "hour": 9})
    assert (why.action, why.against) == ("sport", "news")
    assert why.features[0].name == "age"
    assert why.features[0].adds > 5 * max(abs(other.adds) for other in why.features[1:])
    assert sum(feature.adds for feature in why.features) + why.intercept == pytest.approx(why.difference)
    assert why.support.actions["sport"].near_reward > 0.6
    assert "sport" in str(why)
    assert "age" in why._repr_html_()
    why.figure()
    table = learner.coefficients().to_frame()
    ages = table[table.term == "age"].pivot(index="member", columns="action", values="coefficient")
    assert (ages["sport"] < ages["news"]).all()
