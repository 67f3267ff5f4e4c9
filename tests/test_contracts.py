"""One table of policies, one of feature maps; every row goes through every check. A new one is one more row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chisquare, kstest

from o2pl.features import Chain, Fourier, Intercept, Quadratic, Standardise
from o2pl.objectives import Pessimistic, Phi, policy_value, ridge_control
from o2pl.policies import ActionWise, FiniteClass, Gaussian, Softmax, ThresholdClass, UniformMixture
from o2pl.rows import ActionSets
from o2pl.storage import decode, encode

N, D = 40, 4


@dataclass
class Case:
    policy: Any
    features: Any
    actions: Any

    @property
    def params(self) -> Any:
        n_features = D if isinstance(self.features, ActionSets) else self.features.shape[1]
        size = self.policy.n_params(n_features)
        return 0.3 * np.random.default_rng(5).normal(size=size)


def dense(k: int) -> tuple[Any, Any]:
    generator = np.random.default_rng(1)
    return generator.normal(size=(N, D)), generator.integers(k, size=N)


def sets() -> tuple[Any, Any]:
    generator = np.random.default_rng(2)
    sizes = generator.integers(1, 6, size=N)
    features = ActionSets.of([generator.normal(size=(size, D)) for size in sizes])
    return ActionSets(features.values.astype(np.float64), features.offsets), generator.integers(sizes)


def table() -> Any:
    return np.random.default_rng(3).dirichlet(np.ones(3), size=(7, 2))


def context_numbers() -> tuple[Any, Any]:
    generator = np.random.default_rng(4)
    return generator.integers(2, size=(N, 1)).astype(float), generator.integers(3, size=N)


POLICIES = {
    "softmax": Case(Softmax(3), *dense(3)),
    "softmax, one action": Case(Softmax(1), *dense(1)),
    "softmax and uniform": Case(UniformMixture(Softmax(3), 0.2), *dense(3)),
    "action sets": Case(ActionWise(), *sets()),
    "action sets and uniform": Case(UniformMixture(ActionWise(), 0.3), *sets()),
    "finite": Case(FiniteClass(table()), *context_numbers()),
    "finite and uniform": Case(UniformMixture(FiniteClass(table()), 0.1), *context_numbers()),
    "thresholds": Case(ThresholdClass((-1.0, 0.0, 0.5), 0.1), *dense(2)),
    "gaussian": Case(Gaussian(0.5, 0.7), dense(2)[0], np.random.default_rng(6).normal(size=N)),
    "gaussian, scale learned": Case(Gaussian(0.5, 0.7, True), dense(2)[0], np.random.default_rng(6).normal(size=N)),
}
DISCRETE = [name for name in POLICIES if "gaussian" not in name]
SAME_ACTIONS = [name for name in DISCRETE if "sets" not in name]


def finite_differences(function: Any, at: Any, step: float = 1e-6) -> Any:
    units = np.eye(len(at))
    return np.array([(function(at + step * e) - function(at - step * e)) / (2 * step) for e in units])


@pytest.mark.parametrize("name", POLICIES)
def test_pullback_is_the_gradient(name: str) -> None:
    case = POLICIES[name]
    cotangent = np.random.default_rng(7).normal(size=N)
    _, pullback = case.policy.forward(case.params, case.features, case.actions)
    slow = finite_differences(lambda p: cotangent @ case.policy.forward(p, case.features, case.actions)[0], case.params)
    np.testing.assert_allclose(pullback(cotangent), slow, atol=1e-6)


@pytest.mark.parametrize("name", DISCRETE)
def test_pullback_of_all_actions_is_the_gradient(name: str) -> None:
    case = POLICIES[name]
    log_prob, pullback = case.policy.forward(case.params, case.features)
    cotangent = np.random.default_rng(8).normal(size=log_prob.shape)
    slow = finite_differences(lambda p: (cotangent * case.policy.forward(p, case.features)[0]).sum(), case.params)
    np.testing.assert_allclose(pullback(cotangent), slow, atol=1e-6)


@pytest.mark.parametrize("name", DISCRETE)
def test_probabilities_agree_with_log_prob_and_sum_to_one(name: str) -> None:
    case = POLICIES[name]
    pi = case.policy.probabilities(case.params, case.features)
    np.testing.assert_allclose(np.log(pi), case.policy.forward(case.params, case.features)[0], atol=1e-5)
    sharper = case.policy.probabilities(case.params, case.features, sharpness=3.0)
    for each in (pi, sharper):
        totals = np.add.reduceat(each, case.features.offsets[:-1]) if each.ndim == 1 else each.sum(axis=1)
        np.testing.assert_allclose(totals, 1, atol=1e-12)
    played = case.policy.forward(case.params, case.features, case.actions)[0]
    flat = pi[case.features.offsets[:-1] + case.actions] if pi.ndim == 1 else pi[np.arange(N), case.actions]
    np.testing.assert_allclose(np.exp(played), flat, rtol=1e-5)


@pytest.mark.parametrize("name", DISCRETE)
def test_a_decision_does_not_depend_on_the_batch(name: str) -> None:
    case = POLICIES[name]
    uniforms = np.random.default_rng(9).random(N)
    actions, propensities = case.policy.sample(case.params, case.features, uniforms)
    for s in range(N):
        action, propensity = case.policy.sample(case.params, case.features[s : s + 1], uniforms[s : s + 1])
        assert (action[0], propensity[0]) == (actions[s], propensities[s])


@pytest.mark.parametrize("name", DISCRETE)
def test_actions_come_as_often_as_their_propensity_says(name: str) -> None:
    case, draws = POLICIES[name], 20_000
    one = case.features[3:4]
    many = np.repeat(one, draws, axis=0) if not isinstance(one, ActionSets) else None
    if many is None:
        size = int(one.sizes[0])
        many = ActionSets(np.tile(one.values, (draws, 1)), np.arange(0, draws * size + 1, size))
    actions, propensities = case.policy.sample(case.params, many, np.random.default_rng(10).random(draws))
    pi = case.policy.probabilities(case.params, one).reshape(-1)
    np.testing.assert_array_equal(propensities, pi[actions])
    counts = np.bincount(actions, minlength=len(pi))
    assert len(pi) == 1 or chisquare(counts, draws * pi).pvalue > 1e-4


@pytest.mark.parametrize("name", ["gaussian", "gaussian, scale learned"])
def test_a_density_is_one_and_is_sampled_from(name: str) -> None:
    case = POLICIES[name]
    one, draws = case.features[:1], 20_000

    def density(a: float) -> float:
        return float(case.policy.density(case.params, one, np.array([a]))[0])

    assert quad(density, -20, 20)[0] == pytest.approx(1, abs=1e-6)
    assert np.log(density(0.3)) == pytest.approx(case.policy.forward(case.params, one, np.array([0.3]))[0][0], abs=1e-6)
    uniforms = np.random.default_rng(11).random(draws)
    actions, densities = case.policy.sample(case.params, np.repeat(one, draws, axis=0), uniforms)
    np.testing.assert_allclose(densities[:50], [density(a) for a in actions[:50]], rtol=1e-12)
    mean, scale = case.policy.mean(case.params, one)[0], 1 / (np.sqrt(2 * np.pi) * densities.max())
    assert kstest((actions - mean) / scale, "norm").pvalue > 1e-4


SETTINGS = [  # p, alpha, scale, baseline, l2
    (0.0, 1.7, 1.0, 0.0, 0.0),
    (0.0, np.inf, 0.3, -0.4, 0.5),
    (0.5, 2.5, 2.0, -0.2, 0.1),
    (1.5, 1.3, 0.7, -0.9, 0.0),
]


def reference(
    log_prob: Any, rows: Pessimistic, p: float, alpha: float, scale: float, b: float, t: float, L: float
) -> float:
    """The objective as the paper writes it, row by row."""
    weights = [min(np.exp(lp) / q, alpha) for lp, q in zip(log_prob, rows.propensities, strict=True)]
    risk = sum((w - 1) * (y - b) for w, y in zip(weights, rows.losses, strict=True)) / len(weights)
    sigma = np.sqrt(sum((w - 1) ** 2 for w in weights) / len(weights))
    local = sigma * np.sqrt(np.log(np.e + np.e / sigma)) if p == 0 else sigma ** (1 - p / 2)
    floor, tail = ((alpha / t) ** (2 / (2 + p)), alpha * L / t) if np.isfinite(alpha) else (0, 0)
    return float(risk + scale * (floor + local / np.sqrt(t) + sigma * np.sqrt(L / t) + tail))


def logged(case: Case, p: float, alpha: float, scale: float, b: float) -> Pessimistic:
    generator = np.random.default_rng(12)
    losses, propensities = -generator.random(N), generator.uniform(0.1, 0.9, N)
    return Pessimistic(case.actions, losses, propensities, alpha, Phi(alpha, 31.0, 2.3, p, scale), b)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("name", POLICIES)
def test_the_objective_is_the_papers_and_its_gradient_right(name: str, settings: Any) -> None:
    case, (p, alpha, scale, b, l2) = POLICIES[name], settings
    objective = logged(case, p, alpha, scale, b)
    function = policy_value(case.policy, case.features, objective, l2)
    params = case.params
    value, gradient = function(params)
    log_prob = case.policy.forward(params, case.features, case.actions)[0]
    expected = reference(log_prob, objective, p, alpha, scale, b, 31.0, 2.3) + l2 * params @ params / (2 * N)
    assert value == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(gradient, finite_differences(lambda q: function(q)[0], params), atol=2e-6)


@pytest.mark.parametrize("name", SAME_ACTIONS)
def test_the_objective_with_a_control_variate(name: str) -> None:
    case, (p, alpha, scale, b, l2) = POLICIES[name], SETTINGS[2]
    plain = logged(case, p, alpha, scale, b)
    features = np.random.default_rng(13).normal(size=(N, 3))
    control = ridge_control(features, case.actions, plain.losses, case.policy.n_actions, b, 2.0)
    objective = Pessimistic(case.actions, plain.losses, plain.propensities, alpha, plain.penalty, b, control)
    function = policy_value(case.policy, case.features, objective, l2)
    value, gradient = function(case.params)
    pi = np.exp(case.policy.forward(case.params, case.features)[0])
    weights = np.minimum(pi[np.arange(N), case.actions] / plain.propensities, alpha)
    risk = np.mean((weights - 1) * (plain.losses - control.played))
    modelled = np.mean([pi[s] @ (control.all_actions[s] - b) for s in range(N)])
    penalty = plain.penalty(float(np.mean((weights - 1) ** 2)))[0]
    assert value == pytest.approx(risk + modelled + penalty + l2 * case.params @ case.params / (2 * N), rel=1e-6)
    np.testing.assert_allclose(gradient, finite_differences(lambda q: function(q)[0], case.params), atol=2e-6)


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_survives_its_file_form(name: str) -> None:
    policy = decode(encode(POLICIES[name].policy))
    case = POLICIES[name]
    before = case.policy.forward(case.params, case.features, case.actions)[0]
    np.testing.assert_array_equal(policy.forward(case.params, case.features, case.actions)[0], before)


MAPS = {
    "nothing": Chain(()),
    "intercept": Intercept(),
    "standardise": Standardise(),
    "quadratic": Quadratic(),
    "quadratic of projections": Quadratic(most=2, projected=3),
    "fourier": Fourier(20),
    "all of them": Chain((Standardise(), Quadratic(), Fourier(30), Intercept())),
}


@pytest.mark.parametrize("name", MAPS)
def test_a_feature_map(name: str) -> None:
    each = MAPS[name]
    rows = (3 + 2 * np.random.default_rng(14).normal(size=(50, D))).astype(np.float32)
    empty = each.init(D)
    seen = each.observe(each.observe(empty, rows[:20]), rows[20:])
    out = each.transform(seen, rows)
    assert out.shape == (50, each.width(D))
    assert out.dtype == np.float32
    assert np.isfinite(out).all()
    one_by_one = np.concatenate([each.transform(seen, rows[s : s + 1]) for s in range(50)])
    np.testing.assert_array_equal(out, one_by_one)  # a row's features are its own alone
    again = each.init(D)
    assert all(np.array_equal(again[key], empty[key]) for key in again)  # observing changed no earlier state
    same = decode(encode(each))
    np.testing.assert_array_equal(same.transform(seen, rows), out)
