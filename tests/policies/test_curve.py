from __future__ import annotations

import numpy as np
import pytest

from o2pl import _core
from o2pl.policies import Cells, Curve


def curve(**settings: int) -> Curve:
    return Curve(Cells((5.0, 20.0), 7), inputs=2, **settings)


def features(n: int = 5) -> np.ndarray:
    """A constant, two inputs, and a product."""
    x = np.random.default_rng(0).normal(size=(n, 2))
    return np.column_stack([np.ones(n), x, x[:, 0] * x[:, 1]])


def test_polynomials_are_orthonormal() -> None:
    places = (np.arange(20_000) + 0.5) / 20_000
    values = _core.legendre(places, 5)
    np.testing.assert_allclose(values.T @ values / len(places), np.eye(5), atol=1e-6)


def test_terms_have_a_total_degree_of_at_most_four() -> None:
    powers, which, scales = curve().terms(4)
    order = np.array([0, 1, 1, 2])[which]
    assert (powers + order).max() == 4
    assert len(powers) == 5 + 2 * 4 + 3
    np.testing.assert_array_equal(scales, np.array([1, 1, 1, 0.5, 0.25])[powers])


def test_the_curve_is_the_same_at_one_action_and_along_all_of_them() -> None:
    policy, x = curve(), features()
    params = np.random.default_rng(1).normal(size=policy.n_params(4))
    along = policy.along(params, x, 9)
    for k in range(9):
        action = policy.cells.actions(np.full(5, (k + 0.5) / 9))
        np.testing.assert_allclose(policy.forward(params, x, action)[0], along[:, k], rtol=1e-10)
    np.testing.assert_array_equal(policy.scores(params, x), policy.along(params, x, 7))


def test_the_pullback_is_the_gradient() -> None:
    policy, x = curve(), features()
    actions, cotangent = np.linspace(6, 19, 5), np.arange(1.0, 6.0)
    params = np.random.default_rng(1).normal(size=policy.n_params(4))
    pulled = policy.forward(params, x, actions)[1](cotangent)
    for i in range(0, len(params), 7):
        step = np.zeros(len(params))
        step[i] = 1e-6
        up, down = (cotangent @ policy.forward(params + sign * step, x, actions)[0] for sign in (1, -1))
        assert pulled[i] == pytest.approx((up - down) / 2e-6, abs=1e-6)


def test_draws_act_each_on_its_own_curve_and_more_sharply_where_there_is_less_noise() -> None:
    policy, x = curve(draws=3), features()
    terms = len(policy.terms(4)[0])
    centre, deviations = np.arange(terms) / 10, np.random.default_rng(2).normal(size=(3, terms))
    for noise in (0.01, 0.04):
        params = policy.join(centre, deviations, noise)
        np.testing.assert_array_equal(policy.centre(params), centre)
        for (cells, own), deviation in zip(policy.acting(params, 4), deviations, strict=True):
            drawn = policy.join(centre + 0.7 * noise**0.5 * deviation, deviations, noise)
            expected = 40 / noise**0.5 * policy.scores(drawn, x)
            np.testing.assert_allclose(cells.scores(own, x), expected, rtol=1e-9)


def test_before_anything_is_known_all_actions_are_alike() -> None:
    policy = curve()
    for cells, own in policy.acting(policy.init(4), 4):
        np.testing.assert_array_equal(cells.scores(own, features()), 0)
