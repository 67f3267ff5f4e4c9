"""The kernels of sparse rows beside the dense softmax on the same rows."""

from __future__ import annotations

import numpy as np
import pytest

from o2pl import _core
from o2pl.data.contexts import SparseRows
from o2pl.data.interactions import Interactions
from o2pl.kernels import sparse
from o2pl.kernels.sparse import SparseOutcome, SparseValue
from o2pl.objectives import Control, Pessimistic, PolicyValue
from o2pl.objectives.outcome import OutcomeLog
from o2pl.oracles.quasi_newton import no_quasi_newton_pairs
from o2pl.policies import Softmax


def sparse_matrix(n: int, d: int, seed: int) -> SparseRows:
    """Rows of some features, some twice in a row, some rows empty."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(0, 6, size=n)
    total = int(sizes.sum())
    indices = generator.integers(0, d, size=total).astype(np.int32)
    return SparseRows(indices, generator.normal(size=total).astype(np.float32), np.cumsum([0, *sizes]), d)


@pytest.mark.parametrize("n_actions", [2, 5, 8, 11])
@pytest.mark.parametrize("controlled", [False, True])
@pytest.mark.parametrize("objective", [Pessimistic(0.3, "theory", "mean", 2.0), Pessimistic(1.0, 1.5, None, p=0.5)])
def test_objective_and_gradient_are_the_dense_ones(n_actions: int, controlled: bool, objective: Pessimistic) -> None:
    n, d = 300, 40
    generator, rows = np.random.default_rng(n_actions), sparse_matrix(n, d, n_actions)
    actions, rewards = generator.integers(n_actions, size=n), generator.random(n)
    log = Interactions(rows, actions, rewards, generator.uniform(0.1, 1.0, size=n), (0, 1), n_actions)
    model = -generator.random((n_actions, n)).astype(np.float32)
    control = Control(model, model[actions, np.arange(n)].astype(float)) if controlled else None
    prepared = objective.prepare(log, control)
    dense = PolicyValue(Softmax(n_actions), rows.dense().astype(np.float64), prepared)
    fused = SparseValue(prepared, rows, n_actions)
    params = 0.5 * generator.normal(size=(d, n_actions))  # all weights of a feature side by side
    value, gradient = fused(params.reshape(-1))
    expected, its_gradient = dense(params.T.reshape(-1))
    assert value == pytest.approx(expected, rel=2e-6, abs=1e-7)
    np.testing.assert_allclose(gradient.reshape(d, -1).T.reshape(-1), its_gradient, atol=2e-7 + 2e-6 * abs(value))
    assert np.abs(gradient).max() > 1e-3
    for _ in range(3):  # and by differences of the value itself, along random directions
        direction = generator.normal(size=params.size)
        direction *= 5e-3 / np.linalg.norm(direction)  # short: past few kinks, where rows begin to be clipped
        ends = [fused(params.reshape(-1) + sign * direction)[0] for sign in (1, -1)]
        assert (ends[0] - ends[1]) / 2 == pytest.approx(float(gradient @ direction), rel=0.02, abs=1e-6)


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("competing", [False, True])
@pytest.mark.parametrize("n_actions", [1, 2, 5, 8, 11])
def test_the_outcome_likelihood_is_the_dense_one(n_actions: int, competing: bool, weighed: bool) -> None:
    n, d = 300, 40
    generator, rows = np.random.default_rng(n_actions), sparse_matrix(n, d, n_actions)
    weights = generator.uniform(0.01, 1, size=n) if weighed else None
    log = OutcomeLog(generator.integers(n_actions, size=n), generator.random(n), competing, 2.0, 5.0, None, weights)
    params = 0.5 * generator.normal(size=(d, n_actions))
    value, gradient = SparseOutcome(log, rows, n_actions)(np.append(params, 0.3))
    dense = PolicyValue(Softmax(n_actions), rows.dense().astype(np.float64), log, extra=1)
    expected, its_gradient = dense(np.append(params.T, 0.3))
    assert value == pytest.approx(expected, rel=2e-6)
    np.testing.assert_allclose(gradient[:-1].reshape(d, -1).T.reshape(-1), its_gradient[:-1], atol=1e-6)
    assert gradient[-1] == pytest.approx(its_gradient[-1], abs=1e-6)
    assert np.abs(gradient).max() > 1e-3


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("competing", [False, True])
def test_panels_of_a_long_log_add_up_to_the_whole_on_any_number_of_threads(
    competing: bool, weighed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, d, n_actions = 1001, 40, 5
    generator, rows = np.random.default_rng(0), sparse_matrix(n, d, 0)
    weights = generator.uniform(0.01, 1, size=n) if weighed else None
    log = OutcomeLog(generator.integers(n_actions, size=n), generator.random(n), competing, 2.0, 5.0, None, weights)
    params = np.append(0.5 * generator.normal(size=(d, n_actions)), 0.3)
    value, gradient = SparseOutcome(log, rows, n_actions)(params)
    monkeypatch.setattr(sparse, "PANEL", 100)  # four panels of 251, 251, 251 and 248 rows
    results = []
    for threads in (1, 3):
        monkeypatch.setattr("o2pl.threads._given_threads", lambda threads=threads: threads)
        results.append(SparseOutcome(log, rows, n_actions)(params))
    assert not np.array_equal(results[0][1], gradient)  # other sums
    assert results[0][0] == results[1][0] == pytest.approx(value, rel=1e-6)
    np.testing.assert_array_equal(results[0][1], results[1][1])
    np.testing.assert_allclose(results[0][1], gradient, atol=1e-7)


@pytest.mark.parametrize("weighed", [False, True])
def test_independent_actions_descend_in_the_weights_that_can_move(weighed: bool) -> None:
    n, d, n_actions = 300, 60, 5
    generator, rows = np.random.default_rng(0), sparse_matrix(n, d, 0)
    weights = generator.uniform(0.01, 1, size=n) if weighed else None
    actions = generator.integers(3, size=n)  # two of five are never played
    function = SparseOutcome(OutcomeLog(actions, generator.random(n), False, 2.0, 0.0, None, weights), rows, n_actions)
    start = np.append(np.zeros((d, n_actions)), -0.3)
    start[4::n_actions] = 0.5  # of an action that is not played any more: decays
    found, expected = no_quasi_newton_pairs(3, len(start)), no_quasi_newton_pairs(3, len(start))
    for iterations in (2, 3):  # from nothing, then with pairs
        settings = iterations, 1e-9, 0.0
        moved = function.descend(start, *found.values(), *settings)
        plainly = _core.descend(lambda x: function(x), start, *expected.values(), *settings)
        np.testing.assert_allclose(moved[0], plainly[0], atol=1e-6)
        assert moved[1:] == (pytest.approx(plainly[1], abs=1e-9), *plainly[2:])
        for name, own in found.items():
            np.testing.assert_allclose(own, expected[name], rtol=1e-3, atol=1e-5)
        assert np.abs(moved[0] - start).max() > 1e-3
        start = moved[0]
    W = start[:-1].reshape(d, n_actions)
    assert not W[:, 3].any()
    assert 0 < np.abs(W[:, 4]).max() < 0.5
