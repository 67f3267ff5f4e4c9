"""The bench's hand-written references, at tiny sizes: they compute our objectives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks import policies, rounds, sparse
from benchmarks.measure import Skipped
from benchmarks.reference import both_objectives, library

from o2pl import O2PL, Bandit
from o2pl.extras import missing_extra


@pytest.fixture
def _compiler() -> None:
    try:
        library()
    except Skipped as reason:
        pytest.skip(str(reason))


@pytest.mark.usefixtures("_compiler")
def test_loading_the_reference_leaves_the_arithmetic_of_the_process_as_it_is() -> None:
    smaller = np.array([1e-310]) * 0.5  # below the smallest normal number; a comparison would take it for 0 as well
    assert smaller.view(np.int64)[0] != 0


@pytest.mark.usefixtures("_compiler")
@pytest.mark.parametrize(("n", "d", "n_actions", "threads"), [(37, 4, 3, 1), (1537, 21, 5, 2), (700, 9, 13, 3)])
def test_the_reference_computes_our_objective(n: int, d: int, n_actions: int, threads: int) -> None:
    ours, reference, params = both_objectives(n, d, n_actions, threads, seed=n)
    (value, gradient), (its_value, its_gradient) = ours(params), reference(params)
    assert its_value == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(its_gradient, gradient, atol=1e-6)
    assert np.abs(gradient).max() > 1e-3


@pytest.mark.usefixtures("_compiler")
@pytest.mark.parametrize("both", [policies.both_actionwise, policies.both_gaussian])
@pytest.mark.parametrize("rows", [6, 2000])
def test_the_reference_computes_our_objectives_of_other_policies(both: Any, rows: int) -> None:
    ours, reference, params = both(rows, d=7, seed=rows)
    (value, gradient), (its_value, its_gradient) = ours(params), reference(params)
    assert its_value == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(its_gradient, gradient, atol=1e-12)
    assert np.abs(gradient).max() > 1e-3


def test_loops_of_other_policies_learn() -> None:
    sets, targets = policies.logistic_sets(400, d=5), policies.linear_targets(400, d=2)
    assert policies.our_sets_loop(*sets) > np.mean([np.mean(row) for row in sets[1]]) + 0.1
    assert policies.our_rows_loop(*targets) > 0.3
    if not missing_extra("vw"):
        assert policies.vw_sets_loop(*sets) > 0.5
        assert policies.vw_rows_loop(*targets) > 0.1


@pytest.mark.usefixtures("_compiler")
@pytest.mark.parametrize(("n", "nonzeros", "slots", "n_actions"), [(40, 3, 9, 2), (700, 20, 300, 5), (500, 7, 50, 11)])
def test_the_sparse_reference_computes_our_objective(n: int, nonzeros: int, slots: int, n_actions: int) -> None:
    ours, reference, params = sparse.both_objectives(n, nonzeros, slots, n_actions, seed=n)
    its_gradient, (value, gradient) = np.empty_like(params), ours(params)
    assert reference(params, its_gradient) == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(its_gradient, gradient, atol=1e-6)
    assert np.abs(gradient).max() > 1e-3


@pytest.mark.parametrize("kind", [Bandit, O2PL])
def test_words_are_learned_from(kind: Any) -> None:
    contexts, rewards, means = sparse.word_bandit(600, 5)
    assert sum(len(own) for own in contexts[0].values()) == 20
    learner = sparse.hashed(5, learner=kind)
    assert rounds.our_loop(learner, contexts, rewards.tolist()) > means.mean() + 0.03
