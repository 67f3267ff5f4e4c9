from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl.objectives import Phi, Tangent, importance_weights, phi, ridge_control


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0, 1.9])
def test_penalty_is_concave_in_the_variance_and_its_slope_right(p: float) -> None:
    variances = np.geomspace(1e-6, 1e3, 200)
    penalty = Phi(3.0, 50.0, 4.0, p, 0.8)
    for v in variances:
        slow = (penalty(v * (1 + 1e-6))[0] - penalty(v * (1 - 1e-6))[0]) / (2e-6 * v)
        assert penalty(v)[1] == pytest.approx(slow, rel=1e-4)
    slopes = [penalty(v)[1] for v in variances]
    assert np.all(np.diff(slopes) < 0)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_a_tangent_touches_and_lies_above(p: float) -> None:
    penalty = Phi(3.0, 50.0, 4.0, p, 0.8)
    line = Tangent.of(penalty, 0.5)
    assert line(0.5) == penalty(0.5)
    for v in np.geomspace(1e-8, 1e4, 100):
        assert line(v)[0] >= penalty(v)[0] - 1e-12


def test_the_p_0_convention_never_falls_below_the_papers_bound() -> None:
    t, log_inv_delta = 100.0, 3.0
    for sigma in np.geomspace(1e-6, np.e, 50):
        bound = sigma * np.sqrt(np.log(np.e / sigma)) / np.sqrt(t)
        rest = sigma * np.sqrt(log_inv_delta / t) + (2.0 / t) + 2.0 * log_inv_delta / t
        assert phi(sigma**2, 2.0, t, log_inv_delta, 0.0, 1.0)[0] >= bound + rest - 1e-12
    tiny = 1e-7
    found = phi(tiny**2, 0.0, t, 0.0, 0.0, 1.0)[0]
    assert found == pytest.approx(tiny * np.sqrt(np.log(np.e / tiny) / t), rel=1e-6)


def test_weights_too_large_for_a_number_are_infinite_not_an_error() -> None:
    assert importance_weights(np.array([0.0, 800.0]), np.array([0.5, 1e-300])).tolist() == [2.0, np.inf]


def slow_control(x: Any, actions: Any, losses: Any, k: int, b: float, ridge: float) -> tuple[Any, Any]:
    """Every row left out by fitting again without it."""

    def fit(keep: Any, a: int) -> Any:
        mine = keep & (actions == a)
        gram = x[mine].T @ x[mine] + ridge * np.eye(x.shape[1])
        return np.linalg.solve(gram, x[mine].T @ (losses[mine] - b))

    everything = np.full(len(x), True)
    predicted = np.stack([b + x @ fit(everything, a) for a in range(k)], axis=1)
    played = np.array([b + x[s] @ fit(np.arange(len(x)) != s, actions[s]) for s in range(len(x))])
    return np.clip(predicted, -1, 0), np.clip(played, -1, 0)


@pytest.mark.parametrize("n", [5, 60])  # fewer rows than features per action, and more
def test_control_variate_equals_refitting_without_each_row(n: int) -> None:
    generator = np.random.default_rng(0)
    x, actions = generator.normal(size=(n, 6)), generator.integers(3, size=n)
    losses = -generator.random(n)
    found = ridge_control(x, actions, losses, 4, -0.4, 1.5)  # action 3 is never played
    predicted, played = slow_control(x, actions, losses, 4, -0.4, 1.5)
    np.testing.assert_allclose(found.all_actions, predicted, atol=1e-6)  # single precision
    np.testing.assert_allclose(found.played, played, atol=1e-6)
    np.testing.assert_array_equal(found.all_actions[:, 3], np.float32(-0.4))
