from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.cases import POLICY, log_of, policy

import o2pl
from o2pl import ActionSets, InvalidInput
from o2pl.data.interactions import Interactions
from o2pl.evaluation.evaluate import evaluate
from o2pl.learners.targets import as_target


def test_a_policy_is_the_same_however_it_is_given() -> None:
    log, rows = log_of(50), slice(10, 30)
    table = np.tile(POLICY, (50, 1))
    for target in (as_target(policy, log), as_target(table, log)):
        np.testing.assert_array_equal(target.on(rows).probabilities, table[rows])
        np.testing.assert_array_equal(target.on(rows).played, POLICY[log.actions[rows]])
        assert target.on(rows).nodes is None
    alone = as_target(POLICY[log.actions], log)  # of the logged actions only
    np.testing.assert_array_equal(alone.on(rows).played, POLICY[log.actions[rows]])
    assert alone.on(rows).probabilities is None
    np.testing.assert_array_equal(as_target("logged", log).on(rows).played, log.propensities[rows])
    np.testing.assert_array_equal(as_target("uniform", log).on(rows).played, 1 / 3)


def test_the_uniform_policy_of_action_sets_follows_their_sizes() -> None:
    sets = ActionSets.of([np.zeros((k, 2)) for k in (1, 2, 4)])
    log = Interactions(sets, [0, 1, 3], np.ones(3), [1.0, 0.5, 0.25])
    np.testing.assert_array_equal(as_target("uniform", log).on(slice(0, 3)).played, [1, 1 / 2, 1 / 4])


def test_bad_policies() -> None:
    log = log_of(20)
    for given, message in (
        ("best", "policy: found 'best'"),
        (np.ones(3), r"policy: found shape \(3,\) for a log of 20 rows"),
        (np.ones((20, 3)), "policy, row 0: found probabilities that sum to 3"),
        (np.tile([1.5, -0.5, 0], (20, 1)), "policy, row 0: found a negative probability"),
        (None, "policy: found a NoneType, expected a learner"),
        (np.ones((20, 2)) / 2, r"found shape \(20, 2\), expected \(20, 3\)"),
        (np.full(20, 2.0), "policy, row 0: found 2.0, expected a probability"),
        (o2pl.GaussianO2PL(), "continuous actions"),
    ):
        with pytest.raises(InvalidInput, match=message):
            evaluate(log, given)
    for given, message in (
        ("best", "baseline: found 'best'"),
        (np.full((20, 3), np.nan), "baseline, row 0: found probabilities that sum to nan"),
        (np.full(20, 2.0), "baseline, row 0: found 2.0, expected a probability"),
    ):
        with pytest.raises(InvalidInput, match=message):
            evaluate(log, "uniform", baseline=given)


def test_a_negative_probability_of_an_action_set_is_named_by_its_row() -> None:
    sets = ActionSets.of([np.zeros((2, 2)) for _ in range(3)])
    log = Interactions(sets, [0, 1, 1], np.ones(3), [0.5, 0.5, 0.5])
    target = as_target(_Sets(np.array([0.5, 0.5, 1.5, -0.5, 0.5, 0.5])), log, "mine")
    with pytest.raises(InvalidInput, match="mine, row 1: found a negative probability"):
        target.on(slice(0, 3))


class _Sets:
    def __init__(self, given: np.ndarray) -> None:
        self.predict_proba = lambda contexts: given
