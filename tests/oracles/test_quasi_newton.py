from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl._core import lbfgs_direction, remember
from o2pl.objectives import PessimisticLog, Phi, PolicyValue, ridge_control
from o2pl.oracles import LBFGS
from o2pl.oracles.quasi_newton import descend_quasi_newton, no_quasi_newton_pairs
from o2pl.policies import Softmax


def dense_inverse_hessian(steps: list[Any], changes: list[Any]) -> Any:
    """BFGS on the inverse, pair after pair, from sᵀy / yᵀy of the newest."""
    size = len(steps[0])
    H = np.eye(size) * (steps[-1] @ changes[-1]) / (changes[-1] @ changes[-1])
    for s, y in zip(steps, changes, strict=True):
        V = np.eye(size) - np.outer(y, s) / (s @ y)
        H = V.T @ H @ V + np.outer(s, s) / (s @ y)
    return H


@pytest.mark.parametrize("n_pairs", [1, 3, 5, 8])  # the ring of five is not full, full, overwritten
def test_direction_is_that_of_the_dense_formula(n_pairs: int) -> None:
    generator = np.random.default_rng(n_pairs)
    root = generator.normal(size=(7, 7))
    hessian = root @ root.T + np.eye(7)
    pairs = no_quasi_newton_pairs(5, 7)
    steps = [generator.normal(size=7) for _ in range(n_pairs)]
    for step in steps:
        remember(step, np.zeros(7), hessian @ step, **pairs)
    kept = steps[-5:]
    gradient, direction = generator.normal(size=7), np.empty(7)
    slope = lbfgs_direction(gradient, **pairs, out=direction)
    expected = -dense_inverse_hessian(kept, [hessian @ step for step in kept]) @ gradient
    np.testing.assert_allclose(direction, expected, rtol=1e-4, atol=1e-5)
    assert slope == pytest.approx(gradient @ direction)


def test_without_pairs_the_direction_is_downhill_and_bad_pairs_are_not_kept() -> None:
    pairs = no_quasi_newton_pairs(3, 2)
    remember(np.array([1.0, 0.0]), np.zeros(2), np.array([-1.0, 0.0]), **pairs)
    remember(np.array([0.0, 1e-4]), np.ones(2), np.array([0.0, 1.0]), **pairs)  # a kink
    direction = np.empty(2)
    assert lbfgs_direction(np.array([1.0, -2.0]), **pairs, out=direction) == -5
    np.testing.assert_array_equal(direction, [-1, 2])


def logged(n: int, seed: int = 0) -> tuple[Any, Any, Any]:
    generator = np.random.default_rng(seed)
    x, actions = generator.normal(size=(n, 6)).astype(np.float32), generator.integers(4, size=n)
    return x, actions, -(actions == np.argmax(x[:, :4] + 0.5 * generator.normal(size=(n, 4)), axis=1)).astype(float)


def value_of(n: int, with_control: bool) -> PolicyValue:
    x, actions, losses = logged(n)
    control = ridge_control(x, actions, losses, 4, -0.3, 5.0) if with_control else None
    penalty = Phi(12.0, n, 6.0, 0.0, 0.1)
    log = PessimisticLog(actions, losses, np.full(n, 0.25), 12.0, penalty, -0.3, control, 0.1)
    return PolicyValue(Softmax(4), x, log)


@pytest.mark.parametrize("n", [40, 1000])
@pytest.mark.parametrize("with_control", [False, True])
def test_the_minimum_is_as_low_as_scipys(n: int, with_control: bool) -> None:
    function, start = value_of(n, with_control), np.zeros(24)
    oracle = LBFGS(iterations=500, tolerance=1e-5)
    ours, theirs = (
        descend_quasi_newton(function, start, no_quasi_newton_pairs(10, 24), 500, 1e-5),
        oracle(function, start),
    )
    assert ours.value <= theirs.value + 1e-4
    assert ours.value == pytest.approx(function(ours.params)[0], abs=1e-6)
    assert ours.converged == (np.abs(function(ours.params)[1]).max() <= 1e-5)
    assert ours.evaluations > 5
    np.testing.assert_array_equal(start, 0)


