"""Rewards by decision: late, out of order, once, after a file, from another process."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl.engine import pending as waiting

G = np.random.default_rng(0)
X = G.normal(size=(40, 3))
ITEMS = [G.normal(size=(n, 2)) for n in (2, 3, 4, 5) * 10]
WORDS = [{"user": {"id": f"u{k % 5}"}, "age": float(k), "likes": ["a", "b"][: k % 3]} for k in range(40)]
PAGES = [({"user": f"u{k % 3}"}, [{"kind": kind} for kind in "abc"[: 2 + k % 2]]) for k in range(40)]
KINDS: dict[str, tuple[Any, Any]] = {
    "bandit": (lambda: o2pl.Bandit(3, random_state=0), list(X)),
    "float32": (lambda: o2pl.Bandit(3, random_state=0), list(X.astype(np.float32))),
    "lists": (lambda: o2pl.O2PL(3, random_state=0), X.tolist()),
    "named": (lambda: o2pl.Bandit(3, random_state=0), [dict(zip("abc", x, strict=True)) for x in X.tolist()]),
    "actionwise": (lambda: o2pl.Bandit(policy="actionwise", random_state=0), ITEMS),
    "hashed": (lambda: o2pl.Bandit(3, policy="hashed", random_state=0), WORDS),
    "pages": (lambda: o2pl.Bandit(policy="hashed actionwise", random_state=0), PAGES),
    "users and items": (lambda: o2pl.Bandit(random_state=0), list(zip(X, ITEMS, strict=True))),
    "number": (lambda: o2pl.GaussianO2PL(random_state=0), list(X)),
}


def same_log(one: Any, other: Any) -> None:
    for name in ("actions", "rewards", "propensities"):
        np.testing.assert_array_equal(getattr(one.log_, name), getattr(other.log_, name))
    first, second = one.log_.contexts, other.log_.contexts
    pairs = [(first, second)]
    if hasattr(first, "offsets"):
        pairs = [(first.offsets, second.offsets)]
        inner = (first.values, second.values) if not hasattr(first, "indices") else (first, second)
        if hasattr(inner[0], "indices"):
            pairs += [(inner[0].indices, inner[1].indices), (inner[0].values, inner[1].values)]
        else:
            pairs.append(inner)
    for left, right in pairs:
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("name", KINDS)
def test_by_decision_as_by_its_parts(name: str, tmp_path: Path) -> None:
    """Late, out of order, by id, and after a file in between: the same log as if all had been told in parts."""
    make, contexts = KINDS[name]
    by_decision, by_parts = make(), make()
    for start in range(0, 40, 8):
        decisions = [by_decision.act(context) for context in contexts[start : start + 8]]
        told = [by_parts.act(context) for context in contexts[start : start + 8]]
        assert decisions == told
        if start == 16:  # another process goes on
            by_decision.save(tmp_path / "half")
            by_decision, decisions = o2pl.load(tmp_path / "half"), pickle.loads(pickle.dumps(decisions))
        for k in (5, 0, 7, 2, 1, 6):  # two never hear of theirs
            reward = k / 8
            if k % 3 == 0:
                by_decision.update(decisions[k].id, reward)
            else:
                by_decision.update(decisions[k], reward=reward)
            by_parts.update(contexts[start + k], told[k].action, reward, told[k].propensity)
    same_log(by_decision, by_parts)
    assert set(by_decision.log_.event_ids) >= {decisions[5].id, decisions[1].id}


def test_a_context_may_be_written_over() -> None:
    buffer, learner = np.zeros(3), o2pl.Bandit(2, random_state=0)
    decisions = []
    for value in (1.0, 2.0, 3.0):
        buffer[:] = value
        decisions.append(learner.act(buffer))
    for decision in reversed(decisions):
        learner.update(decision, 1.0)
    assert learner.log_.contexts[:, 0].tolist() == [3.0, 2.0, 1.0]


def test_each_decision_once() -> None:
    learner = o2pl.Bandit(3, random_state=0)
    first, second = learner.act(X[0]), learner.act(X[1])
    learner.update(first, 1.0)
    for again in (first, first.id, pickle.loads(pickle.dumps(first))):
        with pytest.raises(o2pl.InvalidInput, match=f"found decision '{first.id}' again; its reward is in row 0"):
            learner.update(again, 0.0)
    learner.update(X[1], second.action, 1.0, second.propensity)
    with pytest.raises(o2pl.InvalidInput, match="again; its reward is in row 1"):
        learner.update(second, 1.0)
    assert len(learner.log_) == 2


def test_parts_that_went_through_json_are_the_decisions() -> None:
    """They are compared by value: another float object with the same propensity is the same decision."""
    learner = o2pl.Bandit(3, random_state=0)
    decision = learner.act(X[0])
    told = json.loads(json.dumps({"x": X[0].tolist(), "action": decision.action, "p": decision.propensity}))
    learner.update(told["x"], told["action"], 1.0, told["p"])
    with pytest.raises(o2pl.InvalidInput, match="again; its reward is in row 0"):
        learner.update(decision, 1.0)
    assert learner.log_.event_ids == [decision.id]


def test_parts_of_another_row_are_a_row_of_their_own() -> None:
    learner = o2pl.Bandit(3, random_state=0)
    decision = learner.act(X[0])
    for context, action, propensity in (
        (X[1], decision.action, decision.propensity),
        (X[0], (decision.action + 1) % 3, decision.propensity),
        (X[0], decision.action, 0.5),
    ):
        learner.update(context, action, 1.0, propensity)
    learner.update(decision, 1.0)
    assert len(learner.log_) == 4


def test_what_cannot_be_told() -> None:
    learner = o2pl.Bandit(3, reward_range=(0, 1), random_state=0)
    with pytest.raises(o2pl.InvalidInput, match="found no decision 'x' that waits"):
        learner.update("x", 1.0)
    decision = learner.act(X[0])
    for call, said in (
        (lambda: learner.update("0123456789abcdef", 1.0), "found no decision '0123456789abcdef' that waits"),
        (lambda: learner.update(o2pl.Decision(1, 0.5), 1.0), "found no decision '.*' that waits"),
        (lambda: learner.update(X[0], 1.0), r"found ndarray .* expected update\(decision, reward\)"),
        (lambda: learner.update(decision), r"found Decision and no reward"),
        (lambda: learner.update(decision, 2.0), r"reward, row 0: found 2.0, expected a number in \[0, 1\]"),
        (lambda: learner.update(decision, "much"), "reward: expected numbers"),
        (lambda: learner.update(X[0], "a", 1.0, 0.5), "actions: found"),
    ):
        with pytest.raises(o2pl.InvalidInput, match=said):
            call()
    learner.update(decision, 1.0)  # it still waits
    assert len(learner.log_) == 1


def test_the_contexts_of_old_decisions_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PENDING", 10)
    learner = o2pl.Bandit(3, random_state=0)
    old = learner.act(X[0])
    with pytest.warns(UserWarning, match=r"act: 21 decisions waited for a reward; the oldest 11 are forgotten"):
        decisions = [learner.act(x) for x in np.tile(X[1:], (3, 1))]
    last = decisions[-1]
    assert learner._engine is not None
    assert len(learner._engine.pending) <= 21
    with pytest.raises(o2pl.InvalidInput, match="for older ones call"):
        learner.update(old.id, 1.0)
    learner.update(old, 1.0)  # it brings its context itself
    learner.update(last.id, 1.0)
    with pytest.raises(o2pl.InvalidInput, match="again"):
        learner.update(old, 1.0)


def test_a_published_policy_decides_and_the_learner_hears() -> None:
    learner = o2pl.Bandit(3, random_state=0)
    learner.act(X[0])
    decision = pickle.loads(pickle.dumps(learner.snapshot().act(X[1])))  # in another process
    learner.update(decision, 1.0)
    assert learner.log_.event_ids == [decision.id]
    np.testing.assert_array_equal(learner.log_.contexts[0], X[1].astype(np.float32))
    fresh = o2pl.Bandit(3, random_state=0).update(decision, 1.0)  # one that has not begun
    assert fresh.log_.event_ids == [decision.id]


def test_told_by_its_parts_a_decision_waits_no_longer_whatever_came_in_between() -> None:
    learner = o2pl.Bandit(3, random_state=0)
    first, second = learner.act(X[0]), learner.act(X[1])
    learner.update(X[1], second.action, 1.0, second.propensity)  # the newest
    assert [each.number for each in learner._engine.pending] == [first.number]
    third = learner.act(X[2])
    assert len(learner._engine.pending) == 2  # which moves the newest to those that are looked up
    learner.update(X[2], third.action, 0.0, third.propensity)
    assert [each.number for each in learner._engine.pending] == [first.number]
    learner.update(first, 1.0)
    assert learner.log_.ids.tolist() == [second.number, third.number, first.number]
    assert not len(learner._engine.pending)


def test_a_dictionary_that_changes_after_the_decision_is_kept_and_learned_as_it_was() -> None:
    learner, context = o2pl.Bandit(3, policy="hashed", random_state=0), {"user": {"id": "a"}, "age": 3.0}
    decision = learner.act(context)
    context["user"]["id"] = "b"
    assert decision.context == {"user": {"id": "a"}, "age": 3.0}
    learner.update(decision, 1.0)
    decision = learner.act(context)
    context["user"]["id"] = "a"
    learner.update(context, *decision[:1], 1.0, decision.propensity)  # as it is now
    rows = learner.log_.contexts
    assert rows.indices[: rows.offsets[1]].tolist() == rows.indices[rows.offsets[1] :].tolist()
