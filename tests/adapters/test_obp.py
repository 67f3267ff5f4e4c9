"""OBP's learner, by its own shapes; and inside the real OBP."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.adapters.inside import run_inside

import o2pl
from o2pl.adapters.obp import OBPLearner
from o2pl.errors import InvalidInput


def feedback(n: int = 900, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    context, action, position = rng.normal(size=(n, 3)), rng.integers(3, size=n), rng.integers(2, size=n)
    best = np.where(position == 0, context.argmax(axis=1), context.argmin(axis=1))
    reward = (rng.random(n) < np.where(action == best, 0.8, 0.1)).astype(int)
    return context, action, reward, np.full(n, 1 / 3), position


def test_one_learner_for_each_position() -> None:
    context, action, reward, pscore, position = feedback()
    mine = o2pl.Bandit(policy="linear", random_state=0)
    learner = OBPLearner(3, len_list=2, learner=mine).fit(context, action, reward, pscore, position)
    chosen = learner.predict(context)
    assert chosen.shape == (900, 3, 2)
    np.testing.assert_array_equal(chosen.sum(axis=1), 1)
    assert (chosen[:, :, 0].argmax(axis=1) == context.argmax(axis=1)).mean() > 0.85
    assert (chosen[:, :, 1].argmax(axis=1) == context.argmin(axis=1)).mean() > 0.85
    np.testing.assert_allclose(learner.predict_proba(context).sum(axis=1), 1)
    rows = position == 1
    alone = o2pl.Bandit(3, policy="linear", random_state=0).fit(context[rows], action[rows], reward[rows], pscore[rows])
    np.testing.assert_array_equal(learner.predict_proba(context)[:, :, 1], alone.predict_proba(context))
    assert mine._engine is None  # the one that was given has seen nothing


def test_without_positions_and_propensities() -> None:
    context, action, reward, *_ = feedback()
    learner = OBPLearner(3).fit(context, action, reward)
    assert learner.predict(context[:5]).shape == (5, 3, 1)
    with pytest.raises(InvalidInput, match="position: found None"):
        OBPLearner(3, len_list=2).fit(context, action, reward)
    with pytest.raises(InvalidInput, match="no row of position 1"):
        OBPLearner(3, len_list=2).fit(context, action, reward, position=np.zeros(900, int))
    with pytest.raises(InvalidInput, match="call fit first"):
        OBPLearner(3).predict(context)
    with pytest.raises(InvalidInput, match="len_list: found 4, expected at most 3"):
        OBPLearner(3, len_list=4)


@pytest.mark.peers
def test_inside_the_real_obp() -> None:
    said = run_inside(
        "obp",
        """
        from benchmarks.peer_loops import _obp
        policy, dataset, ope = _obp("policy"), _obp("dataset"), _obp("ope")
        from o2pl.adapters.obp import OBPLearner

        world = dataset.SyntheticBanditDataset(
            n_actions=4, dim_context=3, reward_function=dataset.logistic_reward_function, beta=0, random_state=1
        )
        train, test = world.obtain_batch_bandit_feedback(4000), world.obtain_batch_bandit_feedback(4000)
        learner = OBPLearner(4)
        assert learner.policy_type == policy.IPWLearner(n_actions=4).policy_type
        learner.fit(train["context"], train["action"], train["reward"], train["pscore"])
        chosen = learner.predict_proba(test["context"])
        true = world.calc_ground_truth_policy_value(test["expected_reward"], chosen)
        evaluation = ope.OffPolicyEvaluation(
            bandit_feedback=test, ope_estimators=[ope.SelfNormalizedInverseProbabilityWeighting()]
        )
        (estimate,) = evaluation.estimate_policy_values(action_dist=chosen).values()
        print(true, estimate, test["expected_reward"].mean(), test["expected_reward"].max(axis=1).mean())
        """,
    )
    true, estimate, chance, best = (float(number) for number in said.split())
    assert chance + 0.7 * (best - chance) < true <= best
    assert estimate == pytest.approx(true, abs=0.05)
