"""What every policy must do is in test_contracts; here, what is these classes' own."""

from __future__ import annotations

import numpy as np
import pytest

from o2pl.policies import FiniteClass, ThresholdClass
from o2pl.policies.likelihood import probabilities


def test_a_vertex_is_one_member_alone() -> None:
    table = np.random.default_rng(0).dirichlet(np.ones(3), size=(4, 2))
    policies, contexts = FiniteClass(table), np.array([[0.0], [1.0], [1.0]])
    assert (policies.size, policies.n_actions) == (4, 3)
    np.testing.assert_allclose(probabilities(policies, policies.vertex(2), contexts), table[2, [0, 1, 1]])
    np.testing.assert_allclose(probabilities(policies, policies.init(1), contexts), table.mean(axis=0)[[0, 1, 1]])


def test_thresholds_keep_their_floor() -> None:
    policies = ThresholdClass((-1.0, 0.5), 0.1)
    found = policies.all_likelihoods(np.array([[0.0], [0.7]]))  # [n, K, J]
    np.testing.assert_allclose(found, [[[0.1, 0.9], [0.9, 0.1]], [[0.1, 0.1], [0.9, 0.9]]])
    for j in range(2):
        np.testing.assert_allclose(policies.member(np.array([[0.0], [0.7]]), j), found[:, :, j])


def test_what_is_no_class_is_refused() -> None:
    with pytest.raises(ValueError, match="sum to 1"):
        FiniteClass(np.full((2, 3), 0.5))
    with pytest.raises(ValueError, match="floor"):
        ThresholdClass((0.0,), 0.5)
    with pytest.raises(ValueError, match="integers from 0 to 1"):
        FiniteClass(np.full((3, 2, 2), 0.5)).likelihoods(np.array([[2.0]]), np.array([0]))
