"""The log: rows of every kind, appended or in batches, seen without copies, saved, restored, and mapped from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from o2pl.data.interactions import Interactions
from o2pl.data.log import Log, Tally
from o2pl.encode.dictionaries import DictionaryReader
from o2pl.encode.readers import DenseReader, SetsReader

BITS = 8


def raw_contexts(kind: str, n: int) -> list[Any]:
    generator = np.random.default_rng(0)
    if kind == "dense":
        return list(generator.normal(size=(n, 3)).astype(np.float32))
    if kind == "sets":
        return [generator.normal(size=(generator.integers(1, 6), 3)).astype(np.float32) for _ in range(n)]
    words = [
        {"a": f"w{generator.integers(9)}", "b": [float(x) for x in generator.normal(size=t % 5)]} for t in range(n)
    ]
    return words if kind == "sparse" else [words[t : t + 1 + t % 3] for t in range(n)]


def reader_of(kind: str) -> Any:
    rows: Any = DictionaryReader(BITS) if "sparse" in kind else DenseReader(3)
    return SetsReader(rows) if "sets" in kind else rows


def new_log(kind: str, **more: Any) -> Log:
    width = 2**BITS if "sparse" in kind else 3
    return Log(width, action_sets="sets" in kind, sparse="sparse" in kind, reward_range=(-1.0, 4.0), **more)


def batch(kind: str, n: int = 100) -> Interactions:
    generator = np.random.default_rng(1)
    contexts = reader_of(kind).rows(raw_contexts(kind, n))
    actions = generator.integers(contexts.sizes) if "sets" in kind else generator.integers(4, size=n)
    return Interactions(contexts, actions, generator.uniform(-1, 4, n), generator.uniform(0.1, 1, n), (-1.0, 4.0))


def arrays_of(contexts: Any) -> list[Any]:
    """The arrays that rows are made of."""
    if isinstance(contexts, np.ndarray):
        return [contexts]
    inner = arrays_of(contexts.values) if not isinstance(contexts.values, np.ndarray) else [contexts.values]
    return [*inner, contexts.offsets, *([contexts.indices] if hasattr(contexts, "indices") else [])]


def assert_same_rows(found: Interactions, expected: Interactions) -> None:
    for name in ("actions", "rewards", "losses", "propensities"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for one, other in zip(arrays_of(found.contexts), arrays_of(expected.contexts), strict=True):
        np.testing.assert_array_equal(one, other)


KINDS = ["dense", "sparse", "sets", "sparse sets"]
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
def test_a_log_holds_what_was_put_into_it_however_it_came(kind: str) -> None:
    rows, raw, reader = batch(kind), raw_contexts(kind, 100), reader_of(kind)
    extended, appended, mixed = (new_log(kind) for _ in range(3))
    for start, stop in ((0, 1), (1, 1), (1, 40), (40, 41), (41, 100)):
        extended.extend(rows[start:stop])
    for t in range(100):
        appended.append(reader.entry(raw[t]), rows.actions[t], rows.rewards[t], rows.propensities[t])
    mixed.extend_columns(rows[:33].contexts, *list(rows[:33])[1:])
    mixed.reserve(10)
    for t in range(33, 100):
        mixed.append(reader.entry(raw[t]), rows.actions[t], rows.rewards[t], rows.propensities[t])
    for log in (extended, appended, mixed):
        assert len(log) == 100
        assert_same_rows(log.columns, rows)
        for part in (slice(90, None), slice(0, 7), slice(20, 60), slice(50, 50)):
            assert_same_rows(log[part], rows[part])


def test_a_first_row_may_have_more_features_than_the_first_buffers() -> None:
    reader, log = DictionaryReader(12), new_log("sparse")
    context = {"embedding": np.arange(384.0), "device": "phone"}
    for _ in range(3):
        log.append(reader.entry(context), 1, 1.0, 0.5)
    assert_same_rows(log[2:], log[:1])
    np.testing.assert_array_equal(log[:1].contexts.indices, reader.row(context).indices)


@each_kind
def test_a_view_copies_nothing_and_later_rows_do_not_change_it(kind: str) -> None:
    rows, log = batch(kind), new_log(kind)
    log.extend(rows[:60])
    before = log.columns
    for one, other in zip(arrays_of(before.contexts), arrays_of(log.columns.contexts), strict=True):
        assert np.shares_memory(one, other)
    for name in ("actions", "rewards", "propensities"):
        assert np.shares_memory(getattr(before, name), getattr(log.columns, name))
    for _ in range(5):
        log.extend(rows[60:])
    assert_same_rows(before, rows[:60])


@each_kind
def test_a_log_may_keep_its_first_rows_as_they_are_and_grows_beside_them(kind: str, tmp_path: Path) -> None:
    rows, again = batch(kind), batch(kind)
    kept, copied, mapped = new_log(kind), new_log(kind), new_log(kind, folder=tmp_path / "log")
    first = rows[:60]
    kept.extend(first, copy=False)
    copied.extend(first)
    mapped.extend(first, copy=False)
    of_rows = arrays_of(first.contexts)[0]  # values
    assert np.shares_memory(arrays_of(kept.columns.contexts)[0], of_rows) == ("sparse" in kind)
    for log in (copied, mapped):
        assert not np.shares_memory(arrays_of(log.columns.contexts)[0], of_rows)
    kept.append(reader_of(kind).entry(raw_contexts(kind, 61)[60]), rows.actions[60], rows.rewards[60], 0.5)
    kept.extend(rows[61:], copy=False)  # later rows are always copied
    assert_same_rows(kept[:60], again[:60])
    assert_same_rows(kept[61:], again[61:])
    assert_same_rows(rows, again)  # what it was given is as before


@each_kind
def test_a_restored_log_is_the_same_and_grows_alike(kind: str) -> None:
    rows, log, restored = batch(kind), new_log(kind), new_log(kind)
    log.extend(rows[:70])
    state = {name: array.copy() for name, array in log.state().items()}
    restored.restore(state)
    for each in (log, restored):
        each.extend(rows[70:])
        assert_same_rows(each.columns, rows)
    empty = new_log(kind)
    empty.restore(new_log(kind).state())
    assert len(empty) == len(empty.columns.contexts) == 0


@each_kind
def test_a_mapped_log_is_the_same_and_its_files_are_there(kind: str, tmp_path: Path) -> None:
    rows, mapped = batch(kind), new_log(kind, folder=tmp_path / "log")
    reader, raw = reader_of(kind), raw_contexts(kind, 100)
    mapped.extend(rows[:70])
    for t in range(70, 100):
        mapped.append(reader.entry(raw[t]), rows.actions[t], rows.rewards[t], rows.propensities[t])
    assert_same_rows(mapped.columns, rows)
    names = {"actions", "rewards", "propensities", "ids", "values"} | ({"indices"} if "sparse" in kind else set())
    assert {path.stem for path in (tmp_path / "log").glob("*.bin")} == names
    on_disk = np.fromfile(tmp_path / "log" / "rewards.bin")[:100]
    np.testing.assert_array_equal(on_disk, rows.rewards)
    values = arrays_of(mapped.columns.contexts)[0].reshape(-1)
    np.testing.assert_array_equal(np.fromfile(tmp_path / "log" / "values.bin", np.float32)[: len(values)], values)


def test_reserved_rows_are_not_moved() -> None:
    rows, log = batch("dense"), new_log("dense")
    log.reserve(100)
    log.extend(rows[:1])
    first = log.columns
    log.extend(rows[1:])
    assert np.shares_memory(first.contexts, log.columns.contexts)
    assert len(log.contexts.values) == 100


@pytest.mark.parametrize("folder", [False, True])
def test_appending_moves_each_row_a_bounded_number_of_times(folder: bool, tmp_path: Path) -> None:
    log = Log(3, n_actions=4, folder=tmp_path if folder else None)
    moved, capacity = 0, len(log._rewards)
    for t in range(2000):
        log.append(np.full(3, t, np.float32), t % 4, 0.5, 1.0)
        if len(log._rewards) != capacity:
            moved, capacity = moved + capacity, len(log._rewards)
    assert moved < 2 * 2000
    assert log.tally(len(log)).plays.tolist() == [500] * 4
    np.testing.assert_array_equal(log.columns.contexts[:, 1], np.arange(2000))


def test_rewards_are_kept_and_losses_are_of_the_range() -> None:
    log = Log(1, n_actions=5, reward_range=(-1.0, 4.0))
    log.append(np.ones(1), 0, -1.0, 0.5)
    log.append(np.ones(1), 1, 3.0, 0.25)
    np.testing.assert_allclose(log.columns.rewards, [-1.0, 3.0])
    np.testing.assert_allclose(log.columns.losses, [0.0, -0.8])
    assert log.columns.n_actions == 5
    assert log.tally(len(log)).plays.tolist() == [1, 1, 0, 0, 0]


def test_real_valued_actions() -> None:
    log = Log(1, continuous=True)
    log.append(np.ones(1), 0.25, 0.5, 3.0)
    assert log.columns.continuous
    assert log.columns.actions.tolist() == [0.25]


@each_kind
def test_an_empty_log_of_the_same_kind(kind: str) -> None:
    log = new_log(kind, n_actions=4)
    log.extend(batch(kind))
    twin = log.empty()
    assert len(twin) == 0
    assert (twin.n_actions, twin.reward_range, twin.width) == (log.n_actions, log.reward_range, log.width)
    twin.extend(log.columns)
    assert_same_rows(twin.columns, log.columns)


def test_a_tally_is_the_same_however_rows_are_divided() -> None:
    generator = np.random.default_rng(0)
    log = Log(1, n_actions=3, reward_range=(-1.0, 3.0))
    actions, rewards = generator.integers(3, size=200), generator.uniform(-1, 3, 200)
    log.extend_columns(np.zeros((200, 1)), actions, rewards, np.ones(200))
    found = log.tally(200)
    np.testing.assert_allclose(found.rewards, np.bincount(actions, (rewards + 1) / 4, 3))
    assert found.plays.tolist() == np.bincount(actions).tolist()
    parts = Tally.nothing(3)
    for first in range(0, 200, 7):
        rows = log[first : first + 7]
        parts = parts.with_rows(rows.actions, rows.losses)
    assert parts.rewards.tolist() == found.rewards.tolist()
    early = log.tally(50)  # fewer rows than counted
    np.testing.assert_array_equal(early.plays, np.bincount(actions[:50], minlength=3))
    np.testing.assert_allclose(found.since(early).rewards, np.bincount(actions[50:], (rewards[50:] + 1) / 4, 3))


@each_kind
def test_row_weights_are_kept_and_rows_without_count_once(kind: str) -> None:
    rows, raw, reader = batch(kind), raw_contexts(kind, 100), reader_of(kind)
    weighted, log, restored = rows[40:70].changed(row_weights=np.linspace(1, 5, 30)), new_log(kind), new_log(kind)
    log.extend(rows[:40])
    assert log.columns.row_weights is None
    log.extend(weighted)
    for t in range(70, 75):
        log.append(reader.entry(raw[t]), rows.actions[t], rows.rewards[t], rows.propensities[t])
    restored.restore({name: array.copy() for name, array in log.state().items()})
    for each in (log, restored):
        each.extend(rows[75:])
        assert_same_rows(each.columns, rows)
        expected = np.concatenate([np.ones(40), np.linspace(1, 5, 30), np.ones(30)])
        np.testing.assert_array_equal(each.columns.row_weights, expected)
        np.testing.assert_array_equal(each[42:80].row_weights, expected[42:80])
