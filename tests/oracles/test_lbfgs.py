from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der
from tests.oracles.cases import quadratic
from tests.test_threads import blas_threads
from threadpoolctl import threadpool_limits

from o2pl.oracles import LBFGS
from o2pl.protocols import Floats


def test_a_smooth_minimum_is_found_and_said() -> None:
    found = LBFGS()(quadratic, np.zeros(6))
    np.testing.assert_allclose(found.params, 1, atol=1e-3)
    assert found.converged
    assert found.value == pytest.approx(quadratic(found.params)[0])
    assert found.evaluations > 1


def test_a_solve_has_one_blas_thread_and_gives_the_others_back() -> None:
    seen = set()

    def function(params: Floats) -> tuple[float, Floats]:
        seen.update(blas_threads())
        return quadratic(params)

    with threadpool_limits(2, user_api="blas"):
        LBFGS()(function, np.zeros(6))
        assert blas_threads() == {2}
    assert seen == {1}


def rosenbrock(x: Floats) -> tuple[float, Floats]:
    return float(rosen(x)), rosen_der(x)


def kink(x: Floats) -> tuple[float, Floats]:
    return float(np.abs(x - 1).sum()), np.sign(x - 1)


@pytest.mark.parametrize("start", [np.full(10, -1.2), np.linspace(-2, 2, 7)])
@pytest.mark.parametrize("tolerance", [1e-4, 1e-8])
def test_a_curved_valley_is_followed_as_fast_as_by_scipy(start: Floats, tolerance: float) -> None:
    found = LBFGS(iterations=500, tolerance=tolerance)(rosenbrock, start)
    slow = minimize(
        rosenbrock, start, jac=True, method="L-BFGS-B", options={"gtol": tolerance, "ftol": 0, "maxiter": 500}
    )
    assert found.converged
    assert np.abs(rosenbrock(found.params)[1]).max() <= tolerance
    assert found.evaluations <= 1.5 * slow.nfev


def test_gradients_in_single_precision_and_a_kink_end_the_search() -> None:
    rounded = LBFGS()(lambda x: (quadratic(x)[0], quadratic(x)[1].astype(np.float32)), np.zeros(6))
    np.testing.assert_allclose(rounded.params, 1, atol=1e-3)
    found = LBFGS()(kink, np.zeros(5))
    np.testing.assert_allclose(found.params, 1, atol=1e-6)
    assert not found.converged


def test_values_that_are_no_numbers_are_avoided() -> None:
    def walled(x: Floats) -> tuple[float, Floats]:  # the logarithm is not defined where a long first step leads
        with np.errstate(invalid="ignore"):
            return float((x - np.log(x)).sum() * 10), 10 * (1 - 1 / x)

    np.testing.assert_allclose(LBFGS()(walled, np.array([0.01, 5.0])).params, 1, atol=1e-5)
    never = LBFGS()(lambda x: (np.nan, np.full(2, np.nan)), np.zeros(2))
    assert not never.converged
    np.testing.assert_array_equal(never.params, 0)


def test_a_step_that_gains_too_little_ends_the_search() -> None:
    full, short = LBFGS()(rosenbrock, np.full(10, -1.2)), LBFGS()(rosenbrock, np.full(10, -1.2), negligible=1.0)
    assert short.converged
    assert short.evaluations < full.evaluations
    assert short.value > full.value


def test_what_a_function_does_wrong_is_said() -> None:
    with pytest.raises(ValueError, match="the gradient has another length than the parameters"):
        LBFGS()(lambda x: (0.0, np.ones(2)), np.zeros(3))
    with pytest.raises(ZeroDivisionError):
        LBFGS()(lambda x: (1 / 0, x), np.zeros(3))


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
