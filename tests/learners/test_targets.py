from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.evaluation.cases import POLICY, log_of, policy

import o2pl
from o2pl import ActionSets, InvalidInput
from o2pl.data.frames import as_frame
from o2pl.data.interactions import Interactions
from o2pl.evaluation.evaluate import evaluate
from o2pl.evaluation.evaluated_logs import numeric_evaluated_log
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


def test_a_function_may_return_names_places_or_lists_per_set() -> None:
    log = log_of(30)
    rows = slice(5, 25)
    chosen = as_target(lambda contexts: [1] * len(contexts), log).on(rows).probabilities
    np.testing.assert_array_equal(chosen, np.tile([0, 1, 0], (20, 1)))
    named = log.changed(action_names=("x", "y", "z"))
    for words in (["y"] * 20, pd.Series(["y"] * 20), pd.Series(["y"] * 20, dtype="category")):
        np.testing.assert_array_equal(as_target(lambda _, words=words: words, named).on(rows).probabilities, chosen)
    sets = ActionSets.of([np.zeros((k, 2)) for k in (1, 2, 4)])
    log = Interactions(sets, [0, 1, 3], np.ones(3), [1.0, 0.5, 0.25])
    lists = [[1.0], [0.5, 0.5], [0.25] * 4]
    for given in (lists, [np.array(one) for one in lists], np.concatenate(lists)):
        np.testing.assert_array_equal(
            as_target(lambda _, given=given: given, log).on(slice(0, 3)).played, [1, 0.5, 0.25]
        )
    np.testing.assert_array_equal(as_target(lambda _: [0, 1, 2], log).on(slice(0, 3)).played, [1, 1, 0])


def test_a_function_gets_rows_by_name() -> None:
    frame = pd.DataFrame({"age": [20.0, 50.0, 30.0, 60.0], "city": ["Rome", "Oslo", "Oslo", "Rome"]})
    people = frame.to_dict("records")
    items = [{"kind": "x"}, {"kind": "y"}]
    rest = ([0, 1, 0, 1], [1.0, 0.0, 1.0, 1.0], [0.5] * 4)
    for contexts in (frame, people, [(one, items) for one in people]):
        log = Interactions(contexts, *rest)

        def older(rows: Any) -> list[int]:
            users = (row[0] if isinstance(row, tuple) else row for row in rows)
            return [int(user["age"] > 40 and user["city"] in ("Oslo", "Rome")) for user in users]

        target = as_target(older, numeric_evaluated_log(log), contexts=log.contexts)
        np.testing.assert_array_equal(target.on(slice(0, 4)).played, [1, 1, 1, 1])
    assert as_frame(frame)[-1] == people[3]


def test_bad_functions() -> None:
    log = log_of(20)
    for given, message in (
        (
            lambda c: [[0.5, 0.5, 0.0]] * 19 + [[1.0]],
            "policy, row 19: found 1 probabilities, expected 3: one per action",
        ),
        (
            lambda c: np.full((len(c), 4), 0.25),
            "policy: found 4 probabilities per row, expected 3: one for every action",
        ),
        (lambda c: np.full((len(c), 2), 0.5), "policy: found 2 probabilities per row, expected 3"),
        (
            lambda c: None,
            "policy: found None, expected for each of 20 rows an action, or the probabilities of 3 actions",
        ),
        (lambda c: 1, "policy: found 1, expected for each of 20 rows an action"),
        (lambda c: ["a"] * len(c), "policy: found the action 'a', expected numbers, as in the log"),
        (lambda c: [5] * len(c), "policy, action, row 0: found 5, expected an integer from 0 to 2"),
        (lambda c: [1] * 3, "policy: found 3 actions, expected for each of 20 rows"),
        (lambda c: [{}] * len(c), "policy: found {} in the first row, expected for each of 20 rows"),
    ):
        with pytest.raises(InvalidInput, match=message):
            evaluate(log, given)
    sets = ActionSets.of([np.zeros((k, 2)) for k in (1, 2, 4)])
    log = Interactions(sets, [0, 1, 3], np.ones(3), [1.0, 0.5, 0.25])
    with pytest.raises(InvalidInput, match="policy, row 1: found 3 probabilities, expected 2: one per action"):
        as_target(lambda _: [[1.0], [0.5, 0.25, 0.25], [0.25] * 4], log).on(slice(0, 3))


def test_functions_read_action_sets_by_name_however_they_are_written() -> None:
    n = 40
    users, items = [{"age": 20 + t} for t in range(n)], [{"price": 3}, {"price": 1}]
    written: dict[str, list[Any]] = {
        "pairs": [(user, items) for user in users],
        "offers": [o2pl.Offer(user, [*items, {"price": 9}], exclude=[2]) for user in users],
        "VW's events": [{**user, "_multi": items} for user in users],
        "dictionaries": [{"shared": user, "actions": items} for user in users],
    }

    def rule(rows: Any) -> list[int]:
        seen = [(user["age"], [item["price"] for item in offered]) for user, offered in rows]
        assert all(prices == [3, 1] for _, prices in seen)
        assert [row["age"] for row in rows] == [age for age, _ in seen]
        return [int(row["age"] > 30) for row in rows]

    values = set()
    for contexts in written.values():
        log = o2pl.Interactions(contexts, [0, 1] * (n // 2), [0.0, 1.0] * (n // 2), [0.5] * n, reward_range=(0, 1))
        values.add(o2pl.evaluate(log, rule).value)
    assert len(values) == 1
