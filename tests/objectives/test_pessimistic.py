from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from o2pl.data.contexts import ActionSets
from o2pl.data.interactions import Interactions
from o2pl.objectives import Control, Pessimistic, PessimisticLog, Phi, PolicyValue
from o2pl.policies import FiniteClass, Softmax

N, K = 30, 3
GENERATOR = np.random.default_rng(0)
ACTIONS, LOSSES, Q = GENERATOR.integers(K, size=N), -GENERATOR.random(N), GENERATOR.uniform(0.1, 0.9, N)
SCORES = np.log(GENERATOR.dirichlet(np.ones(K), size=N)) + GENERATOR.normal(size=(N, 1))
PI = np.exp(SCORES) / np.exp(SCORES).sum(axis=1, keepdims=True)
ALPHA, PENALTY, B = 2.0, Phi(2.0, N, 3.0, 0.5, 0.7), -0.4
LOG = PessimisticLog(ACTIONS, LOSSES, Q, ALPHA, PENALTY, B)


def slow_value(residuals: Any, weights: Any = None) -> float:
    weights = np.ones(N) if weights is None else weights
    cut = [min(PI[s, ACTIONS[s]] / Q[s], ALPHA) - 1 for s in range(N)]
    risk = sum(v * c * e for v, c, e in zip(weights, cut, residuals, strict=True)) / sum(weights)
    return float(risk + PENALTY(sum(v * c * c for v, c in zip(weights, cut, strict=True)) / sum(weights))[0])


def test_the_value_equals_a_loop() -> None:
    assert LOG.value(LOG.partial(SCORES)[0]) == pytest.approx(slow_value(LOSSES - B))
    by_row = replace(LOG, baseline=np.linspace(-1, 0, N))
    assert by_row.value(by_row.partial(SCORES)[0]) == pytest.approx(slow_value(LOSSES - np.linspace(-1, 0, N)))


def test_rows_may_have_weights() -> None:
    weights = GENERATOR.uniform(0.2, 2, N)
    weighted = replace(LOG, weights=weights)
    assert weighted.value(weighted.partial(SCORES)[0]) == pytest.approx(slow_value(LOSSES - B, weights))
    alike = replace(LOG, weights=np.full(N, 0.5))
    assert alike.value(alike.partial(SCORES)[0]) == pytest.approx(slow_value(LOSSES - B))


def test_sums_and_cotangents_of_stretches_add_up() -> None:
    sums, cotangents = LOG.partial(SCORES)
    parts = [LOG.partial(SCORES[rows], rows) for rows in (slice(0, 11), slice(11, 12), slice(12, N))]
    np.testing.assert_allclose(sum(part[0] for part in parts), sums, rtol=1e-12)
    for at, whole in enumerate(cotangents):
        np.testing.assert_allclose(np.concatenate([part[1][at] for part in parts]), whole, rtol=1e-12)


def test_action_sets_of_one_size_are_rows() -> None:
    in_sets = replace(LOG, offsets=np.arange(0, N * K + 1, K))
    for rows in (slice(None), slice(4, 9)):
        sums, cotangents = LOG.partial(SCORES[rows], rows)
        found, flat = in_sets.partial(SCORES[rows].reshape(-1), rows)
        np.testing.assert_allclose(found, sums, rtol=1e-12)
        for one, other in zip(flat, cotangents, strict=True):
            np.testing.assert_allclose(one.reshape(-1, K), other, atol=1e-12)


def test_a_control_variate_adds_its_mean_under_the_policy() -> None:
    model = -GENERATOR.random((N, K))
    controlled = replace(LOG, control=Control(model.T, model[np.arange(N), ACTIONS]))
    mean = sum(PI[s, a] * (model[s, a] - B) for s in range(N) for a in range(K)) / N
    sums, cotangents = controlled.partial(SCORES)
    assert controlled.value(sums) == pytest.approx(slow_value(LOSSES - model[np.arange(N), ACTIONS]) + mean, rel=1e-6)
    assert [each.shape for each in cotangents] == [(N, K), (N, K)]


