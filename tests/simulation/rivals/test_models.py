from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from o2pl.simulation.rivals.models import fit_models_per_action, predict_models_per_action


def newton_logistic(X: Any, y: Any, l2: Any, offset: Any) -> Any:
    """The slow reference: Newton's method, 50 steps, on Σ log(1 + e^z) - y z + l2/2 |θ|²."""
    theta = np.zeros(X.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-(offset + X @ theta)))
        gradient = X.T @ (p - y) + l2 * theta
        hessian = (X * (p * (1 - p))[:, None]).T @ X + l2 * np.eye(len(theta))
        theta = theta - np.linalg.solve(hessian, gradient)
    return theta


@pytest.mark.parametrize("rows", [6, 80])  # fewer rows than features, and more
@pytest.mark.parametrize("link", ["ridge", "logistic"])
def test_models_equal_slow_fits(link: str, rows: int) -> None:
    rng = np.random.default_rng(rows)
    X, actions, y = rng.normal(size=(rows, 7)), rng.integers(0, 3, rows), rng.random(rows)
    level, l2 = 0.4, 0.8
    weights = fit_models_per_action(link, X, actions, y, 4, l2, level)
    for k in range(3):
        own, targets = X[actions == k], y[actions == k]
        if link == "ridge":
            expected = np.linalg.solve(own.T @ own + l2 * np.eye(7), own.T @ (targets - level))
        else:
            expected = newton_logistic(own, targets, l2, math.log(level / (1 - level)))
        assert np.allclose(weights[k], expected, atol=1e-3 if link == "logistic" else 1e-9)
    assert np.array_equal(weights[3], np.zeros(7))
    assert predict_models_per_action(link, weights, X, level)[:, 3] == pytest.approx(level)
