"""Many decisions and rewards in one call: the same as one call each."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.engine.test_pending import same_log

import o2pl
from o2pl import InvalidInput
from o2pl.engine import pending

G = np.random.default_rng(5)
N = 400
X = G.normal(size=(N, 3)).astype(np.float32)
ITEMS = [(X[row], G.normal(size=(2 + row % 3, 2))) for row in range(N)]
WORDS = [{"user": f"u{k}", "age": float(k), "likes": ["a", "b"][: k % 3]} for k in G.integers(5, size=N).tolist()]
PAGES = [({"user": f"u{k % 3}"}, [{"kind": kind} for kind in "abc"[: 2 + k % 2]]) for k in range(N)]
SHOPS = [o2pl.Offer(user, items, ids=[f"i{k}" for k in range(len(items))]) for user, items in ITEMS]
FRAME = pa.table({"a": X[:, 0], "b": X[:, 1], "word": [["x", "y", None][k % 3] for k in range(N)]})
KINDS: dict[str, tuple[Any, Any]] = {
    "bandit": (lambda: o2pl.Bandit(3, random_state=0), X),
    "paper": (lambda: o2pl.O2PL(3, exploration=0.1, random_state=0), X),
    "names": (lambda: o2pl.Bandit(actions=["yes", "no", "later"], random_state=0), X),
    "frame": (lambda: o2pl.Bandit(3, random_state=0), FRAME),
    "words": (lambda: o2pl.Bandit(3, random_state=0, policy="hashed"), WORDS),
    "users and items": (lambda: o2pl.Bandit(random_state=0), ITEMS),
    "items with ids": (lambda: o2pl.Bandit(random_state=0), SHOPS),
    "pages": (lambda: o2pl.Bandit(random_state=0), PAGES),
    "number": (lambda: o2pl.ContinuousBandit(bounds=(0, 1), random_state=0), X),
    "density": (lambda: o2pl.GaussianO2PL(random_state=0), X),
}


def rewards_of(actions: Any) -> Any:
    return np.array([hash(str(action)) % 7 / 7 if isinstance(action, str) else action % 1 for action in actions])


def rows_of(contexts: Any, rows: slice) -> Any:
    return contexts.slice(rows.start, rows.stop - rows.start) if isinstance(contexts, pa.Table) else contexts[rows]


def one_by_one(contexts: Any) -> list[Any]:
    return contexts.to_pylist() if isinstance(contexts, pa.Table) else list(contexts)


@pytest.mark.parametrize("name", KINDS)
def test_as_one_call_each(name: str, tmp_path: Path) -> None:
    """The same decisions, log and parameters, with learning in the middle of a batch, and after a file."""
    make, contexts = KINDS[name]
    together, apart = make(), make()
    if name == "frame":  # the first batch decides what columns are
        for learner in (together, apart):
            learner.partial_fit(contexts, np.arange(N) % 3, np.arange(N) % 2, np.full(N, 1 / 3))
    for rows in (slice(0, 150), slice(150, 310), slice(310, N)):
        some = rows_of(contexts, rows)
        decisions = together.act_many(some)
        told = [apart.act(context) for context in one_by_one(some)]
        assert [(one.action, one.propensity) for one in decisions] == [tuple(one) for one in told]
        assert decisions.actions.tolist() == [one.action for one in told]
        paid = rewards_of(decisions.actions)
        if rows.start == 150:
            together.save(tmp_path / "waiting")
            together = o2pl.load(tmp_path / "waiting")
        together.update_many(decisions if rows.start < 310 else decisions.ids, paid)
        for decision, reward in zip(told, paid.tolist(), strict=True):
            apart.update(decision, reward)
    same_log(together, apart)
    assert together.effort_ == apart.effort_
    assert together.effort_[0] > 1
    again, other = together.act_many(rows_of(contexts, slice(0, 9))), apart.act_many(rows_of(contexts, slice(0, 9)))
    np.testing.assert_array_equal(again.propensities, other.propensities)


def test_rewards_of_some_and_later() -> None:
    """Rewards that are not known, parts in any order, single ids, and ids of several calls."""
    learner = o2pl.Bandit(3, random_state=0)
    first, second = learner.act_many(X[:50]), learner.act_many(X[50:90])
    single = learner.act(X[90])
    known = np.where(np.arange(50) < 20, 1.0, np.nan)
    learner.update_many(first, known)
    assert len(learner.log_) == 20
    learner.update_many(first[30:40], np.zeros(10))
    learner.update_many(second[np.array([3, 1])], [1.0, 0.5])
    assert learner.log_.rewards[-2:].tolist() == [1.0, 0.5]
    np.testing.assert_array_equal(learner.log_.contexts[-2:], X[[53, 51]])
    learner.update(first.ids[45], 1.0)
    learner.update(first[46], 0.0)
    learner.update_many([second.ids[9], single.id, first.ids[47]], [0.25, np.nan, 0.75])
    assert learner.log_.rewards[-4:].tolist() == [1.0, 0.0, 0.25, 0.75]
    learner.update(single, 1.0)
    np.testing.assert_array_equal(learner.log_.contexts[-1], X[90])
    for again in (first.ids[45], first.ids[3], second[3]):
        with pytest.raises(InvalidInput, match="again; its reward is in row"):
            learner.update(again, 1.0)


def test_what_cannot_be_told_changes_nothing() -> None:
    learner = o2pl.Bandit(3, reward_range=(0, 1), random_state=0)
    with pytest.raises(InvalidInput, match="has seen no data"):
        learner.update_many(["0" * 16], [1.0])
    decisions = learner.act_many(X[:20])
    learner.update_many(decisions[:2], [1.0, 1.0])
    for given, rewards, said in (
        (decisions, np.ones(19), "found 19 for 20 decisions"),
        (decisions[2:4], [0.0, 7.0], "reward, row 1: found 7.0"),
        (decisions[2:4].ids, [0.0, 7.0], "reward, row 1: found 7.0"),
        (decisions, np.ones(20), "update_many, row 0: found decision .* again; its reward is in row 0"),
        (decisions[np.array([4, 5, 4])], np.ones(3), "in row 0 and in row 2, expected each decision once"),
        ([decisions.ids[5]] * 2, np.ones(2), "in row 0 and in row 1"),
        ([decisions.ids[5], decisions.ids[0]], np.ones(2), "again"),
        ([decisions.ids[5], "0" * 16], np.ones(2), "found no decision '0000000000000000'"),
        (decisions.ids[5:7], np.ones(3), "differ in length"),
    ):
        with pytest.raises(InvalidInput, match=said):
            learner.update_many(given, rewards)
        assert len(learner.log_) == 2
    learner.update_many(decisions[2:], np.ones(18))
    assert len(learner.log_) == 20


def test_a_table_of_decisions() -> None:
    learner = o2pl.Bandit(actions=["a", "b"], random_state=0)
    decisions = learner.act_many(X[:6])
    assert len(decisions) == 6
    assert set(decisions.columns) == {"id", "action", "propensity"}
    assert decisions.columns["id"] == [one.id for one in decisions]
    assert repr(decisions).startswith("Decisions(6: ")
    assert isinstance(decisions[0].action, str)
    assert decisions[-1].id == decisions.ids[5]
    np.testing.assert_array_equal(decisions[2].context, X[2])
    with pytest.raises(IndexError):
        decisions[6]
    frozen = learner.snapshot().act_many(X[:6])
    assert set(frozen.actions.tolist()) <= {"a", "b"}
    learner.update_many(frozen, np.ones(6))  # decided elsewhere
    assert len(learner.log_) == 6


def test_what_is_forgotten_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "BATCHED", 100)
    learner = o2pl.Bandit(3, random_state=0)
    first = learner.act_many(X[:60])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner.act_many(X[60:100])
    with pytest.warns(UserWarning, match="101 decisions wait for a reward; the oldest batch of 60 is forgotten"):
        learner.act_many(X[100:101])
    with pytest.raises(InvalidInput, match="found no decision"):
        learner.update(first.ids[0], 1.0)
    learner.update_many(first, np.ones(60))
    assert len(learner.log_) == 60


def test_waiting_batches_go_to_copies(tmp_path: Path) -> None:
    """A copy that decided in another process; its ids are known after merge."""
    learner = o2pl.Bandit(3, random_state=0).update([0.0, 0.0, 0.0], 0, 1.0, 0.5)
    learner.save(tmp_path / "first")
    other = o2pl.load(tmp_path / "first", worker=1)
    decisions = other.act_many(X[:30])
    other.update_many(decisions[:10], np.ones(10))
    learner.merge(other)
    assert len(learner.log_) == 11
    learner.update_many(decisions.ids[10:], np.zeros(20))
    assert len(learner.log_) == 31
