from __future__ import annotations

import numpy as np
import pytest

import o2pl
from o2pl.engine.deciding import decider_of
from o2pl.objectives import Outcome, Pessimistic
from o2pl.policies.sampling import BY_EXCESS, acting_parts


def test_an_acting_policy_knows_how_its_members_predict() -> None:
    """Whether actions compete, and τ; of a member without a reward model its calibration."""
    policy = (
        o2pl.Member(objective=Outcome(True)),
        o2pl.Member(objective=Outcome(False)),
        o2pl.Member(objective=Pessimistic()),
    )
    learner = o2pl.Bandit(3, policy=policy, changes=None, random_state=0)
    generator = np.random.default_rng(0)
    x = generator.normal(size=(150, 2))
    learner.run((x, (generator.random((150, 3)) < 0.5 + 0.3 * np.sign(x[:, :1]) * [1, 0, -1]).astype(float)))
    engine = learner._begun()
    made = decider_of(engine)
    parts = acting_parts(made.acting, 3, 3)
    assert parts.sharpness == BY_EXCESS
    np.testing.assert_array_equal(parts.predicting[:, 0], [1, 0, 1])
    for own, member in zip(parts.predicting, engine.members, strict=True):
        outcome = isinstance(member.objective, Outcome)
        assert own[1] == (member.params[-1] if outcome else 0)
        assert tuple(own[2:]) == ((0, 1) if outcome else tuple(member.calibration))
    assert tuple(engine.members[2].calibration) != (0, 1)
    assert parts.weights.sum() == pytest.approx(1)
    np.testing.assert_array_equal(made.predict_proba(x), engine.decider.predict_proba(x))


def test_policies_of_the_paper_are_mixed_as_policies() -> None:
    learner = o2pl.O2PL(3, random_state=0)
    learner.update(learner.act([1.0]), 0.5)
    made = decider_of(learner._begun())
    assert made.uncertainty is None
    assert acting_parts(made.acting, len(made.members), 3).sharpness == learner.sharpness
