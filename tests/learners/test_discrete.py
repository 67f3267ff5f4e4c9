"""What the learners with discrete actions share: which members go together, and how many actions there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl import Member
from o2pl.engine.member import LINEAR
from o2pl.features import Hashed
from o2pl.learners.discrete import discrete_exploration
from o2pl.objectives import Outcome
from o2pl.policies import ActionWise, Gaussian, Softmax
from o2pl.policies.sampling import CountBonus, UniformExploration

OUTCOME = Outcome(competing=False)
each_learner = pytest.mark.parametrize("learner", [o2pl.O2PL, o2pl.Bandit])


def member(*parts: Any) -> Member:
    return Member(*parts, objective=OUTCOME)


@each_learner
@pytest.mark.parametrize(
    ("policy", "found"),
    [
        ("nonsense", "found 'nonsense', expected one of"),
        ((), r"found \(\), expected one of"),
        ((member(), member(Hashed())), "found Hashed and other features"),
        ((member(Hashed(bits=8)), member(Hashed(bits=9))), "found Hashed and other features"),
        ((member(), member(o2pl.features.Standardise(), ActionWise())), "found members with and without action sets"),
        (member(Hashed(), Softmax(3)), "found Softmax with Hashed features"),
        (member(LINEAR, Gaussian(0.0, 1.0)), "expected GaussianO2PL"),
        ((member(LINEAR, Softmax(3)), member(LINEAR, Softmax(4))), r"found members with \[3, 4\] actions"),
    ],
)
def test_members_that_do_not_go_together_are_refused(learner: Any, policy: Any, found: str) -> None:
    hashed = not isinstance(policy, str | tuple) and isinstance(policy.features, Hashed)
    with pytest.raises(o2pl.InvalidInput, match=found):
        learner(3, policy=policy).act({"a": 1.0} if hashed else [1.0])


@each_learner
def test_the_number_of_actions_is_said_or_seen(learner: Any) -> None:
    columns = (np.ones((4, 2)), [0, 4, 1, 0], [0, 1, 0, 1], np.full(4, 0.2))
    assert learner().partial_fit(*columns).n_actions_ == 5
    assert learner(7).partial_fit(*columns).predict_proba([[0.0, 1.0]]).shape == (1, 7)
    with pytest.raises(o2pl.InvalidInput, match="n_actions: found None"):
        learner().act([1.0])
    with pytest.raises(o2pl.InvalidInput, match="n_actions: found 4, expected 3, the number of actions of the policy"):
        learner(4, policy=member(LINEAR, Softmax(3))).act([1.0])
    with pytest.raises(o2pl.InvalidInput, match="action"):
        learner(3).partial_fit(*columns)


@each_learner
def test_a_run_needs_rewards_of_every_action(learner: Any) -> None:
    for rewards, found in ((np.zeros((5, 2)), "rewards: found 2 actions, expected 3"), (np.zeros(5), "rewards: found")):
        with pytest.raises(o2pl.InvalidInput, match=found):
            learner(3).run((np.ones((5, 2)), rewards))


def test_exploration_is_a_share_or_a_rule() -> None:
    assert discrete_exploration(0.2) == UniformExploration(0.2)
    rule = CountBonus()
    assert discrete_exploration(rule) is rule
    with pytest.raises(o2pl.InvalidInput, match="exploration: found 'auto', expected a rule with a method `at`, or"):
        discrete_exploration("auto")
