"""What every policy's likelihoods must be is in test_contracts; here, what is not about one policy."""

from __future__ import annotations

import numpy as np

from o2pl.policies import FiniteClass, Gaussian
from o2pl.policies.likelihood import log_likelihood, probabilities


def test_a_continuous_policy_is_its_log_density() -> None:
    policy, x, actions = Gaussian(0.5, 2.0), np.ones((3, 1)), np.array([0.0, 1.0, 4.0])
    found, _ = log_likelihood(policy, np.array([0.3]), x, actions)
    expected = policy.density(policy.scores(np.array([0.3]), x), np.array([0.3]), actions)
    np.testing.assert_allclose(np.exp(found), expected)


def test_an_impossible_action_has_no_probability() -> None:
    policies = FiniteClass(np.array([[1.0, 0.0], [0.5, 0.5]]))
    np.testing.assert_array_equal(probabilities(policies, policies.vertex(0), np.zeros((1, 1))), [[1, 0]])
