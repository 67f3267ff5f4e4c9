"""The bench's hand-written references, at tiny sizes: they compute our objectives and make our decisions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from benchmarks import policies, rounds, sparse
from benchmarks.data import logistic_bandit
from benchmarks.measure import Skipped
from benchmarks.reference import ReplayReference, both_objectives, library

from o2pl import O2PL, Bandit
from o2pl.extras import missing


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
    assert policies.our_sets_loop(*sets, "replay") > np.mean([np.mean(row) for row in sets[1]]) + 0.1
    assert policies.our_rows_loop(*targets, "replay") > 0.3
    if not missing("vw"):
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


@pytest.mark.usefixtures("_compiler")
@pytest.mark.parametrize(("d", "n_actions"), [(4, 3), (20, 5), (30, 12)])
def test_the_reference_makes_our_decisions(d: int, n_actions: int) -> None:
    contexts, rewards = logistic_bandit(600, d, n_actions)
    contexts[:, 0] = contexts[:, 0] > 0  # a binary column is left as it is
    contexts[:, 1] = 7.0  # and one that never varies says nothing
    ours = O2PL(n_actions, policy="linear", schedule="replay", penalty=0, random_state=3).run((contexts, rewards))
    same = partial(ReplayReference, d, n_actions, seed=3, penalty=0)
    actions, propensities = same().run(contexts, rewards)
    np.testing.assert_array_equal(actions, ours.actions)
    np.testing.assert_allclose(propensities, ours.propensities, rtol=1e-2)
    assert same().loop(contexts, rewards.tolist()) == pytest.approx(ours.mean_reward)


@pytest.mark.usefixtures("_compiler")
def test_the_reference_earns_what_we_earn_with_the_penalty() -> None:
    """Decisions may differ: all weights are 1 at the first step, and the penalty has a kink there."""
    contexts, rewards = logistic_bandit(5000, 20, 5)
    ours = O2PL(5, policy="linear", schedule="replay", random_state=3).run((contexts, rewards))
    assert ReplayReference(20, 5, seed=3).loop(contexts, rewards.tolist()) == pytest.approx(ours.mean_reward, abs=0.02)
