"""Bad input: a clear error that says where, what and what instead; and nothing has changed."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl.storage import UnreadableFile

X, A, R, Q = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0, 1, 2], [0.0, 0.5, 1.0], [0.5, 0.25, 1.0]


def discrete(**settings: Any) -> o2pl.O2PL:
    return o2pl.O2PL(3, random_state=0, **settings).partial_fit(X, A, R, Q)


LEARNERS = {
    "union": lambda: discrete(),
    "replay": lambda: discrete(policy="linear", schedule="replay"),
    "thresholds": lambda: o2pl.O2PL(
        policy=o2pl.policies.FiniteClass(np.full((2, 9, 3), 1 / 3)), random_state=0
    ).partial_fit([[1.0], [2.0]], [0, 1], [0, 1], [0.5, 0.5]),
}

BATCHES = {
    "NaN": ({"X": [[1.0, 2.0], [np.nan, 4.0], [5.0, 6.0]]}, "context, row 1, feature 0: found nan, expected a finite"),
    "infinite": ({"X": [[1.0, np.inf], [3.0, 4.0], [5.0, 6.0]]}, "context, row 0, feature 1: found inf"),
    "too large for float32": ({"X": [[1.0, 1e39], [3.0, 4.0], [5.0, 6.0]]}, r"found 1e\+39.*below 3e38"),
    "wrong width": ({"X": [[1.0], [3.0], [5.0]]}, r"contexts: found shape \(3, 1\), expected \(rows, 2\)"),
    "flat": ({"X": [1.0, 3.0, 5.0]}, r"contexts: found shape \(3,\)"),
    "ragged": ({"X": [[1.0, 2.0], [3.0], [5.0, 6.0]]}, "contexts: expected numbers"),
    "action too large": ({"A": [0, 3, 2]}, "action, row 1: found 3, expected an integer from 0 to 2"),
    "action negative": ({"A": [0, 1, -1]}, "action, row 2: found -1"),
    "action not whole": ({"A": [0, 1.5, 2]}, "actions: found float64 values .* expected integers"),
    "action a word": ({"A": ["a", "b", "c"]}, "actions: found"),
    "reward too large": ({"R": [0.0, 1.5, 1.0]}, r"reward, row 1: found 1.5, expected a number in \[0, 1\]"),
    "reward NaN": ({"R": [0.0, np.nan, 1.0]}, "reward, row 1: found nan"),
    "propensity 0": ({"Q": [0.5, 0.0, 1.0]}, r"propensity, row 1: found 0.0, expected a probability in \(0, 1\]"),
    "propensity 2": ({"Q": [0.5, 0.5, 2.0]}, "propensity, row 2: found 2.0"),
    "propensity NaN": ({"Q": [np.nan, 0.5, 1.0]}, "propensity, row 0: found nan"),
    "lengths": ({"R": [0.0, 1.0]}, "columns differ in length: .*'rewards': 2"),
    "number of actions": ({"A": [0, 1]}, r"actions: found 2, expected one per context \(3\)"),
}


CASES = [(name, method) for name in BATCHES for method in ("partial_fit", "fit", "score")]
for name in ("wrong width", "action a word"):  # fit forgets, and may begin again with another width, or with names
    CASES.remove((name, "fit"))


@pytest.mark.parametrize(("name", "method"), CASES)
def test_a_bad_batch_is_refused_whole(name: str, method: str, tmp_path: Path) -> None:
    change, message = BATCHES[name]
    columns = {"X": X, "A": A, "R": R, "Q": Q} | change
    learner = discrete()
    learner.save(tmp_path / "before")
    with pytest.raises(o2pl.InvalidInput, match=message):
        getattr(learner, method)(*columns.values())
    learner.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


ONES = {
    "NaN": (([np.nan, 2.0], 1, 0.5, 0.5), "context, row 0, feature 0: found nan"),
    "width": (([1.0, 2.0, 3.0], 1, 0.5, 0.5), r"context: found shape \(3,\), expected \(2,\)"),
    "matrix": (([[1.0, 2.0]], 1, 0.5, 0.5), r"context: found shape \(1, 2\)"),
    "words": ((["a", "b"], 1, 0.5, 0.5), "context: expected numbers"),
    "action": (([1.0, 2.0], 3, 0.5, 0.5), "action, row 0: found 3, expected an integer from 0 to 2"),
    "half an action": (([1.0, 2.0], 0.5, 0.5, 0.5), "expected integers"),
    "reward": (([1.0, 2.0], 1, -0.1, 0.5), r"reward, row 0: found -0.1, expected a number in \[0, 1\]"),
    "reward NaN": (([1.0, 2.0], 1, np.nan, 0.5), "reward, row 0: found nan"),
    "propensity": (([1.0, 2.0], 1, 0.5, 0.0), r"propensity, row 0: found 0.0, expected a probability in \(0, 1\]"),
    "propensity NaN": (([1.0, 2.0], 1, 0.5, np.nan), "propensity, row 0: found nan"),
}


@pytest.mark.parametrize("learner", ["union", "replay"])
@pytest.mark.parametrize("name", ONES)
def test_a_bad_interaction_is_refused(name: str, learner: str, tmp_path: Path) -> None:
    interaction, message = ONES[name]
    held = LEARNERS[learner]()
    held.save(tmp_path / "before")
    with pytest.raises(o2pl.InvalidInput, match=message):
        held.update(*interaction)
    if name in ("NaN", "width", "matrix", "words"):
        with pytest.raises(o2pl.InvalidInput, match=message):
            held.act(interaction[0])
    held.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


def test_a_bad_first_interaction_begins_nothing() -> None:
    learner = o2pl.O2PL(3)
    for bad in (([1.0], 3, 0.5, 0.5), ([1.0], 0, 2.0, 0.5), ([1.0], 0, 0.5, 0.0), ([np.nan], 0, 0.5, 0.5)):
        with pytest.raises(o2pl.InvalidInput):
            learner.update(*bad)
    learner.update([1.0, 2.0], 0, 0.5, 0.5)  # another width than the refused ones
    assert learner.n_features_in_ == 2


def test_a_context_outside_a_finite_class_changes_nothing(tmp_path: Path) -> None:
    held = LEARNERS["thresholds"]()
    held.save(tmp_path / "before")
    with pytest.raises(ValueError, match="expected an integer from 0 to 8"):
        held.update([9.0], 0, 1.0, 0.5)
    with pytest.raises(ValueError, match="expected an integer from 0 to 8"):
        held.partial_fit([[1.0], [0.5]], [0, 0], [1.0, 1.0], [0.5, 0.5])
    held.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


def test_continuous_actions() -> None:
    held = o2pl.GaussianO2PL(random_state=0).partial_fit([[1.0]], [0.2], [0.5], [3.0])  # a density may exceed 1
    with pytest.raises(o2pl.InvalidInput, match="action, row 0: found nan, expected a finite number"):
        held.update([1.0], np.nan, 0.5, 0.5)
    for density in (0.0, np.inf, np.nan):
        with pytest.raises(o2pl.InvalidInput, match=r"propensity, row 0: found .* expected a finite density > 0"):
            held.update([1.0], 0.1, 0.5, density)
        with pytest.raises(o2pl.InvalidInput, match=r"propensity, row 1: found .* expected a finite density > 0"):
            held.partial_fit([[1.0], [1.0]], [0.1, 0.1], [0.5, 0.5], [0.5, density])
    assert len(held.log_.actions) == 1


SETTINGS = {
    "penalty": -1,
    "clip": 0.5,
    "baseline": "median",
    "control": 0,
    "l2": np.nan,
    "p": 2,
    "beta": 0,
    "delta": 1,
    "sharpness": 0,
    "exploration": 1.5,
    "policy": "deep",
    "schedule": "never",
    "reward_range": (1, 0),
    "n_actions": 0,
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_bad_setting_is_named_at_the_first_use(name: str) -> None:
    learner = o2pl.O2PL(**({"n_actions": 3} | {name: SETTINGS[name]}))
    with pytest.raises(o2pl.InvalidInput, match=f"^{name}: found .*expected"):
        learner.act([1.0])
    with pytest.raises(o2pl.InvalidInput, match=f"^{name}: found .*expected"):
        learner.fit(X, A, R, Q)


def test_files_that_are_not_ours_or_not_whole(tmp_path: Path) -> None:
    path = tmp_path / "learner"
    discrete().save(path)
    whole = path.read_bytes()
    for cut in (0, 10, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:cut])
        with pytest.raises(UnreadableFile, match="not a saved learner, or cut short"):
            o2pl.load(path)
    damaged = bytearray(whole)
    damaged[whole.rindex(b"\x93NUMPY") + 130] ^= 0xFF  # in the numbers of an array
    path.write_bytes(bytes(damaged))
    with pytest.raises(UnreadableFile):
        o2pl.load(path)
    for change, message in (
        ({"version": 999}, "found file version 999; this is o2pl"),
        ({"format": "other"}, "found format 'other'"),
        ({"class": "NoSuchLearner"}, "found a 'NoSuchLearner'"),
    ):
        with zipfile.ZipFile(path, "w") as archive:
            header = {"format": "o2pl", "version": 2, "class": "O2PL", "params": {}} | change
            archive.writestr("header.json", json.dumps(header))
        with pytest.raises(UnreadableFile, match=message):
            o2pl.load(path)


def test_saving_over_a_file_leaves_the_old_one_when_it_fails(tmp_path: Path) -> None:
    path = tmp_path / "learner"
    discrete().save(path)
    before = path.read_bytes()
    with pytest.raises(o2pl.InvalidInput, match="cannot be saved"):
        o2pl.O2PL(3, random_state=object()).save(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["learner"]


def test_asking_before_there_is_anything_to_tell() -> None:
    with pytest.raises(AttributeError, match="has seen no data"):
        _ = o2pl.O2PL(3).log_
    with pytest.raises(o2pl.InvalidInput, match="fit: found no rows"):
        o2pl.O2PL(3).fit(np.empty((0, 2)), [], [], [])
    learner = discrete()
    learner.partial_fit(np.empty((0, 2)), np.empty(0, int), [], [])
    assert len(learner.log_.actions) == 3


# -- several processes


MERGED: dict[str, Any] = {
    "dense": (lambda: o2pl.Bandit(actions=["a", "b", "c"], random_state=0), lambda g: g.normal(size=3)),
    "sets": (
        lambda: o2pl.Bandit(policy="actionwise", random_state=0),
        lambda g: g.normal(size=(int(g.integers(2, 5)), 2)),
    ),
    "hashed": (
        lambda: o2pl.O2PL(3, policy="hashed", random_state=0),
        lambda g: {"id": f"u{g.integers(9)}", "age": 3.0},
    ),
    "named": (lambda: o2pl.Bandit(3, random_state=0), lambda g: {"city": "Rome" if g.random() < 0.5 else "Oslo"}),
    "number": (lambda: o2pl.GaussianO2PL(random_state=0), lambda g: g.normal(size=2)),
}


def told(learner: Any, context: Any, rounds: int, seed: int) -> list[str]:
    generator, ids = np.random.default_rng(seed), []
    for _ in range(rounds):
        decision = learner.act(context(generator))
        learner.update(decision, float(generator.random()))
        ids.append(decision.id)
    return ids


@pytest.mark.parametrize("name", MERGED)
def test_copies_that_went_on_are_merged_and_nothing_twice(name: str, tmp_path: Path) -> None:
    make, context = MERGED[name]
    writer = make()
    common = told(writer, context, 30, 0)
    early = writer.act(context(np.random.default_rng(6)))  # told to one copy, after it was copied
    writer.save(tmp_path / "common")
    first, second = o2pl.load(tmp_path / "common"), o2pl.load(tmp_path / "common")
    ids = [common, told(first, context, 20, 1), told(second, context, 25, 2), told(writer, context, 5, 3)]
    late = first.act(context(np.random.default_rng(4)))
    first.update(early, 1.0)
    ids[1].append(early.id)
    second.save(tmp_path / "second")
    for _ in range(2):  # again changes nothing
        writer.merge(first).merge(tmp_path / "second")
    assert writer.log_.event_ids == [*ids[0], *ids[3], *ids[1], *ids[2]]
    rows = {one: k for k, one in enumerate(first.log_.event_ids)}
    for row, one in enumerate(writer.log_.event_ids):
        if one in rows:
            assert writer.log_.rewards[row] == first.log_.rewards[rows[one]]
            assert writer.log_.propensities[row] == first.log_.propensities[rows[one]]
    with pytest.raises(o2pl.InvalidInput, match="again; its reward is"):
        writer.update(early, 1.0)
    writer.update(late.id, 1.0)  # of a decision that waits there
    first.update(late, 1.0)
    assert len(writer.merge(first).log_) == 82
    assert writer._engine.learned >= 80  # it has learned from them
    empty = make().merge(first)
    assert empty.log_.event_ids == first.log_.event_ids
    assert empty.act(context(np.random.default_rng(5))).propensity > 0


def test_what_cannot_be_merged() -> None:
    learner = discrete()
    with pytest.raises(o2pl.InvalidInput, match="merge: found a int, expected a learner"):
        learner.merge(3)
    with pytest.raises(o2pl.InvalidInput, match="merge: found a log without ids"):
        learner.merge(o2pl.Interactions(X, A, R, Q))
    rome = o2pl.Bandit(2, policy="quadratic").update({"city": "Rome"}, 0, 1.0, 0.5)
    oslo = o2pl.Bandit(2, policy="quadratic").update({"city": "Oslo"}, 0, 1.0, 0.5)
    with pytest.raises(o2pl.InvalidInput, match="merge: found a learner that began with other columns or strings"):
        rome.merge(oslo)
    log = o2pl.Interactions(X, A, R, Q, ids=["a", "b", "c"])
    learner.partial_fit(log)
    with pytest.raises(
        o2pl.InvalidInput, match=r"partial_fit: found decision .* again; .* merge\(log\) adds only new rows"
    ):
        learner.partial_fit(log[1:])
    before = len(learner.log_)
    learner.merge(o2pl.Interactions(X, A, R, Q, ids=["c", "d", "d"]))
    assert len(learner.log_) == before + 1