def test_l2() -> None:
    x, theta = GENERATOR.normal(size=(N, 2)), GENERATOR.normal(size=2 * K)
    plain, shrunk = (PolicyValue(Softmax(K), x, replace(LOG, l2=l2))(theta) for l2 in (0.0, 0.8))
    assert shrunk[0] - plain[0] == pytest.approx(0.8 * theta @ theta / (2 * N))
    np.testing.assert_allclose(shrunk[1] - plain[1], 0.8 * theta / N)


def test_a_majorant_touches_and_lies_above() -> None:
    x, theta = GENERATOR.normal(size=(N, 2)), GENERATOR.normal(size=2 * K)
    value = PolicyValue(Softmax(K), x, replace(LOG, l2=0.3))
    bound = value.majorant(theta)
    assert bound(theta)[0] == pytest.approx(value(theta)[0], rel=1e-12)
    np.testing.assert_allclose(bound(theta)[1], value(theta)[1], rtol=1e-9)
    for _ in range(20):
        other = 2 * GENERATOR.normal(size=2 * K)
        assert bound(other)[0] >= value(other)[0] - 1e-12


def test_the_values_of_a_finite_class_are_those_of_its_vertices() -> None:
    policies, x = FiniteClass(GENERATOR.dirichlet(np.ones(K), size=(4, 2))), GENERATOR.integers(2, size=(N, 1)) * 1.0
    value = PolicyValue(policies, x, LOG)
    expected = []
    for j in range(4):
        w = np.minimum(policies.likelihoods(x, ACTIONS)[:, j] / Q, ALPHA)
        expected.append(np.mean((w - 1) * (LOSSES - B)) + PENALTY(float(np.mean((w - 1) ** 2)))[0])
    np.testing.assert_allclose(value.values(), expected, rtol=1e-9)


# -- the settings


def test_settings_make_the_log() -> None:
    rows = Interactions(GENERATOR.normal(size=(N, 2)), ACTIONS, -LOSSES, Q, (0, 1))
    objective = Pessimistic(0.7, 2.5, -0.4, 0.3, p=0.5, delta=0.1)
    log = objective.prepare(rows)
    assert (log.alpha, log.baseline, log.l2) == (2.5, -0.4, 0.3)
    assert (log.control, log.offsets, log.weights) == (None, None, None)
    assert log.penalty == objective.phi(N)
    assert (log.penalty.alpha, log.penalty.p, log.penalty.scale) == (2.5, 0.5, 0.7)
    np.testing.assert_array_equal(log.losses, rows.losses)
    by_row = np.linspace(-1, 0, N)
    assert objective.prepare(rows, by_row).baseline is by_row
    sets = ActionSets.of([np.ones((K, 2))] * N)
    np.testing.assert_array_equal(
        objective.prepare(Interactions(sets, ACTIONS, -LOSSES, Q, (0, 1))).offsets, sets.offsets
    )


def test_weights_of_rows_count_in_the_length_of_the_log_and_in_the_mean() -> None:
    rows = Interactions(GENERATOR.normal(size=(N, 2)), ACTIONS, -LOSSES, Q, (0, 1))
    weights, objective = GENERATOR.uniform(0.2, 2, N), Pessimistic(baseline="mean")
    log = objective.prepare(rows, weights=weights)
    assert log.alpha == objective.alpha(weights.sum())
    assert log.penalty == objective.phi(weights.sum())
    assert log.size == weights.sum()
    assert log.baseline == objective.level(rows.losses, weights)
    assert objective.level(rows.losses, np.ones(N)) == pytest.approx(objective.level(rows.losses))


@pytest.mark.parametrize(
    "settings", [{"penalty": -1}, {"clip": 0.5}, {"baseline": 0.1}, {"beta": 0}, {"p": 2}, {"delta": 1}, {"l2": -1}]
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        Pessimistic(**settings)
