"""However the log is given."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.evaluation.cases import log_of, policy

import o2pl
from o2pl import InvalidInput
from o2pl.data.contexts import SparseRows
from o2pl.evaluation.evaluate import evaluate
from o2pl.evaluation.evaluated_logs import as_evaluated_log, common_features_of_evaluated_log, numeric_evaluated_log


def test_four_columns_and_their_range() -> None:
    log = log_of(200)
    whole = evaluate(log, policy, baseline="logged", at_any_time=True)
    for columns in (tuple(log), list(log)):
        one = evaluate(columns, policy, baseline="logged", at_any_time=True, reward_range=(0, 1))
        assert one.estimates == whole.estimates
        assert one.difference == whole.difference
    assert as_evaluated_log(tuple(log)).reward_range is None
    with pytest.raises(InvalidInput, match=r"propensity, row 0: found 0\.0"):
        evaluate((log.contexts, log.actions, log.rewards, np.zeros(200)), policy)


def test_a_stated_range_takes_the_place_of_the_logs_own() -> None:
    log = log_of(200)
    assert as_evaluated_log(log) is as_evaluated_log(log, (0, 1)) is log
    assert as_evaluated_log(log, (-1, 2)).reward_range == (-1, 2)
    wide, narrow = (evaluate(log, policy, at_any_time=True, reward_range=ends) for ends in ((-1, 2), (0, 1)))
    assert wide.interval[1] - wide.interval[0] > narrow.interval[1] - narrow.interval[0]
    with pytest.raises(InvalidInput, match=r"reward, row \d+: found 1.0, expected a number in \[0, 0.5\]"):
        evaluate(log, policy, reward_range=(0, 0.5))
    with pytest.raises(InvalidInput, match="reward_range: found"):
        evaluate(log, policy, reward_range=(1, 0))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ([1, 2], "a list of 2"),
        ((1, 2, 3), "a tuple of 3"),
        ("log.csv", "the text 'log.csv'"),
        (None, "a NoneType"),
        ({"action": [1]}, "a dict"),
        (np.ones((4, 2)), "a ndarray"),
    ],
)
def test_what_is_no_log(given: Any, found: str) -> None:
    expected = "Interactions (from read_log, for example), a learner, a Log, or a tuple of four columns"
    with pytest.raises(InvalidInput, match=re.escape(f"log: found {found}, expected {expected}")):
        evaluate(given, policy)


def word_log(n: int = 600) -> tuple[list[str], Any, Any, Any]:
    rng = np.random.default_rng(0)
    cities, actions = rng.choice(["Rome", "Oslo"], n).tolist(), rng.integers(2, size=n)
    right = np.array([city == "Oslo" for city in cities])
    return cities, actions, (actions == right).astype(float), np.full(n, 0.5)


@pytest.mark.parametrize("policy_class", ["linear", "hashed"])
@pytest.mark.parametrize("learner", [o2pl.Bandit, o2pl.O2PL])
def test_frames_and_dictionaries_are_read_by_the_policy_in_its_own_way(learner: Any, policy_class: str) -> None:
    cities, *rest = word_log()
    half = slice(300, None)
    for contexts in (pa.table({"city": cities}), [{"city": city} for city in cities]):
        log = o2pl.Interactions(contexts, *rest, reward_range=(0, 1))
        fitted = learner(2, policy=policy_class, random_state=0).fit(log[:300])
        found = evaluate(log[half], fitted, baseline="uniform")
        assert found.value > 0.9
        assert found.safe_to_deploy()
        table = fitted.predict_proba(log[half].contexts)
        assert evaluate(log[half], table).estimates == found.estimates[: len(evaluate(log[half], table).estimates)]
    chance = evaluate((contexts, *rest), lambda part: np.full((len(part), 2), 0.5))
    assert chance.value == pytest.approx(0.5, abs=0.1)


def test_action_sets_of_dictionaries() -> None:
    cities, actions, rewards, propensities = word_log()
    sets = [({"city": city}, [{"item": "a"}, {"item": "b"}]) for city in cities]
    log = o2pl.Interactions(sets, actions, rewards, propensities, reward_range=(0, 1))
    ranker = o2pl.Bandit(policy="hashed actionwise", random_state=0).fit(log[:300])
    assert evaluate(log[300:], ranker, baseline="uniform").safe_to_deploy()
    assert evaluate(ranker, "uniform").value == pytest.approx(0.5, abs=0.1)  # its own log: sparse sets


def test_sparse_rows_as_few_columns() -> None:
    few = SparseRows(np.array([7, 9, 7], np.int32), np.array([1, 2, 3], np.float32), np.array([0, 2, 3]), 64)
    np.testing.assert_array_equal(common_features_of_evaluated_log(few), [[1, 2], [3, 0]])  # the commonest first
    indices = np.r_[np.arange(1000), np.arange(10)].astype(np.int32)
    many = SparseRows(indices, np.ones(1010, np.float32), np.arange(0, 1011, 10), 1024)
    dense = common_features_of_evaluated_log(many)
    assert dense.shape == (101, 64)
    assert dense.sum() == 1010  # nothing is lost
    np.testing.assert_array_equal(dense[100, :10], np.ones(10))
    empty = SparseRows(np.empty(0, np.int32), np.empty(0, np.float32), np.zeros(3, np.int64), 64)
    assert common_features_of_evaluated_log(empty).shape == (2, 1)
    log = o2pl.Interactions(np.ones((2, 1)), [0, 1], [0, 1], [0.5, 0.5])
    assert numeric_evaluated_log(log) is log
