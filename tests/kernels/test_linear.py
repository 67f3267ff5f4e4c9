"""Values of policies linear in their features: any number of blocks and panels, features kept or not, any threads."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import o2pl
from o2pl import _core
from o2pl.engine.member import QUADRATIC
from o2pl.features.plan import FeaturePlan, feature_plan, planned_features
from o2pl.kernels import fused_values, linear
from o2pl.kernels.dense import dense_layout, dense_value
from o2pl.kernels.linear import PANEL, linear_inverse_propensities
from o2pl.objectives import PessimisticLog, Phi, PolicyValue, ridge_control
from o2pl.oracles import LBFGS
from o2pl.policies import Softmax

K, ROWS = 3, 256  # the fewest rows of a block


def problem(n: int, with_control: bool, d: int = 4) -> tuple[Any, Any, Any, int]:
    """Features of rows, all features, and a log whose weights are clipped here and there."""
    generator = np.random.default_rng(n)
    x = generator.normal(size=(n, d)).astype(np.float32)
    seen = QUADRATIC.observe(QUADRATIC.init(d), x)
    plan = feature_plan(QUADRATIC, seen, d)
    assert plan is not None
    actions, losses = generator.integers(K, size=n), -generator.random(n)
    features = planned_features(plan, x)
    control = ridge_control(features, actions, losses, K, -0.4, 2.0) if with_control else None
    phi = Phi(3.0, n, 5.0, 0.5, 0.7)
    log = PessimisticLog(actions, losses, generator.uniform(0.1, 1, n), 3.0, phi, -0.4, control, 0.2)
    return (x, plan), features, log, plan.width


@pytest.mark.parametrize("with_control", [False, True])
@pytest.mark.parametrize("n", [1, 7, ROWS - 1, ROWS, ROWS + 1, 3 * ROWS + 5, (PANEL + 1) * ROWS + 1])
@pytest.mark.parametrize("held", [0, linear.HELD])
def test_any_number_of_blocks_is_the_general_objective(
    n: int, with_control: bool, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear, "BLOCK", 1)
    given, features, log, width = problem(n, with_control)
    rows = dense_layout(log, *given, K, held)
    assert (rows.held > 0) == (held > 0)
    fast, general = dense_value(log, rows, n, width, K), PolicyValue(Softmax(K), features, log)
    for seed in range(2):  # the second time features may be those that were kept
        params = np.random.default_rng(seed).normal(size=K * width)
        found, expected = fast(params), general(params)
        assert found[0] == pytest.approx(expected[0], rel=2e-5, abs=1e-6)
        np.testing.assert_allclose(found[1], expected[1], atol=2e-5)


@pytest.mark.parametrize("n", [1, 37, 16 * 40, PANEL * ROWS + 3])
@pytest.mark.parametrize("d", [1, 4, 16, 21])
@pytest.mark.parametrize("kind", ["competing", "independent", "pessimistic", "gaussian", "sets"])
def test_rows_are_the_same_bits_whether_they_are_kept_or_laid_out_as_they_are_used(n: int, d: int, kind: str) -> None:
    """Two panels at most, in blocks; independent actions are laid out by action where there are many rows."""
    generator = np.random.default_rng(n + d)
    x, actions = generator.normal(size=(n, d)).astype(np.float32), generator.integers(K, size=n)
    shift, scale = generator.normal(size=(2, d)).astype(np.float32)
    none, weights = np.empty(0, np.float32), generator.random(n)
    plan = FeaturePlan(shift, scale, 2.0, np.empty((d, 0), np.float32), none, none, True)
    penalty, likely = (3.0, float(n), 5.0, 0.5, 0.7), generator.uniform(0.1, 1, n)

    def function(held: int) -> Any:
        one = kind in ("gaussian", "sets")
        rows = _core.dense_rows(
            x, plan, np.zeros(n, int) if one else actions, weights, 0.25, likely, None if one else weights,
            1 if one else K, kind == "independent", PANEL * ROWS, held,
        )  # fmt: skip
        assert (rows.held > 0) == (held > 0)
        if kind == "gaussian":
            own: Any = np.linspace(-1, 1, n), weights, likely
            return _core.gaussian_value(rows, *own, 3.0, float(n), 0.1, penalty, 0.7, True, 2)
        if kind == "sets":
            own = np.arange(n + 1), np.zeros(n, int), weights, 1 / likely
            return _core.action_sets_value(rows, *own, 3.0, float(n), 0.1, penalty, 2)
        if kind == "pessimistic":
            return _core.pessimistic_value(rows, 3.0, float(n), 0.1, -0.4, penalty, None, 2)
        return _core.outcome_value(rows, kind == "competing", float(n), 0.1, 0.2, 2)

    kept, raw = function(2**30), function(0)
    params = generator.normal(size=kept.n_params)
    (value, gradient), (own_value, own_gradient) = kept(params), raw(params)
    assert value == own_value
    np.testing.assert_array_equal(gradient, own_gradient)
    if kind != "sets":  # sets of one have nothing to choose
        assert np.abs(gradient).max() > 1e-4


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "BLOCK", 1)
    given, _, log, width = problem(3 * PANEL * ROWS + 100, True)
    start, oracle = np.random.default_rng(0).normal(size=K * width), LBFGS(iterations=4, memory=4)

    def solved(threads: int) -> tuple[Any, Any]:
        with threadpool_limits(threads, user_api="blas"):
            function = dense_value(log, dense_layout(log, *given, K), len(given[0]), width, K)
            found, _ = oracle.step(function, start, oracle.init(len(start)))
            return (found.value, found.evaluations), np.append(found.params, function(start)[1])

    alone, together = solved(1), solved(3)
    assert alone[0] == together[0]
    np.testing.assert_array_equal(alone[1], together[1])


def test_tiny_propensities_are_finite_numbers() -> None:
    log = PessimisticLog(np.zeros(2, int), np.zeros(2), np.array([1e-320, 0.5]), 3.0, Phi(3.0, 2, 1.0))
    for kind in (np.float32, np.float64):
        found = linear_inverse_propensities(log, kind)
        assert np.isfinite(found).all()
        assert found[1] == 2


@pytest.mark.parametrize("make", [lambda: o2pl.Bandit(3, random_state=0), lambda: o2pl.O2PL(3, random_state=0)])
def test_features_of_a_solve_are_freed_when_it_ends(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the garbage collector, which may come late: they are as large as the log."""
    alive: list[weakref.ref[Any]] = []

    def watched(*given: Any) -> Any:
        made = dense_layout(*given)
        alive.append(weakref.ref(made))
        return made

    monkeypatch.setattr(fused_values, "dense_layout", watched)
    generator = np.random.default_rng(0)
    learner = make()
    gc.disable()
    try:
        learner.partial_fit(
            generator.normal(size=(90, 2)), generator.integers(3, size=90), np.ones(90), np.full(90, 0.3)
        )
        assert alive
        assert not [one for one in alive if one() is not None]
    finally:
        gc.enable()
