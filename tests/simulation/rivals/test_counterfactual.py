from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.simulation.rivals.slow_risk import slow_risk

from o2pl.policies import Gaussian, Softmax, log_likelihood
from o2pl.simulation.rivals.counterfactual import CounterfactualRisk, counterfactual_value

SETTINGS = [(0.7, 2.0, 0.0), (0.7, math.inf, 0.05), (2.0, 2.5, 0.3), (0.0, math.inf, 0.0)]  # λ, M, τ


def some_rows(seed: int = 0, n: int = 40) -> Any:
    rng = np.random.default_rng(seed)
    return rng.uniform(-4, 0, n), rng.normal(size=n), rng.uniform(0.1, 1, n)  # log π, losses of both signs, q


@pytest.mark.parametrize(("penalty", "clip", "tau"), SETTINGS)
def test_the_risk_equals_a_loop_and_its_slope_differences(penalty: Any, clip: Any, tau: Any) -> None:
    log_prob, losses, propensities = some_rows()
    risk = CounterfactualRisk(losses, propensities, penalty, clip, tau)
    value, cotangent = risk(log_prob)
    assert value == pytest.approx(slow_risk(np.exp(log_prob), losses, propensities, penalty, clip, tau), abs=1e-12)
    for s in range(len(losses)):
        step = np.zeros_like(log_prob)
        step[s] = 1e-6
        slope = (risk(log_prob + step)[0] - risk(log_prob - step)[0]) / 2e-6
        assert cotangent[s] == pytest.approx(slope, abs=1e-7)
    clipped = np.exp(log_prob) / propensities > clip
    assert np.array_equal(cotangent[clipped], np.zeros(clipped.sum()))
    assert clipped.any() == math.isfinite(clip)


def test_the_risk_of_a_log_without_variation_or_with_endless_weights_is_a_number() -> None:
    value, cotangent = CounterfactualRisk(np.zeros(3), np.ones(3), 1.0)(np.zeros(3))
    assert value == 0
    assert np.array_equal(cotangent, np.zeros(3))
    value, cotangent = CounterfactualRisk(-np.ones(2), np.full(2, 1e-300), 1.0, tau=0.01)(np.full(2, 600.0))
    assert value == pytest.approx(-100)
    assert np.isfinite(cotangent).all()


def random_problem(policy: Any, seed: int = 1, n: int = 60) -> Any:
    rng = np.random.default_rng(seed)
    features = np.hstack([np.ones((n, 1)), rng.normal(size=(n, 2))]).astype(np.float32)
    discrete = isinstance(policy, Softmax)
    actions = rng.integers(0, policy.n_actions, n) if discrete else rng.normal(size=n)
    propensities = rng.uniform(0.2, 1, n)
    return features, actions, -rng.random(n), propensities, 0.5 * rng.normal(size=policy.n_params(3))


@pytest.mark.parametrize("policy", [Softmax(3), Gaussian(0.2, 0.8), Gaussian(0.2, 0.8, learn_scale=True)])
@pytest.mark.parametrize(("penalty", "clip", "tau"), SETTINGS)
def test_gradients_through_policies_equal_differences(policy: Any, penalty: Any, clip: Any, tau: Any) -> None:
    features, actions, losses, propensities, params = random_problem(policy)
    function = counterfactual_value(
        policy, features, actions, CounterfactualRisk(losses, propensities, penalty, clip, tau), 0.4
    )
    value, gradient = function(params)
    log_prob, _ = log_likelihood(policy, params, features, actions)
    slow = slow_risk(np.exp(log_prob.astype(float)), losses, propensities, penalty, clip, tau)
    assert value == pytest.approx(slow + 0.4 * params @ params / (2 * 60), abs=1e-6)
    h = 3e-3 if isinstance(policy, Softmax) else 1e-5  # softmax computes in float32
    for i in range(len(params)):
        step = np.zeros_like(params)
        step[i] = h
        slope = (function(params + step)[0] - function(params - step)[0]) / (2 * h)
        assert gradient[i] == pytest.approx(slope, abs=3e-4 if isinstance(policy, Softmax) else 1e-6)
