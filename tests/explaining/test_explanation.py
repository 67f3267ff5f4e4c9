from __future__ import annotations

import math

import numpy as np
import pytest

import o2pl
from o2pl.explaining.explanation import _log_mean_in_explanation


def test_logarithmic_means() -> None:
    for x, y in ((0.3, 0.7), (0.5, 0.5), (1e-3, 0.9), (0.4, 0.4 + 1e-9)):
        expected = x if x == y else (x - y) / math.log(x / y)
        assert math.exp(_log_mean_in_explanation(math.log(x), math.log(y))) == pytest.approx(expected, rel=1e-5)
    assert math.isfinite(_log_mean_in_explanation(-2000.0, 0.0))  # where probabilities themselves are 0


def test_features_share_products_and_the_most_important_comes_first() -> None:
    """Rewards follow x0 x1 alone: neither does anything alone, and both share what they do together."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(4000, 3))
    good = (x[:, 0] * x[:, 1] > 0).astype(float)
    learner = o2pl.Bandit(2, policy="quadratic", random_state=0)
    actions = generator.integers(2, size=4000)
    learner.fit(x, actions, np.where(actions == 1, good, 1 - good), np.full(4000, 0.5))
    found = learner.explain([1.0, 1.5, 0.2])
    assert found.action == 1
    assert found.terms[0].name == "x0 × x1"
    by_name = {feature.name: feature for feature in found.features}
    assert by_name["x0"].adds == pytest.approx(by_name["x1"].adds, rel=0.2)
    assert abs(by_name["x0"].alone) < 0.1 * by_name["x0"].adds
    assert abs(by_name["x2"].adds) < 0.1 * by_name["x0"].adds
    assert {feature.name: feature.value for feature in found.features} == {"x0": "1", "x1": "1.5", "x2": "0.2"}
    # Members that have weights of their own say what they count for: together, the mixture's difference.
    total = sum(member.counts * member.difference for member in found.members)
    assert total == pytest.approx(found.difference)


def test_exploration_is_kept_apart() -> None:
    learner = o2pl.Bandit(3, exploration=0.3, random_state=0)
    rewards = np.tile([0.8, 0.2, 0.1], (60, 1))
    learner.run((np.random.default_rng(0).normal(size=(60, 2)), rewards))
    found = learner.explain([0.0, 0.0])
    assert found.epsilon == 0.3
    assert found.action == 0
    assert found.propensity <= 0.8 + 1e-9  # 1 - ε + ε/K
    assert found.without_exploration[0] > found.propensity
    assert found.bonus < 0  # the other was played less, and gets more
    assert found.support is not None
    assert found.support.rows <= 60


def test_one_action_and_unknown_words() -> None:
    learner = o2pl.Bandit(policy="actionwise", random_state=0)
    learner.update(learner.act(np.ones((2, 2))), 1.0)
    alone = learner.explain(np.ones((1, 2)))
    assert alone.against is None
    assert alone.probabilities == {0: 1.0}
    assert "the only action" in str(alone)
    words = o2pl.Bandit(2, policy="hashed", random_state=0)
    for _ in range(20):
        words.update(words.act({"id": "u1"}), 1.0)
    found = words.explain({"id": "u1", "city": "Rome"})
    assert found.unknown == ("city=Rome",)
    assert "not learned from yet: city=Rome" in str(found)
