"""One log from end to end: what the constructor refuses, what some of the rows are, and who takes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import o2pl
from o2pl import ActionSets, Interactions, InvalidInput, SparseRows
from o2pl.data.interactions import interactions_or_columns

X, A, R, Q = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0, 1, 2], [0.0, 0.5, 1.0], [0.5, 0.25, 1.0]
SETS = ActionSets.of([np.ones((2, 2)), np.ones((3, 2)), np.ones((1, 2))])
SPARSE = SparseRows(np.array([0, 3, 1], np.int32), np.ones(3, np.float32), np.array([0, 2, 2, 3]), 4)


def made(n: int = 60, k: int = 3, seed: int = 0, **given: Any) -> Interactions:
    g = np.random.default_rng(seed)
    columns = (g.normal(size=(n, 2)), g.integers(k, size=n), g.integers(0, 6, size=n) * 1.0, np.full(n, 1 / k))
    return Interactions(*columns, **({"reward_range": (0, 5), "n_actions": k} | given))


def same(one: Interactions, other: Interactions) -> None:
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, theirs)


# -- what is refused

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "short contexts": ({"contexts": X[:2]}, "columns differ in length: {'contexts': 2, 'actions': 3"),
    "short actions": ({"actions": [0, 1]}, "columns differ in length: .*'actions': 2"),
    "short rewards": ({"rewards": R[:2]}, "columns differ in length: .*'rewards': 2"),
    "short propensities": ({"propensities": Q[:2]}, "columns differ in length: .*'propensities': 2"),
    "short loggers": ({"loggers": ["a", "b"]}, "columns differ in length: .*'loggers': 2"),
    "short sets": ({"contexts": SETS[:2], "actions": [0, 1, 0]}, "columns differ in length: {'contexts': 2"),
    "flat contexts": ({"contexts": [1.0, 2.0, 3.0]}, r"contexts: found shape \(3,\), expected \(rows, features\)"),
    "ragged contexts": ({"contexts": [[1.0, 2.0], [3.0], [5.0, 6.0]]}, "contexts: expected numbers"),
    "words in contexts": ({"contexts": [["a"], ["b"], ["c"]]}, "contexts: expected numbers"),
    "NaN context": ({"contexts": [[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]]}, "context, row 1, feature 1: found nan"),
    "NaN in a set": (
        {"contexts": ActionSets.of([np.ones((2, 2)), np.full((1, 2), np.nan), np.ones((1, 2))]), "actions": [1, 0, 0]},
        "action set 1, action 0: found",
    ),
    "offsets of sets": ({"contexts": ActionSets(SETS.values, np.array([0, 2, 5, 7]))}, "found 0 to 7, expected 0 to 6"),
    "an empty set": (
        {"contexts": ActionSets(SETS.values, np.array([0, 2, 2, 6])), "actions": [0, 0, 0]},
        "offsets of action sets, row 1: found 0 entries, expected at least 1",
    ),
    "feature too large": ({"contexts": replace(SPARSE, width=3)}, "row 0: found the value 1.0 at feature 3"),
    "offsets of sparse rows": ({"contexts": replace(SPARSE, offsets=np.array([0, 2, 1, 3]))}, "row 1: found -1 ent"),
    "action outside": ({"n_actions": 2}, "action, row 2: found 2, expected an integer from 0 to 1"),
    "action negative": ({"actions": [0, -1, 2]}, "action, row 1: found -1, expected an integer from 0"),
    "action outside its set": ({"contexts": SETS, "actions": [0, 2, 1]}, "action, row 2: found 1, .* from 0 to 0"),
    "action not whole": ({"actions": [0, 1.5, 2], "continuous": False}, "actions: found float64 values"),
    "action missing": ({"actions": [0.0, np.nan, 1.0]}, "action, row 1: found nan, expected a finite number"),
    "ragged actions": ({"actions": [[0], [1, 2], [0]]}, "action: expected numbers"),
    "actions as a matrix": ({"actions": [[0], [1], [2]]}, r"action: found shape \(3, 1\), expected one value per row"),
    "real actions of sets": ({"contexts": SETS, "continuous": True}, "continuous: found True with action sets"),
    "number of actions": ({"n_actions": 2.5}, "n_actions: found 2.5, expected an integer from 1"),
    "reward NaN": ({"rewards": [0.0, np.nan, 1.0]}, "reward, row 1: found nan, expected a finite number"),
    "reward infinite": ({"rewards": [0.0, 1.0, np.inf]}, "reward, row 2: found inf"),
    "reward outside": ({"reward_range": (0, 0.9)}, r"reward, row 2: found 1.0, expected a number in \[0, 0.9\]"),
    "reward a word": ({"rewards": ["a", "b", "c"]}, "reward: expected numbers"),
    "range": ({"reward_range": (1, 0)}, "reward_range: found .*, expected finite lowest < highest"),
    "propensity 0": ({"propensities": [0.5, 0.0, 1.0]}, r"propensity, row 1: found 0.0, .* probability in \(0, 1\]"),
    "propensity above 1": ({"propensities": [0.5, 1.5, 1.0]}, "propensity, row 1: found 1.5"),
    "propensity NaN": ({"propensities": [np.nan, 0.5, 1.0]}, "propensity, row 0: found nan"),
    "density 0": ({"continuous": True, "propensities": [3.0, 0.0, 1.0]}, "row 1: found 0.0, expected a finite density"),
    "loggers of two kinds": ({"loggers": np.array(["a", 1, "a"], object)}, "loggers: found mixed types"),
    "logger without a name": ({"loggers": [0, 1, 2], "logger_names": ("a", "b")}, "logger, row 2: found 2, .* to 1"),
    "no loggers": ({"by_logger": np.ones((3, 2))}, "by_logger: .* expected also `loggers`"),
    "by_logger, shape": ({"loggers": ["a", "b", "a"], "by_logger": np.ones((3, 3))}, r"\(3, 3\), expected \(3, 2\)"),
    "by_logger, above 1": (
        {"loggers": ["a", "b", "a"], "by_logger": [[0.5, 0.1], [0.1, 0.25], [1.0, 2.0]]},
        "by_logger, row 2, logger 1: found 2.0, expected a probability",
    ),
    "by_logger, another propensity": (
        {"loggers": ["a", "b", "a"], "by_logger": [[0.5, 0.1], [0.25, 0.1], [1.0, 0.2]]},
        "by_logger, row 1: found 0.1 for the logger of the row, expected its propensity 0.25",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_column_is_refused(name: str) -> None:
    changes, message = BAD[name]
    with pytest.raises(InvalidInput, match=message):
        Interactions(**({"contexts": X, "actions": A, "rewards": R, "propensities": Q} | changes))


# -- what is kept


def test_columns_are_kept_with_their_types() -> None:
    log = Interactions(X, A, R, Q, (0, 1))
    assert [column.dtype for column in log] == [np.float32, np.int64, np.float64, np.float64]
    assert (len(log), log.n_actions, log.continuous, log.reward_range) == (3, 3, False, (0.0, 1.0))
    assert Interactions(X, A, R, Q, n_actions=7).n_actions == 7
    assert Interactions(X, A, R, Q, action_names=("a", "b", "c", "d")).n_actions == 4
    contexts = np.ones((3, 2), np.float32)
    assert Interactions(contexts, A, R, Q).contexts is contexts  # nothing is copied that need not be


def test_real_actions_are_known_by_one_that_is_not_whole() -> None:
    log = Interactions(X, [0.0, 1.5, 2.0], R, [0.5, 3.0, 1.0])
    assert (log.continuous, log.n_actions) == (True, None)
    assert log.actions.dtype == np.float64
    assert not Interactions(X, [0.0, 1.0, 2.0], R, Q).continuous
    assert Interactions(X, [0.0, 1.0, 2.0], R, [2.0, 1.0, 1.0], continuous=True).continuous


def test_losses_are_shares_of_the_range_and_else_minus_the_rewards() -> None:
    rewards = np.array([-1.0, 0.0, 4.0])
    np.testing.assert_allclose(Interactions(X, A, rewards, Q, (-1, 4)).losses, [0.0, -0.2, -1.0])
    np.testing.assert_array_equal(Interactions(X, A, rewards, Q).losses, -rewards)


def test_an_empty_log_may_exist() -> None:
    empty = Interactions(np.empty((0, 2)), [], [], [])
    assert len(empty) == 0
    assert empty.n_actions is None
    assert list(empty.blocks()) == []
    assert len(made()[:0]) == 0
    with pytest.raises(InvalidInput, match="fit: found no rows"):
        o2pl.O2PL(3).fit(empty)
    with pytest.raises(InvalidInput, match="score: found no rows"):
        o2pl.O2PL(3, reward_range=(0, 5)).fit(made()).score(empty)
    with pytest.raises(InvalidInput, match="log: found no rows"):
        o2pl.evaluate(empty, "uniform")


# -- some of the rows


@pytest.mark.parametrize("kind", ["dense", "sets", "sparse"])
@pytest.mark.parametrize(
    "rows", [slice(5, 20), slice(None, None, 3), slice(8, 8), [4, 2, 2], np.array([7, -1]), np.arange(40) % 7 == 0, []]
)
def test_some_rows_are_the_rows(kind: str, rows: Any) -> None:
    g = np.random.default_rng(0)
    sizes = g.integers(1, 5, size=40)
    dense = g.normal(size=(40, 3)).astype(np.float32)
    sets = [g.normal(size=(k, 2)).astype(np.float32) for k in sizes]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    sparse = SparseRows(g.integers(6, size=ends[-1]).astype(np.int32), np.ones(ends[-1], np.float32), ends, 6)
    contexts = {"dense": dense, "sets": ActionSets.of(sets), "sparse": sparse}[kind]
    who = np.array(["a", "b"])[g.integers(2, size=40)]
    settings: dict[str, Any] = {"reward_range": (0, 3), "n_actions": 6, "action_names": ("x", "y"), "loggers": who}
    log = Interactions(contexts, np.zeros(40, int), g.random(40), np.full(40, 0.5), **settings)
    some, at = log[rows], np.arange(40)[rows]
    assert len(some) == len(some.contexts) == len(at)
    for name in ("actions", "rewards", "propensities", "loggers"):
        np.testing.assert_array_equal(getattr(some, name), getattr(log, name)[at])
    assert (some.reward_range, some.n_actions, some.action_names) == ((0, 3), log.n_actions, ("x", "y"))
    assert some.logger_names == ("a", "b")
    for own, row in zip(range(len(some)), at, strict=True):
        one = some.contexts[own : own + 1]
        if kind == "dense":
            np.testing.assert_array_equal(one[0], dense[row])
        elif kind == "sets":
            np.testing.assert_array_equal(one.values, sets[row])
        else:
            np.testing.assert_array_equal(one.dense(), sparse[row : row + 1].dense())


def test_a_single_row_number_is_refused() -> None:
    with pytest.raises(InvalidInput, match="rows: found 3, expected a slice or an array of row numbers"):
        made()[3]


def test_a_changed_copy_is_checked_and_keeps_the_rest() -> None:
    log = made(loggers=np.array(["a", "b"])[np.arange(60) % 2], action_names=("x", "y", "z"))
    other = replace(log, reward_range=(-1, 9))
    same(other, log)
    np.testing.assert_array_equal(other.loggers, log.loggers)
    assert (other.logger_names, other.action_names, other.n_actions) == (("a", "b"), ("x", "y", "z"), 3)
    with pytest.raises(InvalidInput, match="reward, row"):
        replace(log, reward_range=(0, 1))


def test_trusted_columns_are_taken_as_they_are() -> None:
    columns = (np.full((2, 1), np.nan), np.array([9, 9]), np.array([7.0, 8.0]), np.zeros(2))
    log = Interactions.trusted(*columns, (0.0, 1.0), 3)
    assert all(mine is given for mine, given in zip(log, columns, strict=True))
    assert (log.reward_range, log.n_actions, log.continuous, log.action_names) == ((0.0, 1.0), 3, False, ())


def test_action_sets_of_unlike_width_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"action set 1: found shape \(2, 3\), expected \(number of actions, 2\)"):
        ActionSets.of([np.zeros((4, 2)), np.zeros((2, 3))])


# -- who takes it


class Kept:
    """As an append-only log hands out its columns."""

    def __init__(self, columns: Interactions) -> None:
        self.columns = columns


def test_one_argument_or_four() -> None:
    log = made()
    assert interactions_or_columns(log) is log
    assert interactions_or_columns(Kept(log)) is log
    assert interactions_or_columns((X, A, R, Q)) == interactions_or_columns(X, A, R, Q) == (X, A, R, Q)
    contexts = ((1.0,), (2.0,), (3.0,), (4.0,))  # four rows, not four columns
    assert interactions_or_columns(contexts, [0] * 4, [0] * 4, [1] * 4)[0] is contexts
    for wrong, message in (
        ((log, A), "found a log and also actions, expected only the log"),
        ((Kept(log), None, R, Q), "found a log and also rewards, propensities"),
        ((X, A), "found no rewards and no propensities, expected either a log .* or all four columns"),
        ((X,), "found no actions and no rewards and no propensities"),
        (((X, A, R),), "found no actions"),
    ):
        with pytest.raises(InvalidInput, match=message):
            interactions_or_columns(*wrong)


@pytest.mark.parametrize("given", ["log", "Log", "tuple"])
def test_a_log_is_as_good_as_its_columns(given: str) -> None:
    log = made(120, loggers=["a"] * 120)
    one = {"log": log, "Log": Kept(log), "tuple": tuple(log)}[given]
    settings: dict[str, Any] = {"policy": "linear", "reward_range": (0, 5), "random_state": 0}
    for method in ("fit", "partial_fit"):
        by_log, by_columns = (
            getattr(o2pl.O2PL(3, **settings), method)(*each) for each in ((one,), (log.contexts, *list(log)[1:]))
        )
        np.testing.assert_array_equal(by_log.predict_proba(log.contexts), by_columns.predict_proba(log.contexts))
        assert by_log.score(one) == by_columns.score(*log)
        assert by_log.safe_to_deploy(fresh=one) == by_log.safe_to_deploy(fresh=tuple(log))
    found, expected = (
        o2pl.O2PL.from_incumbent(*each, reward_range=(0, 5), n_actions=3, random_state=0) for each in ((one,), log)
    )
    np.testing.assert_array_equal(found.predict_proba(log.contexts), expected.predict_proba(log.contexts))
    assert found.improvement_ == expected.improvement_
    improved, twin = (
        o2pl.SafeImprovement(3, reward_range=(0, 5), random_state=0).fit(*each) for each in ((one,), tuple(log))
    )
    assert improved.verdicts_ == twin.verdicts_


def test_actions_that_were_never_played_count() -> None:
    log = made(n_actions=5)
    assert o2pl.O2PL(reward_range=(0, 5)).fit(log).n_actions_ == 5
    assert o2pl.O2PL(reward_range=(0, 5)).fit(*log).n_actions_ == 3
    assert o2pl.SafeImprovement(reward_range=(0, 5), random_state=0).fit(log).n_actions_ == 5


def test_a_log_of_the_other_kind_of_action_or_range_is_refused() -> None:
    discrete = made()
    real = Interactions(X, [0.0, 1.0, 2.0], R, Q, (0, 1), continuous=True)
    with pytest.raises(InvalidInput, match="found actions that are integers, expected real numbers"):
        o2pl.GaussianO2PL(reward_range=(0, 5)).fit(discrete)
    with pytest.raises(InvalidInput, match=r"found actions that are real numbers .*, expected integers for O2PL"):
        o2pl.O2PL(3).partial_fit(real)
    with pytest.raises(InvalidInput, match=r"reward, row \d+: found .*, expected a number in \[0, 1\]"):
        o2pl.O2PL(3).fit(discrete)
    inside = replace(discrete, rewards=discrete.rewards / 5)  # of a wider range, and yet within the learner's
    assert o2pl.O2PL(3, random_state=0).fit(inside).log_.reward_range == (0, 1)


def test_a_log_from_a_file_to_a_learner_and_back(tmp_path: Path) -> None:
    log = made(200)
    names = {"x": log.contexts[:, 0], "y": log.contexts[:, 1]}
    columns = {"action": log.actions, "reward": log.rewards, "propensity": log.propensities}
    parquet.write_table(pa.table(names | columns), tmp_path / "log.parquet")
    read = o2pl.read_log(tmp_path / "log.parquet", reward_range=(0, 5))
    same(read, log)
    learner = o2pl.O2PL(reward_range=(0, 5), random_state=0).fit(read)
    same(learner.log_, log)
    assert (learner.log_.reward_range, learner.log_.n_actions, learner.log_.continuous) == ((0, 5), 3, False)
    learner.save(tmp_path / "learner.o2pl")
    kept = o2pl.read_log(tmp_path / "learner.o2pl")
    same(kept, log)
    values = [o2pl.evaluate(each, "uniform").value for each in (read, learner, kept, learner.log_)]
    assert values == [values[0]] * 4
    again = o2pl.O2PL(reward_range=(0, 5), random_state=0).fit(kept)
    np.testing.assert_array_equal(again.predict_proba(log.contexts), learner.predict_proba(log.contexts))


def test_the_log_of_a_learner_of_real_actions_of_sets_and_of_dictionaries() -> None:
    g = np.random.default_rng(0)
    real = Interactions(g.normal(size=(40, 1)), g.normal(size=40), g.random(40), np.ones(40), (0, 1))
    gaussian = o2pl.GaussianO2PL(random_state=0).fit(real)
    same(gaussian.log_, real)
    assert gaussian.log_.continuous
    sets = ActionSets.of([g.normal(size=(k, 2)) for k in (2, 3, 4, 2)])
    chosen = Interactions(sets, [1, 2, 0, 1], [0.0, 1.0, 0.5, 1.0], [0.5, 0.3, 0.2, 0.5])
    actionwise = o2pl.O2PL(policy="actionwise", random_state=0).fit(chosen)
    assert actionwise.log_.n_actions is None
    np.testing.assert_array_equal(actionwise.log_.contexts.values, sets.values)
    words = [{"word": word} for word in "abcd"]
    hashed = o2pl.O2PL(2, policy="hashed", random_state=0).fit(words, [0, 1, 0, 1], [0.0, 1.0, 1.0, 0.0], [0.5] * 4)
    log = hashed.log_
    again = o2pl.O2PL(2, policy="hashed", random_state=0).fit(Interactions(*log, reward_range=(0, 1)))
    np.testing.assert_array_equal(again.predict_proba(words), hashed.predict_proba(words))
    assert o2pl.evaluate(log, "logged").value == 0.5


def test_frames_and_dictionaries_are_kept_as_they_are() -> None:
    rest: Any = ([0, 1, 0], [0.0, 1.0, 1.0], [0.5] * 3)
    frame = Interactions(pa.table({"age": [1.0, None, 3.0], "city": ["a", "b", None]}), *rest)
    assert frame[1:].contexts["city"].tolist() == ["b", None]
    words = Interactions([{"a": 1}, {"b": "x"}, {}], *rest)
    assert words[np.array([1])].contexts[0] == {"b": "x"}
    sets = Interactions([[{"a": 1}], ({}, [{}, {}]), {"_multi": [{}]}], *rest)
    assert sets.n_actions is None
    assert sets[:2].contexts.sizes.tolist() == [1, 2]
    with pytest.raises(InvalidInput, match="action, row 1: found 1, expected an integer from 0 to 0"):
        Interactions([[{"a": 1}]] * 3, *rest)
    with pytest.raises(InvalidInput, match="columns differ in length"):
        Interactions(pa.table({"age": [1.0]}), *rest)


def test_ids_follow_from_the_columns_where_there_are_none() -> None:
    log = Interactions([[0.0], [1.0]], [0, 1], [1.0, 0.0], [0.5, 0.5])
    assert log.ids is None
    same = Interactions([[0.0], [1.0]], [0, 1], [1.0, 0.0], [0.5, 0.5]).with_ids()
    np.testing.assert_array_equal(log.with_ids().ids, same.ids)
    other = Interactions([[0.0], [1.0]], [0, 1], [1.0, 1.0], [0.5, 0.5]).with_ids()
    assert other.ids[0] != same.ids[0]
    given = Interactions([[0.0], [1.0]], [0, 1], [1.0, 0.0], [0.5, 0.5], ids=["a", "b"])
    assert given.with_ids() is given
    np.testing.assert_array_equal(o2pl.O2PL(2).fit(given).log_.ids, given.ids)


def test_a_column_that_is_none_has_no_name() -> None:
    log = Interactions([[0.0], [1.0]], [0, 1], [1.0, 0.0], [0.5, 0.5])
    assert (log.context_name(0), log.context_name(-1)) == ("column 0", "column -1")


def test_row_weights_are_checked_kept_and_thinned() -> None:
    n = 20_000
    weights = np.resize([1.0, 2.0, 10.0], n)
    log = Interactions(np.zeros((n, 1)), np.zeros(n, int), np.zeros(n), np.ones(n), (0, 1), 2, row_weights=weights)
    assert log[3:6].row_weights.tolist() == [1.0, 2.0, 10.0]
    assert log.changed(reward_range=(0, 2)).row_weights is not None
    effective = weights.sum() ** 2 / (weights @ weights)
    assert log.effective_weights is not None
    assert log.effective_weights.sum() == pytest.approx(effective)
    kept = log.thinned_rows()
    shares = np.bincount(kept % 3) / np.bincount(np.arange(n) % 3)
    assert shares == pytest.approx([0.1, 0.2, 1.0], abs=0.02)
    thin = log.thinned()
    assert len(thin) == len(kept)
    assert thin.row_weights is None
    assert log.row_weights is not None
    assert thin.thinned() is thin
    for wrong in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(InvalidInput, match=r"row_weights, row 3: found .*, expected a finite number > 0"):
            log.changed(row_weights=np.where(np.arange(n) == 3, wrong, weights))
    with pytest.raises(InvalidInput, match="columns differ in length"):
        log.changed(row_weights=weights[:-1])
