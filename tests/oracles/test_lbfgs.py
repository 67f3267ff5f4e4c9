from __future__ import annotations

import numpy as np
import pytest
from tests.compiled.test_threads import blas_threads
from tests.oracles.cases import quadratic
from threadpoolctl import threadpool_limits

from o2pl.oracles import LBFGS
from o2pl.protocols import Floats


def test_a_smooth_minimum_is_found_and_said() -> None:
    found = LBFGS()(quadratic, np.zeros(6))
    np.testing.assert_allclose(found.params, 1, atol=1e-3)
    assert found.converged
    assert found.value == pytest.approx(quadratic(found.params)[0])
    assert found.evaluations > 1


def test_scipy_solves_with_one_blas_thread_and_gives_the_others_back() -> None:
    seen = set()

    def function(params: Floats) -> tuple[float, Floats]:
        seen.update(blas_threads())
        return quadratic(params)

    with threadpool_limits(2, user_api="blas"):
        LBFGS()(function, np.zeros(6))
        assert blas_threads() == {2}
    assert seen == {1}


def test_stopping_early_is_said() -> None:
    assert not LBFGS(iterations=2)(quadratic, np.full(6, 50.0)).converged


def test_steps_go_on_where_the_last_one_stopped_and_change_no_earlier_state() -> None:
    oracle, start = LBFGS(iterations=3), np.full(6, 5.0)
    fresh = oracle.init(6)
    first, kept = oracle.step(quadratic, start, fresh)
    assert fresh["at"].tolist() == [0, 0]
    assert kept["at"][1] > 0
    again, _ = oracle.step(quadratic, start, fresh)
    np.testing.assert_array_equal(first.params, again.params)
    for _ in range(5):
        first, kept = oracle.step(quadratic, first.params, kept)
    np.testing.assert_allclose(first.params, 1, atol=1e-4)
    assert first.converged


def test_parameters_may_be_added_between_steps() -> None:
    oracle = LBFGS(iterations=5)
    found, kept = oracle.step(quadratic, np.zeros(4), oracle.init(4))
    grown = np.append(found.params, np.zeros(3))
    later, kept = oracle.step(quadratic, grown, kept)
    assert kept["steps"].shape == (10, 7)
    assert later.value < quadratic(grown)[0]
