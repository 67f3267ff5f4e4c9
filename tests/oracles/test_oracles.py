from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl.objectives import Pessimistic, Phi, policy_value
from o2pl.oracles import LBFGS, Adam, ClassSums, MajoriseMinimise, exhaustive
from o2pl.policies import FiniteClass, Softmax, ThresholdClass
from o2pl.theory import clip_level, log_inverse_confidence


def quadratic(x: Any) -> tuple[float, Any]:
    scales = np.arange(1, len(x) + 1)
    return float(0.5 * scales @ (x - 1) ** 2), scales * (x - 1)


@pytest.mark.parametrize("oracle", [LBFGS(), Adam(steps=3000)])
def test_a_smooth_minimum_is_found_and_said(oracle: Any) -> None:
    found = oracle(quadratic, np.zeros(6))
    np.testing.assert_allclose(found.params, 1, atol=1e-3)
    assert found.converged
    assert found.value == pytest.approx(quadratic(found.params)[0])
    assert found.evaluations > 1


@pytest.mark.parametrize("oracle", [LBFGS(iterations=2), Adam(steps=5)])
def test_stopping_early_is_said(oracle: Any) -> None:
    assert not oracle(quadratic, np.full(6, 50.0)).converged


def logged_softmax(n: int = 300) -> tuple[Softmax, Any, Pessimistic]:
    generator = np.random.default_rng(0)
    x, actions = generator.normal(size=(n, 4)), generator.integers(3, size=n)
    losses = -(generator.random(n) < 1 / (1 + np.exp(-x[np.arange(n), actions]))).astype(float)
    return Softmax(3), x, Pessimistic(actions, losses, np.full(n, 1 / 3), 6.0, Phi(6.0, n, 8.0), -0.5)


@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_majorise_minimise_never_rises_and_ends_no_higher_than_lbfgs(scale: float) -> None:
    policy, x, objective = logged_softmax()
    penalty = Phi(6.0, 300.0, 8.0, 0.0, scale)
    exact = policy_value(policy, x, objective.with_penalty(penalty), 0.1)
    start = 0.5 * np.random.default_rng(1).normal(size=12)
    values = [exact(start)[0]]
    for rounds in range(1, 6):
        found = MajoriseMinimise(rounds=rounds)(policy, x, objective, penalty, start, 0.1)
        values.append(found.value)
    assert np.all(np.diff(values) <= 1e-12)
    assert values[1] < values[0] - 1e-3
    full = MajoriseMinimise(rounds=200)(policy, x, objective, penalty, start, 0.1)
    assert full.converged
    assert full.value == pytest.approx(exact(full.params)[0])
    direct = LBFGS()(exact, start).value
    # At scale 1 the minimum is the logger itself, where σ̂ = 0 and the penalty has a kink: the bound's smoothness pays.
    assert direct - 1e-4 < full.value < direct + 1e-6


def finite_log(n: int, policies: Any, seed: int) -> tuple[Any, Any, Any, Any]:
    """Rows whose propensities are those of random members: weights below and above the clipping level."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, 1)).astype(np.float32)
    if isinstance(policies, FiniteClass):
        x = generator.integers(policies.table.shape[1], size=(n, 1)).astype(np.float32)
    actions = generator.integers(policies.n_actions, size=n)
    likelihoods = policies.likelihoods(x, actions)
    propensities = likelihoods[np.arange(n), generator.integers(policies.size, size=n)]
    losses = -generator.random(n) * (actions == 0)
    return x, actions, losses, propensities


CLASSES = [
    FiniteClass(np.random.default_rng(2).dirichlet(np.full(3, 0.3), size=(9, 2))),
    ThresholdClass(tuple(np.linspace(-1, 1, 15)), 0.15),
]


@pytest.mark.parametrize("policies", CLASSES)
@pytest.mark.parametrize("baseline", [0.0, -0.3])
def test_running_sums_equal_brute_force_after_every_row(policies: Any, baseline: float) -> None:
    x, actions, losses, propensities = finite_log(150, policies, 3)
    sums = ClassSums(policies.size)
    ever_clipped = released = 0
    for t in range(1, 151):
        alpha = clip_level(t)
        before = int(sums.counts[1])
        sums.add(policies.likelihoods(x[t - 1 : t], actions[t - 1 : t])[0], losses[t - 1], propensities[t - 1], alpha)
        ever_clipped, released = max(ever_clipped, int(sums.counts[1])), released + (sums.counts[1] < before)
        penalty = Phi(alpha, t, log_inverse_confidence(t, 0.05))
        objective = Pessimistic(actions[:t], losses[:t], propensities[:t], alpha, penalty, baseline)
        found = exhaustive(policies, x[:t], objective)
        values = sums.values(baseline, penalty)
        assert values.min() == pytest.approx(found.value, abs=1e-10)
        assert values[int(np.argmax(found.params))] == pytest.approx(values.min(), abs=1e-10)
    assert ever_clipped > 0
    assert released > 0  # the schedule rose past some weights: both ways through the heap were taken


def test_sums_restored_go_on_alike_and_a_falling_clip_is_refused() -> None:
    policies = CLASSES[0]
    x, actions, losses, propensities = finite_log(80, policies, 4)
    one = ClassSums(policies.size)
    for t in range(80):
        if t == 40:
            other = ClassSums.restore(one.state())
        for sums in (one, other) if t >= 40 else (one,):
            row = policies.likelihoods(x[t : t + 1], actions[t : t + 1])[0]
            sums.add(row, losses[t], propensities[t], clip_level(t + 1))
    penalty = Phi(clip_level(80), 80, 5.0)
    np.testing.assert_array_equal(one.values(-0.2, penalty), other.values(-0.2, penalty))
    with pytest.raises(ValueError, match="expected it not to fall"):
        one.add(row, 0.0, 0.5, 1.5)
