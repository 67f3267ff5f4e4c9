from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl import _core
from o2pl.kernels.dense import dense_plan
from o2pl.objectives import ridge_control
from o2pl.objectives.control import ridge_baseline


def slow_control(
    x: Any, actions: Any, losses: Any, k: int, b: float, ridge: float, some: slice = slice(None)
) -> tuple[Any, Any]:
    """Each of `some` rows left out by fitting again without it."""

    def fit(keep: Any, a: int) -> Any:
        mine = keep & (actions == a)
        gram = x[mine].T @ x[mine] + ridge * np.eye(x.shape[1])
        return np.linalg.solve(gram, x[mine].T @ (losses[mine] - b))

    everything = np.full(len(x), True)
    predicted = np.stack([b + x @ fit(everything, a) for a in range(k)], axis=1)
    played = np.array([b + x[s] @ fit(np.arange(len(x)) != s, actions[s]) for s in range(len(x))[some]])
    return np.clip(predicted, -1, 0), np.clip(played, -1, 0)


@pytest.mark.parametrize("n", [5, 60])  # fewer rows than features per action, and more
def test_control_variate_equals_refitting_without_each_row(n: int) -> None:
    generator = np.random.default_rng(0)
    x, actions = generator.normal(size=(n, 6)), generator.integers(3, size=n)
    losses = -generator.random(n)
    found = ridge_control(x, actions, losses, 4, -0.4, 1.5)  # action 3 is never played
    predicted, played = slow_control(x, actions, losses, 4, -0.4, 1.5)
    np.testing.assert_allclose(found.by_action.T, predicted, atol=1e-6)  # single precision
    np.testing.assert_allclose(found.played, played, atol=1e-6)
    np.testing.assert_array_equal(found.by_action[3], np.float32(-0.4))


@pytest.mark.parametrize("as_function", [False, True])
def test_control_variate_of_a_long_log(as_function: bool) -> None:
    """Losses of 0 and -1 that features separate: predictions reach beyond both ends and are clipped."""
    generator, n = np.random.default_rng(1), 1500
    x, actions = generator.normal(size=(n, 6)).astype(np.float32), generator.integers(3, size=n)
    losses = -(x[:, 0] > 0).astype(float)
    asked = []

    def rows(places: Any) -> Any:
        asked.append(places)
        return x[places]

    found = ridge_control(rows if as_function else x, actions, losses, 3, -0.4, 1.5)
    assert len(asked) <= 2  # the width, and all rows at once
    few = slice(0, 20)
    predicted, played = slow_control(x.astype(float), actions, losses, 3, -0.4, 1.5, few)
    np.testing.assert_allclose(found.by_action.T, predicted, atol=1e-5)
    assert found.by_action.min() == -1
    assert found.by_action.max() == 0
    np.testing.assert_allclose(found.played[few], played, atol=1e-5)
    assert found.played.min() == -1
    assert found.played.max() == 0


@pytest.mark.parametrize(("n", "d"), [(1, 3), (5, 21), (37, 8), (300, 21), (9001, 7)])
@pytest.mark.parametrize("ridge", [0.1, 15.0])
def test_the_baseline_of_the_compiled_core_is_that_of_each_row_left_out(n: int, d: int, ridge: float) -> None:
    """In stretches of rows, and with fewer rows than features."""
    generator = np.random.default_rng(n)
    X, losses = generator.normal(size=(n, d)).astype(np.float32), -(generator.random(n) ** 2)
    found = _core.ridge_baseline(X, dense_plan(d), losses, -0.4, ridge)
    np.testing.assert_allclose(found, ridge_baseline(X, losses, -0.4, ridge), atol=3e-5)
    for row in range(min(n, 5)):
        rest = np.arange(n) != row
        gram = X[rest].T.astype(float) @ X[rest] + ridge * np.eye(d)
        own = X[row] @ np.linalg.solve(gram, X[rest].T.astype(float) @ (losses[rest] + 0.4))
        np.testing.assert_allclose(found[row], np.clip(own - 0.4, -1, 0), atol=1e-9)


def test_the_baseline_of_the_compiled_core_starts_from_the_mean_of_the_losses() -> None:
    X, losses = np.ones((7, 1), np.float32), -np.linspace(0, 1, 7)
    mean = (losses.sum() - 3) / 10
    found = _core.ridge_baseline(X, dense_plan(1), losses, np.nan, 2.0)
    np.testing.assert_array_equal(found, _core.ridge_baseline(X, dense_plan(1), losses, mean, 2.0))
