from __future__ import annotations

import numpy as np
import pytest
from tests.oracles.cases import quadratic

from o2pl.oracles import Adam


def test_a_smooth_minimum_is_found_and_said() -> None:
    found = Adam(steps=3000)(quadratic, np.zeros(6))
    np.testing.assert_allclose(found.params, 1, atol=1e-3)
    assert found.converged
    assert found.value == pytest.approx(quadratic(found.params)[0])
    assert found.evaluations > 1


def test_stopping_early_is_said() -> None:
    assert not Adam(steps=5)(quadratic, np.full(6, 50.0)).converged


def test_steps_go_on_where_the_last_one_stopped() -> None:
    once, half = Adam(steps=100), Adam(steps=50)
    whole, _ = once.step(quadratic, np.zeros(6), once.init(6))
    fresh = half.init(6)
    first, kept = half.step(quadratic, np.zeros(6), fresh)
    second, _ = half.step(quadratic, first.params, kept)
    np.testing.assert_array_equal(second.params, whole.params)
    assert not fresh["first"].any()  # an earlier state stays as it was
    grown, kept = half.step(quadratic, np.append(second.params, 0.0), kept)
    assert len(grown.params) == len(kept["first"]) == 7


def test_a_step_equals_the_published_rule() -> None:
    oracle = Adam(steps=3, step_size=0.1)
    x, first, second = np.full(2, 3.0), np.zeros(2), np.zeros(2)
    for t in range(1, 4):
        g = quadratic(x)[1]
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g * g
        x = x - 0.1 * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
    np.testing.assert_allclose(oracle.step(quadratic, np.full(2, 3.0), oracle.init(2))[0].params, x, rtol=1e-12)
