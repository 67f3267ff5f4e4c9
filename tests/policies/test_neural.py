from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl.data.contexts import ActionSets
from o2pl.errors import InvalidInput
from o2pl.policies import ActionWise, JaxPolicy, Neural, NeuralGaussian, NeuralSets, Truncated, UniformMixture
from o2pl.policies.neural import innermost_neural, is_neural, neural_with_actions


def test_a_network_takes_the_number_of_actions_of_its_learner() -> None:
    assert neural_with_actions(Neural(), 4).n_actions == 4
    assert neural_with_actions(Neural(3), 4).n_actions == 3
    assert neural_with_actions(UniformMixture(Neural()), 4).n_actions == 4
    with pytest.raises(InvalidInput, match="n_actions: found None"):
        Neural().init(3)


def test_which_policies_are_networks() -> None:
    mixed = UniformMixture(Neural(2))
    assert innermost_neural(mixed) == Neural(2)
    assert all(is_neural(each) for each in (mixed, Neural(2), NeuralSets(), NeuralGaussian()))
    assert not is_neural(ActionWise())


def test_a_new_network_is_the_uniform_policy_whatever_its_seed() -> None:
    x = np.random.default_rng(0).normal(size=(5, 3))
    for seed in (0, 1):
        policy = Neural(2, seed=seed)
        np.testing.assert_array_equal(policy.scores(policy.init(3), x), 0)
    assert (Neural(2, seed=0).init(3) != Neural(2, seed=1).init(3)).any()


@pytest.mark.jax
def test_towers_score_the_inner_product_of_user_and_item() -> None:
    policy = NeuralSets((6,), towers=2, shared=2)
    generator = np.random.default_rng(1)
    params = generator.normal(size=policy.n_params(5))
    x = generator.normal(size=(4, 5))  # place in the list, two numbers of the user, two of the item
    scores = policy.scores(params, ActionSets(x, np.array([0, 4])))
    moved = x.copy()
    moved[:, 0] = 9  # the place in the list has no part in it
    np.testing.assert_array_equal(policy.scores(params, ActionSets(moved, np.array([0, 4]))), scores)
    crossed = x.copy()
    crossed[:, 1:3] = x[::-1, 1:3]
    assert np.abs(policy.scores(params, ActionSets(crossed, np.array([0, 4]))) - scores).max() > 1e-3
    assert not policy.forward(policy.init(5), ActionSets(x, np.array([0, 4])), np.zeros(1, np.int64))[0].any()


def test_towers_without_a_user_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"towers: found 3 .* act\(user, items\)"):
        NeuralSets(towers=3).init(4)


def test_a_gaussian_network_begins_near_the_logger() -> None:
    generator = np.random.default_rng(2)
    x = generator.normal(size=(400, 2)).astype(np.float32)
    actions = 1 + np.sin(2 * x[:, 0]) + 0.1 * generator.normal(size=400)
    policy = NeuralGaussian(Truncated(1.0, 0.3, learn_scale=True))
    params = policy.imitate(x, actions)
    means, deviations = policy.moments(policy.scores(params, x), params)
    assert np.corrcoef(means, actions)[0, 1] > 0.95
    assert 0.1 < deviations[0] < 0.3


def three(params: Any, x: Any) -> Any:
    return x @ params


@pytest.mark.jax
def test_a_function_with_scores_of_another_shape_is_refused() -> None:
    policy = JaxPolicy(three, lambda d: np.ones((d, 3)), n_actions=4)
    with pytest.raises(InvalidInput, match=r"function: found scores of shape \(64, 3\), expected \(64, 4\)"):
        policy.forward(policy.init(2), np.ones((5, 2), np.float32), np.zeros(5, np.int64))
    with pytest.raises(InvalidInput, match="start: found 3, expected a function"):
        JaxPolicy(three, 3)
