"""One table of policies, one of feature maps; every row goes through every check. A new one is one more row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chisquare, kstest

from o2pl._core import draw
from o2pl.data.contexts import ActionSets, SparseRows
from o2pl.features import Chain, Fourier, Intercept, Quadratic, Settled, Standardise, UserItems
from o2pl.objectives import PessimisticLog, Phi, PolicyValue, ridge_control
from o2pl.policies import (
    ActionWise,
    Cells,
    FiniteClass,
    Gaussian,
    JaxPolicy,
    Neural,
    NeuralGaussian,
    NeuralSets,
    Softmax,
    SparseSoftmax,
    ThresholdClass,
    Truncated,
    UniformMixture,
)
from o2pl.policies.likelihood import log_likelihood, log_probabilities, probabilities
from o2pl.policies.sampling import sample_rows
from o2pl.storage import decode_from_storage, encode_for_storage

N, D = 40, 4


@dataclass
class Case:
    policy: Any
    features: Any
    actions: Any

    @property
    def params(self) -> Any:
        n_features = self.features.shape[1] if isinstance(self.features, np.ndarray) else D
        size = self.policy.n_params(n_features)
        return 0.3 * np.random.default_rng(5).normal(size=size)

    @property
    def offsets(self) -> Any:
        return self.features.offsets if isinstance(self.features, ActionSets) else None


def dense(k: int) -> tuple[Any, Any]:
    generator = np.random.default_rng(1)
    return generator.normal(size=(N, D)), generator.integers(k, size=N)


def sets() -> tuple[Any, Any]:
    generator = np.random.default_rng(2)
    sizes = generator.integers(1, 6, size=N)
    features = ActionSets.of([generator.normal(size=(size, D)) for size in sizes])
    return ActionSets(features.values.astype(np.float64), features.offsets), generator.integers(sizes)


def sparse(n: int = N) -> SparseRows:
    """Rows of 0 to 3 entries; some stand twice."""
    generator = np.random.default_rng(3)
    offsets = np.concatenate([[0], np.cumsum(generator.integers(4, size=n))])
    indices = generator.integers(D, size=offsets[-1]).astype(np.int32)
    return SparseRows(indices, generator.normal(size=offsets[-1]).astype(np.float32), offsets, D)


def sparse_sets() -> tuple[Any, Any]:
    features, actions = sets()
    return ActionSets(sparse(len(features.values)), features.offsets), actions


def table() -> Any:
    return np.random.default_rng(3).dirichlet(np.ones(3), size=(7, 2))


def context_numbers() -> tuple[Any, Any]:
    generator = np.random.default_rng(4)
    return generator.integers(2, size=(N, 1)).astype(float), generator.integers(3, size=N)


def bent(params: Any, x: Any) -> Any:
    """Scores of three actions, by a function of nobody's making but the user's."""
    return (x * x) @ params["squares"] + x @ params["linear"][0]


def bent_start(n_features: int) -> Any:
    return {"squares": np.ones((n_features, 3)), "linear": [np.zeros((n_features, 3))]}


def of_each(params: Any, x: Any) -> Any:
    return x @ params[0] + (x * x) @ params[1]


def of_each_start(n_features: int) -> Any:
    return np.zeros(n_features), np.ones(n_features)


POLICIES = {
    "softmax": Case(Softmax(3), *dense(3)),
    "softmax, one action": Case(Softmax(1), *dense(1)),
    "softmax and uniform": Case(UniformMixture(Softmax(3), 0.2), *dense(3)),
    "action sets": Case(ActionWise(), *sets()),
    "action sets and uniform": Case(UniformMixture(ActionWise(), 0.3), *sets()),
    "sparse softmax": Case(SparseSoftmax(3), sparse(), dense(3)[1]),
    "sparse softmax and uniform": Case(UniformMixture(SparseSoftmax(3), 0.2), sparse(), dense(3)[1]),
    "sparse action sets": Case(ActionWise(), *sparse_sets()),
    "sparse action sets and uniform": Case(UniformMixture(ActionWise(), 0.3), *sparse_sets()),
    "finite": Case(FiniteClass(table()), *context_numbers()),
    "finite and uniform": Case(UniformMixture(FiniteClass(table()), 0.1), *context_numbers()),
    "thresholds": Case(ThresholdClass((-1.0, 0.0, 0.5), 0.1), *dense(2)),
    "gaussian": Case(Gaussian(0.5, 0.7), dense(2)[0], np.random.default_rng(6).normal(size=N)),
    "gaussian, scale learned": Case(Gaussian(0.5, 0.7, True), dense(2)[0], np.random.default_rng(6).normal(size=N)),
    "gaussian, cut": Case(
        Truncated(0.5, 0.7, heteroscedastic=True, bounds=(-5.0, 5.0)),
        dense(2)[0],
        np.random.default_rng(6).normal(size=N),
    ),
    "log-normal": Case(
        Truncated(0.5, 0.7, learn_scale=True, log=True), dense(2)[0], np.random.default_rng(6).uniform(0.1, 3, size=N)
    ),
    "cells": Case(Cells((-5.0, 5.0), 7), dense(2)[0], np.random.default_rng(6).normal(size=N)),
    "neural": Case(Neural(3, (5, 4)), *dense(3)),
    "neural, tanh and uniform": Case(UniformMixture(Neural(3, (5,), "tanh"), 0.2), *dense(3)),
    "neural sets": Case(NeuralSets((5,)), *sets()),
    "neural sets, towers": Case(NeuralSets((4,), towers=2, shared=1), *sets()),
    "neural gaussian": Case(
        NeuralGaussian(Truncated(0.5, 0.7, learn_scale=True), (5,)),
        dense(2)[0],
        np.random.default_rng(6).normal(size=N),
    ),
    "neural gaussian, cut": Case(
        NeuralGaussian(Truncated(0.5, 0.7, heteroscedastic=True, bounds=(-5.0, 5.0)), (5,)),
        dense(2)[0],
        np.random.default_rng(6).normal(size=N),
    ),
    "a JAX function": Case(JaxPolicy(bent, bent_start, 3), *dense(3)),
    "a JAX function of sets": Case(JaxPolicy(of_each, of_each_start), *sets()),
}
DISCRETE = [name for name, case in POLICIES.items() if not case.policy.continuous]
SAME_ACTIONS = [name for name in DISCRETE if "sets" not in name]


def of(names: Iterable[str]) -> Any:
    """One test for each of these policies; those of networks are JAX's to differentiate."""
    marks = {name: [pytest.mark.jax] for name in POLICIES if "neural" in name or "JAX" in name}
    return pytest.mark.parametrize("name", [pytest.param(name, marks=marks.get(name, ())) for name in names])


