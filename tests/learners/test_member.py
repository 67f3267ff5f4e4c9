from __future__ import annotations

from typing import Any

import pytest

import o2pl
from o2pl import Member
from o2pl.features import Hashed
from o2pl.learners.member import own_objective
from o2pl.objectives import Outcome, Pessimistic
from o2pl.policies import ThresholdClass


@pytest.mark.parametrize("setting", ["l2", "penalty"])
@pytest.mark.parametrize("objective", [Outcome(), Pessimistic()])
def test_a_setting_beside_an_objective_is_refused(setting: str, objective: Any) -> None:
    with pytest.raises(o2pl.InvalidInput, match=rf"{setting}: found 3\.0 beside an objective, expected it in that one"):
        Member(objective=objective, **{setting: 3.0})


def test_a_finite_class_has_no_outcome_objective() -> None:
    with pytest.raises(o2pl.InvalidInput, match="objective: found Outcome with ThresholdClass"):
        Member(policy=ThresholdClass((0.0,)), objective=Outcome())


def test_a_prior_is_a_finite_number() -> None:
    with pytest.raises(o2pl.InvalidInput, match="prior: found nan"):
        Member(Hashed(), prior=float("nan"))


def test_settings_of_a_member_go_before_those_of_the_learner() -> None:
    shared = Pessimistic(penalty=0.3, l2=0.2)
    assert own_objective(Member(), shared) == shared
    assert own_objective(Member(l2=0.0), shared) == Pessimistic(penalty=0.3, l2=0.0)
    assert own_objective(Member(penalty=2.0), shared) == Pessimistic(penalty=2.0, l2=0.2)
