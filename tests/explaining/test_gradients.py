"""Integrated gradients add up, and are what they are for policies that can be taken apart by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl import Member
from o2pl.explaining.gradients import CLOSE, integrated_gradients
from o2pl.features import Standardise
from o2pl.objectives import Outcome
from o2pl.oracles import Minibatch
from o2pl.policies import JaxPolicy, Neural, NeuralSets
from o2pl.policies.sampling import acting_parts, predicted

QUICK = Minibatch(least=40, most=40)


def quadratic(params: Any, x: Any) -> Any:
    return x @ params[0] + (x[:, :1] * x[:, 1:2]) @ params[1]


def quadratic_start(n_features: int) -> Any:
    return np.zeros((n_features, 3)), np.zeros((1, 3))


POLICIES = {
    "neural": Neural(hidden=(8, 6)),
    "tanh": Neural(hidden=(8,), activation="tanh"),
    "a function": JaxPolicy(quadratic, quadratic_start, 3),
}


def fitted(policy: Any) -> Any:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(400, 3))
    actions = generator.integers(3, size=400)
    rewards = (generator.random(400) < 1 / (1 + np.exp(-3 * X[:, 0] * X[:, 1] * (actions - 1)))).astype(float)
    member = Member(Standardise(), policy, objective=Outcome(), oracle=QUICK)
    learner = o2pl.Bandit(3, policy=member, changes=None, random_state=0)
    return learner.fit(X, actions, rewards, np.full(400, 1 / 3))


@pytest.mark.jax
@pytest.mark.parametrize("name", POLICIES)
def test_terms_add_up_to_the_difference_of_log_odds(name: str) -> None:
    learner = fitted(POLICIES[name])
    for x in np.random.default_rng(1).normal(size=(5, 3)):
        why = learner.explain(x, action=2, against=0)
        scores = learner._engine.decider.scores(learner._engine.encoder.encode_one(x))
        numbers = acting_parts(learner._engine.acting, 1, 3)
        log_odds = predicted(scores.reshape(1, -1), numbers).mixed
        difference = log_odds[2] - log_odds[0]
        assert abs(why.difference - difference) < 2 * CLOSE * (1 + abs(difference))
        assert sum(term.adds for term in why.terms) == pytest.approx(why.difference)
        assert len(why.terms) == 4  # the intercept and three inputs
        assert why.members[0].name == "neural, competing actions"


def test_a_product_is_shared_in_halves() -> None:
    """Of f = a·z + c z₀ z₁ the integral is known: a_i z_i, and half the product for each of its two factors."""
    z = np.array([0.7, -1.3, 0.4])

    def scores(rows: Any) -> Any:
        return rows @ np.array([1.0, 2.0, -1.0]) + 3 * rows[:, 0] * rows[:, 1]

    def slopes(rows: Any) -> Any:
        bent = np.stack([3 * rows[:, 1], 3 * rows[:, 0], np.zeros(len(rows))], axis=1)
        return np.array([1.0, 2.0, -1.0]) + bent

    half = 1.5 * z[0] * z[1]
    np.testing.assert_allclose(
        integrated_gradients(z, scores, slopes), [z[0] + half, 2 * z[1] + half, -z[2]], atol=1e-12
    )


@pytest.mark.jax
@pytest.mark.parametrize("towers", [0, 3])
def test_items_of_sets_are_told_apart(towers: int) -> None:
    generator = np.random.default_rng(2)
    member = Member(Standardise(), NeuralSets((6,), towers=towers), objective=Outcome(False), oracle=QUICK)
    learner = o2pl.Bandit(policy=member, changes=None, random_state=0)
    users, items = generator.normal(size=(60, 2)), generator.normal(size=(60, 4, 3))
    for user, own in zip(users, items, strict=True):
        decision = learner.act(user, own)
        learner.update(decision, float(generator.random() < 1 / (1 + np.exp(-3 * user[0] * own[decision.action, 0]))))
    why = learner.explain(users[0], items[0], action=1, against=2)
    from_scores = learner._engine.decider.scores(learner._engine.encoder.encode([(users[0], items[0])])).reshape(-1)
    difference = from_scores[1] - from_scores[2]
    assert abs(why.difference - difference) < 2 * CLOSE * (1 + abs(difference))
    assert np.abs(difference) > 1e-3
