from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl import Member
from o2pl.engine.member import objective_of_member, oracle_of_member, solving_oracle_of_member
from o2pl.features import Hashed
from o2pl.objectives import Outcome, Pessimistic
from o2pl.oracles import LBFGS, Adam, Exhaustive
from o2pl.oracles.lbfgs import Alone
from o2pl.policies import Gaussian, Softmax, ThresholdClass


@pytest.mark.parametrize("setting", ["l2", "penalty"])
@pytest.mark.parametrize("objective", [Outcome(), Pessimistic()])
def test_a_setting_beside_an_objective_is_refused(setting: str, objective: Any) -> None:
    with pytest.raises(o2pl.InvalidInput, match=rf"{setting}: found 3\.0 together with an objective"):
        Member(objective=objective, **{setting: 3.0})


def test_a_finite_class_has_no_outcome_objective() -> None:
    with pytest.raises(o2pl.InvalidInput, match="objective: found Outcome with ThresholdClass"):
        Member(policy=ThresholdClass((0.0,)), objective=Outcome())


def test_a_prior_is_a_finite_number() -> None:
    with pytest.raises(o2pl.InvalidInput, match="prior: found nan"):
        Member(Hashed(), prior=float("nan"))


def test_settings_of_a_member_go_before_those_of_the_learner() -> None:
    shared = Pessimistic(penalty=0.3, l2=0.2)
    assert objective_of_member(Member(), shared) == shared
    assert objective_of_member(Member(l2=0.0), shared) == Pessimistic(penalty=0.3, l2=0.0)
    assert objective_of_member(Member(penalty=2.0), shared) == Pessimistic(penalty=2.0, l2=0.2)


def test_an_oracle_that_is_asked_for_suits_the_policy() -> None:
    asked = LBFGS(iterations=50)
    assert solving_oracle_of_member(Softmax(3), asked) is asked
    assert solving_oracle_of_member(Gaussian(), asked) == Alone(asked)
    assert solving_oracle_of_member(ThresholdClass((0.0,)), asked) == Exhaustive()
    for competing, steps in ((True, 6), (False, 4)):
        found = oracle_of_member(Softmax(3), o2pl.Geometric(), Outcome(competing))
        assert isinstance(found, LBFGS)
        assert found.iterations == steps
    assert oracle_of_member(Softmax(3), o2pl.Replay(steps=7), Outcome()) == Adam(7, o2pl.Replay().step_size)


def test_a_finite_class_is_searched_offline_too() -> None:
    generator = np.random.default_rng(0)
    x, actions = generator.normal(size=(400, 1)), generator.integers(2, size=400)
    rewards = (actions == (x[:, 0] > 0.5)).astype(float)
    learner = o2pl.O2PL(policy=ThresholdClass((-1.0, 0.5, 1.0), 0.1), sharpness=1.0)
    learner.fit(x, actions, rewards, np.full(400, 0.5))
    np.testing.assert_allclose(learner.predict_proba([[0.0], [0.7]]), [[0.9, 0.1], [0.1, 0.9]])


def test_a_member_that_hardly_acts_waits_until_the_rows_have_doubled() -> None:
    learner = o2pl.Bandit(3, changes=None, random_state=0)
    generator = np.random.default_rng(0)
    x = generator.normal(size=(300, 4)).astype(np.float32)
    learner.run((x, np.eye(3)[np.abs(x[:, :3]).argmax(axis=1)]))
    engine = learner._engine
    member = engine.members[0]
    assert member.after(300, False) < 400
    assert member.after(300, True) == 600
    engine.gains = np.array([-1e6, 0.0, 0.0, 0.0, 0.0])
    engine.finish_learning(300, engine.members)
    assert [each.checkpoint for each in engine.members] == [600, *4 * [member.after(300, False)]]
    for schedule in (o2pl.Exact(), o2pl.Geometric(window=200), o2pl.Geometric(half_life=50.0)):
        member.schedule = schedule
        assert member.after(300, True) == schedule.after(300)