def finite_differences(function: Any, at: Any, step: float = 1e-6) -> Any:
    units = np.eye(len(at))
    return np.array([(function(at + step * e) - function(at - step * e)) / (2 * step) for e in units])


def drawn(case: Case, features: Any, uniforms: Any) -> tuple[Any, Any]:
    pi = probabilities(case.policy, case.params, features)
    return draw(pi, features.offsets, uniforms) if pi.ndim == 1 else sample_rows(pi, uniforms)


@of(POLICIES)
def test_pullback_of_the_scores_is_their_gradient(name: str) -> None:
    case = POLICIES[name]
    scores, pullback = case.policy.forward(case.params, case.features, case.actions)
    cotangent = np.random.default_rng(7).normal(size=scores.shape)

    def along(params: Any) -> float:
        return float((cotangent * case.policy.forward(params, case.features, case.actions)[0]).sum())

    np.testing.assert_allclose(pullback(cotangent), finite_differences(along, case.params), atol=1e-6)


@of(POLICIES)
def test_pullback_is_the_gradient(name: str) -> None:
    case = POLICIES[name]
    cotangent = np.random.default_rng(7).normal(size=N)
    _, pullback = log_likelihood(case.policy, case.params, case.features, case.actions)
    slow = finite_differences(
        lambda p: cotangent @ log_likelihood(case.policy, p, case.features, case.actions)[0], case.params
    )
    np.testing.assert_allclose(pullback(cotangent), slow, atol=1e-6)


