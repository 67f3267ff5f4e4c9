"""The kernel of the outcome likelihood at its edges: one action, many, and scores far apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl.kernels.dense import dense_layout, dense_plan, dense_value
from o2pl.objectives import PolicyValue
from o2pl.objectives.outcome import OutcomeLog
from o2pl.policies import Softmax


def fast_value(log: Any, X: Any, n_actions: int) -> Any:
    return dense_value(log, dense_layout(log, X, dense_plan(X.shape[1]), n_actions), len(X), X.shape[1], n_actions)


def same(n: int, K: int, competing: bool, scale: float) -> Any:
    generator = np.random.default_rng(n + K)
    X = generator.normal(size=(n, 5)).astype(np.float32)
    rewards = generator.random(n) * (generator.random(n) < 0.5)
    log = OutcomeLog(generator.integers(K, size=n), rewards, competing, 0.4, 5.0)
    params = np.append(scale * generator.normal(size=5 * K), 0.7)
    (value, gradient), (expected, slow) = (
        fast_value(log, X, K)(params.copy()),
        PolicyValue(Softmax(K), X, log, extra=1)(params),
    )
    assert value == pytest.approx(expected, rel=2e-5)
    np.testing.assert_allclose(gradient, slow, rtol=1e-4, atol=2e-5)
    return gradient


@pytest.mark.parametrize("competing", [True, False])
@pytest.mark.parametrize("K", [1, 2, 3, 9, 17])
def test_any_number_of_actions(K: int, competing: bool) -> None:
    same(150, K, competing, 1.0)
    same(1, K, competing, 1.0)


@pytest.mark.parametrize("competing", [True, False])
@pytest.mark.parametrize("scale", [20.0, 500.0])
def test_scores_far_apart(competing: bool, scale: float) -> None:
    """An action that is sure to rounding, played or not, still pulls: no row's gradient is lost or not a number."""
    assert np.abs(same(150, 4, competing, scale)).max() > 0.01


def test_no_reward_and_no_rival_at_all() -> None:
    log = OutcomeLog(np.zeros(3, int), np.zeros(3), True, 0.0, 0.0)
    value, gradient = fast_value(log, np.ones((3, 1), np.float32), 1)(np.zeros(2))
    assert value == pytest.approx(np.log(2))
    np.testing.assert_allclose(gradient, [0.5, -0.5])