def test_what_is_known_of_the_curvature_saves_evaluations() -> None:
    """A bowl that has moved, from where its minimum was."""
    warm = cold = 0
    for seed in range(10):
        root = np.random.default_rng(seed).normal(size=(12, 12))
        hessian = root @ root.T + 0.1 * np.eye(12)

        def bowl(x: Any, centre: float, hessian: Any = hessian) -> tuple[float, Any]:
            gradient = hessian @ (x - centre)
            return float(0.5 * (x - centre) @ gradient), gradient

        pairs = no_quasi_newton_pairs(10, 12)
        descend_quasi_newton(partial(bowl, centre=1.0), np.zeros(12), pairs, 200, 1e-4)
        moved, start = partial(bowl, centre=1.1), np.ones(12)
        warm += descend_quasi_newton(moved, start, pairs, 200, 1e-4).evaluations
        cold += descend_quasi_newton(moved, start, no_quasi_newton_pairs(10, 12), 200, 1e-4).evaluations
    assert warm < 0.9 * cold


def test_pairs_of_quite_another_objective_do_no_harm() -> None:
    function, oracle = value_of(1000, False), LBFGS(iterations=500, tolerance=1e-5)
    pairs, generator = no_quasi_newton_pairs(10, 24), np.random.default_rng(0)
    for _ in range(10):
        step = generator.normal(size=24)
        remember(step, np.zeros(24), step * np.exp(3 * generator.normal(size=24)), **pairs)
    found = descend_quasi_newton(function, np.zeros(24), pairs, 500, 1e-5)
    assert found.value <= oracle(function, np.zeros(24)).value + 1e-4


def test_a_tiny_step_is_believed_if_its_curvature_is_known() -> None:
    for size, curved, kept in ((1e-4, 9.0, 2), (1e-4, 11.0, 1), (1.0, 11.0, 2), (1e-4, -1.0, 1)):
        pairs, step = no_quasi_newton_pairs(5, 2), size * np.array([1.0, 0.0])
        remember(np.ones(2), np.zeros(2), np.ones(2), **pairs)  # a curvature of 1
        remember(step, np.ones(2), curved * step, **pairs)
        assert pairs["at"][1] == kept


def test_pairs_of_a_kink_do_not_stop_a_learner_for_good() -> None:
    generator = np.random.default_rng(0)
    function, start = value_of(1000, True), 2 * generator.normal(size=24)
    steep = no_quasi_newton_pairs(10, 24)  # a pair of a kink: a curvature of 1e5 along every axis
    remember(np.ones(24), np.zeros(24), np.full(24, 1e5), **steep)
    found = descend_quasi_newton(function, start, steep, 60, 1e-5)
    fresh = descend_quasi_newton(function, start, no_quasi_newton_pairs(10, 24), 60, 1e-5)
    assert fresh.value < function(start)[0] - 0.1
    assert found.value == pytest.approx(fresh.value, abs=5e-3)


def test_stopping_early_is_said() -> None:
    assert not descend_quasi_newton(
        value_of(1000, False), np.zeros(24), no_quasi_newton_pairs(5, 24), 2, 1e-6
    ).converged


def test_a_learner_that_solves_every_round_is_not_held_up_by_kinks() -> None:
    """Where rows begin to be clipped the gradient jumps. Kept as curvature, such a jump once stopped all learning."""
    generator = np.random.default_rng(2)
    x, weights = generator.normal(size=(400, 10)), generator.normal(size=(10, 4))
    rewards = (generator.random((400, 4)) < 1 / (1 + np.exp(-x @ weights))).astype(float)
    late = [
        o2pl.O2PL(4, policy="linear", schedule="exact", random_state=seed).run((x, rewards)).rewards[200:].mean()
        for seed in range(4)
    ]
    assert min(late) > 0.7


def test_steps_that_do_not_matter_are_not_made() -> None:
    """It stops within what is negligible of where it would have gone, after fewer evaluations."""
    function, start = value_of(1000, False), np.zeros(24)
    whole = descend_quasi_newton(function, start, no_quasi_newton_pairs(6, 24), 500, 1e-7)
    brief = descend_quasi_newton(function, start, no_quasi_newton_pairs(6, 24), 500, 1e-7, negligible=1e-4)
    assert brief.converged
    assert brief.evaluations < 0.7 * whole.evaluations
    assert whole.value <= brief.value < whole.value + 2e-3
    pairs = no_quasi_newton_pairs(6, 24)
    descend_quasi_newton(function, start, pairs, 500, 1e-7)
    assert descend_quasi_newton(function, whole.params, pairs, 500, 0.0, negligible=1e-4).evaluations <= 2