@of(DISCRETE)
def test_pullback_of_all_actions_is_the_gradient(name: str) -> None:
    case = POLICIES[name]
    log_prob, pullback = log_probabilities(case.policy, case.params, case.features)
    cotangent = np.random.default_rng(8).normal(size=log_prob.shape)
    slow = finite_differences(
        lambda p: (cotangent * log_probabilities(case.policy, p, case.features)[0]).sum(), case.params
    )
    np.testing.assert_allclose(pullback(cotangent), slow, atol=1e-6)


@of(DISCRETE)
def test_probabilities_agree_with_log_prob_and_sum_to_one(name: str) -> None:
    case = POLICIES[name]
    pi = probabilities(case.policy, case.params, case.features)
    np.testing.assert_allclose(np.log(pi), log_probabilities(case.policy, case.params, case.features)[0], atol=1e-5)
    totals = np.add.reduceat(pi, case.features.offsets[:-1]) if pi.ndim == 1 else pi.sum(axis=1)
    np.testing.assert_allclose(totals, 1, atol=1e-12)
    played = log_likelihood(case.policy, case.params, case.features, case.actions)[0]
    flat = pi[case.features.offsets[:-1] + case.actions] if pi.ndim == 1 else pi[np.arange(N), case.actions]
    np.testing.assert_allclose(np.exp(played), flat, rtol=1e-5)


@of(POLICIES)
def test_a_decision_does_not_depend_on_the_batch(name: str) -> None:
    case = POLICIES[name]
    scores = case.policy.scores(case.params, case.features)
    assert scores.dtype == np.float64
    alone = [case.policy.scores(case.params, case.features[s : s + 1]) for s in range(N)]
    np.testing.assert_array_equal(np.concatenate(alone), scores)
    if case.policy.continuous:
        return
    uniforms = np.random.default_rng(9).random(N)
    actions, propensities = drawn(case, case.features, uniforms)
    for s in range(N):
        action, propensity = drawn(case, case.features[s : s + 1], uniforms[s : s + 1])
        assert (action[0], propensity[0]) == (actions[s], propensities[s])


@of(DISCRETE)
def test_actions_come_as_often_as_their_propensity_says(name: str) -> None:
    case, draws = POLICIES[name], 20_000
    many = case.features[np.full(draws, 3)]
    actions, propensities = drawn(case, many, np.random.default_rng(10).random(draws))
    pi = probabilities(case.policy, case.params, case.features[3:4]).reshape(-1)
    np.testing.assert_array_equal(propensities, pi[actions])
    counts = np.bincount(actions, minlength=len(pi))
    assert len(pi) == 1 or chisquare(counts, draws * pi).pvalue > 1e-4


@pytest.mark.parametrize("name", ["gaussian", "gaussian, scale learned"])
def test_a_density_is_one_and_is_sampled_from(name: str) -> None:
    case = POLICIES[name]
    one, draws, policy, params = case.features[:1], 20_000, case.policy, case.params
    scores = policy.scores(params, one)

    def density(a: float) -> float:
        return float(policy.density(scores, params, np.array([a]))[0])

    assert quad(density, -20, 20)[0] == pytest.approx(1, abs=1e-6)
    assert np.log(density(0.3)) == pytest.approx(policy.forward(params, one, np.array([0.3]))[0][0], abs=1e-6)
    uniforms = np.random.default_rng(11).random(draws)
    actions, densities = policy.sample(policy.scores(params, np.repeat(one, draws, axis=0)), params, uniforms)
    np.testing.assert_allclose(densities[:50], [density(a) for a in actions[:50]], rtol=1e-12)
    mean, scale = policy.mean(scores)[0], 1 / (np.sqrt(2 * np.pi) * densities.max())
    assert kstest((actions - mean) / scale, "norm").pvalue > 1e-4


SETTINGS = [  # p, alpha, scale, baseline, l2
    (0.0, 1.7, 1.0, 0.0, 0.0),
    (0.0, np.inf, 0.3, -0.4, 0.5),
    (0.5, 2.5, 2.0, -0.2, 0.1),
    (1.5, 1.3, 0.7, -0.9, 0.0),
]


