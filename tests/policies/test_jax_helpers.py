from __future__ import annotations

import numpy as np
import pytest

from o2pl.policies import Neural
from o2pl.policies.jax_helpers import (
    _jax_programs,
    jax_grown,
    jax_in_double,
    jax_padded,
    jax_pulled_back,
    jax_scored_alone,
    jax_unravelled,
)

jax = pytest.importorskip("jax")


def test_double_precision_is_ours_alone() -> None:
    before = jax.config.jax_enable_x64
    with jax_in_double():
        assert jax.numpy.ones(1, jax.numpy.float64).dtype == np.float64
    assert jax.config.jax_enable_x64 == before
    jax_pulled_back(Neural(2, (3,)), Neural(2, (3,)).init(4), np.zeros((5, 4)))
    assert jax.config.jax_enable_x64 == before


def test_scores_keep_the_precision_of_the_features() -> None:
    policy, x = Neural(2, (3,)), np.ones((5, 4), np.float32)
    params = policy.init(4)
    assert jax_pulled_back(policy, params, x)[0].dtype == np.float32
    assert jax_pulled_back(policy, params, x.astype(np.float64))[0].dtype == np.float64
    assert jax_scored_alone(policy, params, x).dtype == np.float64


def test_few_programs_are_compiled_for_many_numbers_of_rows() -> None:
    policy = Neural(2, (3,), seed=77)
    params = policy.init(4)
    for rows in range(1, 200, 7):
        scores, pullback = jax_pulled_back(policy, params, np.ones((rows, 4), np.float32))
        assert scores.shape == (rows, 2)
        assert pullback(np.ones((rows, 2))).shape == params.shape
    assert all(program._cache_size() <= 3 for program in _jax_programs(policy))  # of 64, 128 and 256 rows


def test_rows_are_filled_up_to_a_power_of_two() -> None:
    assert [jax_padded(rows) for rows in (0, 1, 64, 65, 128, 129)] == [64, 64, 64, 128, 128, 256]
    out = jax_grown(np.ones((3, 2)), 5)
    np.testing.assert_array_equal(out, [[1, 1]] * 3 + [[0, 0]] * 2)


def test_a_tree_of_arrays_is_flat_and_back() -> None:
    tree = {"b": np.array([1.0, 2.0]), "a": [np.array([[3.0], [4.0]]), 5.0]}
    flat, formed = jax_unravelled(tree)
    np.testing.assert_array_equal(np.sort(flat), [1, 2, 3, 4, 5])
    again = formed(flat)
    np.testing.assert_array_equal(again["b"], tree["b"])
    np.testing.assert_array_equal(again["a"][0], tree["a"][0])
    assert again["a"][1] == 5
