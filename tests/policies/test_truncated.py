from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from o2pl import InvalidInput
from o2pl.policies import Gaussian, Truncated
from o2pl.storage import decode_from_storage, encode_for_storage

# bounds, log, heteroscedastic, learn_scale
SETTINGS = list(itertools.product((None, (5.0, 20.0)), (False, True), (False, True), (False, True)))
EACH = pytest.mark.parametrize("settings", SETTINGS)


def made(settings: Any) -> tuple[Truncated, Any, Any, Any]:
    """A policy, parameters, and features of six rows."""
    bounds, log, heteroscedastic, learn_scale = settings
    generator = np.random.default_rng(0)
    policy = Truncated(2.3 if log else 11.0, 0.4 if log else 3.0, learn_scale, heteroscedastic, bounds, log)
    x = np.column_stack([np.ones(6), generator.normal(size=(6, 2))])
    return policy, 0.4 * generator.normal(size=policy.n_params(3)), x, generator


@EACH
def test_the_density_is_one_and_its_moments_are_right(settings: Any) -> None:
    (policy, params, x, _), (bounds, log, *_) = made(settings), settings
    scores = policy.scores(params, x)
    low, high = bounds or ((1e-9, 400.0) if log else (-60.0, 80.0))

    def mean_of(power: int) -> float:
        def integrand(a: float) -> float:
            return a**power * float(policy.density(scores[:1], params, np.array([a]))[0])

        return float(quad(integrand, low, high, limit=400, points=None if bounds else [5, 11, 20])[0])

    assert mean_of(0) == pytest.approx(1, abs=1e-7)
    mean, deviation = policy.moments(scores, params)
    assert mean[0] == pytest.approx(mean_of(1), rel=1e-5)
    assert deviation[0] == pytest.approx(np.sqrt(mean_of(2) - mean_of(1) ** 2), rel=1e-4)


@EACH
def test_actions_are_drawn_from_the_density_and_the_pullback_is_its_gradient(settings: Any) -> None:
    policy, params, x, generator = made(settings)
    scores = policy.scores(params, x)
    actions, densities = policy.sample(scores, params, generator.random(6))
    log_pi, pullback = policy.forward(params, x, actions)
    np.testing.assert_allclose(np.exp(log_pi), densities, rtol=1e-9)
    cotangent, steps = generator.normal(size=6), 1e-6 * np.eye(len(params))
    slow = [
        cotangent @ (policy.forward(params + e, x, actions)[0] - policy.forward(params - e, x, actions)[0]) / 2e-6
        for e in steps
    ]
    np.testing.assert_allclose(pullback(cotangent), slow, atol=1e-5)
    many = np.repeat(scores[:1], 4000, axis=0)
    drawn, _ = policy.sample(many, params, generator.random(4000))
    grid = np.linspace(*(policy.bounds or (max(drawn.min(), 1e-6), drawn.max())), 20_001)
    below = np.cumsum(policy.density(np.repeat(scores[:1], len(grid), axis=0), params, grid)) * (grid[1] - grid[0])
    assert kstest(np.interp(drawn, grid, below / below[-1]), "uniform").pvalue > 1e-4


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("off", [-1e3, -30.0, 0.0, 30.0, 1e3])
def test_a_mean_far_beyond_the_bounds_stays_a_policy(off: float, log: bool) -> None:
    policy = Truncated(2.0, 0.5, bounds=(5.0, 20.0), log=log)
    x, params = np.ones((50, 1)), np.array([off])
    actions, densities = policy.sample(policy.scores(params, x), params, np.linspace(0, 1, 50))
    assert ((actions > 5) & (actions < 20)).all()
    assert np.isfinite(densities).all()
    assert (densities > 0).all()
    assert np.isfinite(policy.forward(params, x, actions)[1](np.ones(50))).all()


def test_without_bounds_it_is_the_normal_one() -> None:
    generator, plain = np.random.default_rng(1), Gaussian(1.0, 2.0)
    x, theta, actions = generator.normal(size=(5, 3)), generator.normal(size=3), generator.normal(size=5)
    np.testing.assert_allclose(
        Truncated(1.0, 2.0).forward(theta, x, actions)[0], plain.forward(theta, x, actions)[0], rtol=1e-12
    )


def test_imitation_finds_the_logger() -> None:
    generator = np.random.default_rng(0)
    x, theta = np.column_stack([np.ones(20_000), generator.normal(size=20_000)]), np.array([0.2, -0.1])
    actions = np.exp(2.3 + x @ theta + 0.3 * generator.normal(size=20_000))
    policy = Truncated(2.3, 0.5, learn_scale=True, log=True)
    np.testing.assert_allclose(policy.imitate(x, actions), [0.2, -0.1, np.log(0.3 / 0.5)], atol=0.02)


def test_it_survives_its_file_form_and_refuses_prices_of_nothing() -> None:
    policy = Truncated(1.0, 2.0, True, True, (5.0, 20.0), True)
    assert decode_from_storage(encode_for_storage(policy)) == policy
    with pytest.raises(InvalidInput, match="> 0"):
        Truncated(bounds=(0.0, 1.0), log=True)
