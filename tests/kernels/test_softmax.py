"""The softmax's kernel at its edges: finite differences, huge scores, every row clipped, one action."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from o2pl.kernels.dense import dense_layout, dense_plan, dense_value
from o2pl.objectives import PessimisticLog, Phi, PolicyValue, ridge_control
from o2pl.policies import Softmax


def fast_value(log: Any, X: Any, n_actions: int) -> Any:
    return dense_value(log, dense_layout(log, X, dense_plan(X.shape[1]), n_actions), len(X), X.shape[1], n_actions)


def case(n: int, K: int, alpha: float, control: bool = False, scale: float = 1.0) -> tuple[Any, Any, Any]:
    generator = np.random.default_rng(n + K)
    X = (scale * generator.normal(size=(n, 5))).astype(np.float32)
    actions, losses = generator.integers(K, size=n), -generator.random(n)
    made = ridge_control(X, actions, losses, K, -0.3, 2.0) if control else None
    phi = Phi(alpha, n, 3.0, 0.5, 0.7)
    log = PessimisticLog(actions, losses, generator.uniform(0.05, 1, n), alpha, phi, -0.3, made, 0.2)
    return X, log, generator.normal(size=5 * K)


def same(X: Any, log: Any, params: Any, K: int) -> Any:
    fast, general = fast_value(log, X, K), PolicyValue(Softmax(K), X, log)
    (value, gradient), (expected, slow) = fast(params), general(params)
    assert value == pytest.approx(expected, rel=2e-5)
    np.testing.assert_allclose(gradient, slow, rtol=1e-4, atol=2e-5)
    return gradient


@pytest.mark.parametrize("control", [False, True])
@pytest.mark.parametrize("K", [1, 2, 3, 9, 17])
@pytest.mark.parametrize("alpha", [1.0, 2.0, math.inf])
def test_any_number_of_actions(K: int, alpha: float, control: bool) -> None:
    same(*case(150, K, alpha, control), K)


def test_huge_scores_overflow_nothing() -> None:
    with np.errstate(divide="ignore"):
        same(*case(80, 4, 3.0, scale=300.0), 4)


def test_where_all_rows_are_clipped_only_decay_is_left() -> None:
    X, log, params = case(60, 3, 1.5)
    sure = PessimisticLog(log.actions, log.losses, np.full(60, 1e-30), 1.5, log.penalty, l2=0.4)
    np.testing.assert_allclose(same(X, sure, params, 3), 0.4 / 60 * params)


def test_the_gradient_is_that_of_finite_differences() -> None:
    X, log, params = case(200, 3, 1e3, control=True)
    fast = fast_value(log, X, 3)
    units = 3e-2 * np.eye(len(params))
    slow = np.array([(fast(params + e)[0] - fast(params - e)[0]) / 6e-2 for e in units])
    np.testing.assert_allclose(fast(params)[1], slow, atol=2e-3)