def reference(
    log_prob: Any, rows: PessimisticLog, p: float, alpha: float, scale: float, b: float, t: float, L: float
) -> float:
    """The objective as the paper writes it, row by row."""
    weights = [min(np.exp(lp) / q, alpha) for lp, q in zip(log_prob, rows.propensities, strict=True)]
    risk = sum((w - 1) * (y - b) for w, y in zip(weights, rows.losses, strict=True)) / len(weights)
    sigma = np.sqrt(sum((w - 1) ** 2 for w in weights) / len(weights))
    local = sigma * np.sqrt(np.log(np.e + np.e / sigma)) if p == 0 else sigma ** (1 - p / 2)
    floor, tail = ((alpha / t) ** (2 / (2 + p)), alpha * L / t) if np.isfinite(alpha) else (0, 0)
    return float(risk + scale * (floor + local / np.sqrt(t) + sigma * np.sqrt(L / t) + tail))


def logged(case: Case, p: float, alpha: float, scale: float, b: float, l2: float) -> PessimisticLog:
    generator = np.random.default_rng(12)
    losses, propensities = -generator.random(N), generator.uniform(0.1, 0.9, N)
    penalty = Phi(alpha, 31.0, 2.3, p, scale)
    return PessimisticLog(case.actions, losses, propensities, alpha, penalty, b, l2=l2, offsets=case.offsets)


@pytest.mark.parametrize("settings", SETTINGS)
@of(POLICIES)
def test_the_objective_is_the_papers_and_its_gradient_right(name: str, settings: Any) -> None:
    case, (p, alpha, scale, b, l2) = POLICIES[name], settings
    log = logged(case, p, alpha, scale, b, l2)
    function = PolicyValue(case.policy, case.features, log)
    params = case.params
    value, gradient = function(params)
    log_prob = log_likelihood(case.policy, params, case.features, case.actions)[0]
    expected = reference(log_prob, log, p, alpha, scale, b, 31.0, 2.3) + l2 * params @ params / (2 * N)
    assert value == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(gradient, finite_differences(lambda q: function(q)[0], params), atol=2e-6)
    in_stretches = PolicyValue(case.policy, case.features, log, stretch=7)(params)
    assert in_stretches[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(in_stretches[1], gradient, atol=1e-12)


@of(SAME_ACTIONS)
def test_the_objective_with_a_control_variate(name: str) -> None:
    case, (p, alpha, scale, b, l2) = POLICIES[name], SETTINGS[2]
    plain = logged(case, p, alpha, scale, b, l2)
    features = np.random.default_rng(13).normal(size=(N, 3))
    control = ridge_control(features, case.actions, plain.losses, case.policy.n_actions, b, 2.0)
    function = PolicyValue(case.policy, case.features, replace(plain, control=control))
    value, gradient = function(case.params)
    pi = np.exp(log_probabilities(case.policy, case.params, case.features)[0])
    weights = np.minimum(pi[np.arange(N), case.actions] / plain.propensities, alpha)
    risk = np.mean((weights - 1) * (plain.losses - control.played))
    modelled = np.mean([pi[s] @ (control.by_action[:, s] - b) for s in range(N)])
    penalty = plain.penalty(float(np.mean((weights - 1) ** 2)))[0]
    assert value == pytest.approx(risk + modelled + penalty + l2 * case.params @ case.params / (2 * N), rel=1e-6)
    np.testing.assert_allclose(gradient, finite_differences(lambda q: function(q)[0], case.params), atol=2e-6)


@of(POLICIES)
def test_a_policy_survives_its_file_form(name: str) -> None:
    policy = decode_from_storage(encode_for_storage(POLICIES[name].policy))
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
    "settled": Settled(Chain((Standardise(), Intercept()))),
    "user and items": UserItems(shared=1),
    "user and items, projected": UserItems(shared=2, most=1),
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
    same = decode_from_storage(encode_for_storage(each))
    np.testing.assert_array_equal(same.transform(seen, rows), out)
