"""`forget`: a learner is as if it had never seen what it forgets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl.errors import NothingLearned


def contexts_of(kind: str, n: int) -> list[Any]:
    generator = np.random.default_rng(0)
    if kind == "dense":
        return list(generator.normal(size=(n, 3)))
    if kind == "words":
        return [{"user": {"id": f"u{k % 7}"}, "hour": str(k % 3)} for k in range(n)]
    return [(generator.normal(size=2), generator.normal(size=(4, 2))) for _ in range(n)]


def taught(learner: Any, kind: str, n: int = 300) -> Any:
    for t, context in enumerate(contexts_of(kind, n)):
        learner.update(learner.act(context), float(t % 7 == 0))
    return learner


def assert_same(one: Any, other: Any, contexts: list[Any]) -> None:
    for context in contexts[:50]:
        np.testing.assert_allclose(
            one.snapshot().predict_proba([context]), other.snapshot().predict_proba([context]), rtol=1e-12
        )


@pytest.mark.parametrize("kind", ["dense", "words", "items"])
@pytest.mark.parametrize("make", [o2pl.Bandit, o2pl.O2PL])
def test_what_was_learned_from_rows_goes_with_them(kind: str, make: Any, tmp_path: Path) -> None:
    n_actions = None if kind == "items" else 3
    learner, contexts = taught(make(n_actions, random_state=0), kind), contexts_of(kind, 300)
    waiting = learner.act(contexts[0])
    log = learner.log_
    gone = [log.event_ids[row] for row in range(0, 300, 7)]
    assert learner.forget(gone) == 43
    left = log[np.setdiff1d(np.arange(300), np.arange(0, 300, 7))]
    assert learner.log_.event_ids == left.event_ids
    never = make(n_actions, random_state=0).fit(left)  # as if it had only ever seen the others
    assert_same(learner, never, contexts)
    learner.save(tmp_path / "learner.o2pl")
    assert_same(o2pl.load(tmp_path / "learner.o2pl"), never, contexts)
    learner.update(waiting.id, 1.0)  # others wait as before
    with pytest.raises(o2pl.InvalidInput, match="found no decision"):
        learner.forget(gone)


def test_revenue_of_any_size() -> None:
    generator, learner = np.random.default_rng(0), o2pl.Bandit(2, random_state=0)
    for _ in range(400):
        decision = learner.act(generator.normal(size=2))
        learner.update(decision, generator.exponential(50) * (1 + decision.action))
    log = learner.log_
    largest = np.argsort(log.rewards)[-40:]
    learner.forget([log.event_ids[row] for row in largest])
    never = o2pl.Bandit(2, random_state=0).fit(log[np.setdiff1d(np.arange(400), largest)])
    assert_same(learner, never, list(generator.normal(size=(50, 2))))
    assert learner.log_.rewards.max() < log.rewards[largest].min()


def test_names_of_words_go_too(tmp_path: Path) -> None:
    learner = taught(o2pl.Bandit(2, random_state=0), "words", 70)
    mine = [name for name, row in zip(learner.log_.event_ids, range(70), strict=True) if row % 7 == 3]
    secret = learner.act({"user": {"id": "secret"}})
    assert learner.forget([*mine, secret]) == 11
    named = [str(name) for name in learner._engine.encoder.words.words().values()]
    assert not any("u3" in name or "secret" in name for name in named)
    learner.save(tmp_path / "learner.o2pl")
    for text in (b"u3", b"secret"):
        assert text not in (tmp_path / "learner.o2pl").read_bytes()
    with pytest.raises(o2pl.InvalidInput, match="waits for a reward"):
        learner.update(secret.id, 1.0)


def test_batches_single_decisions_and_all_of_them() -> None:
    learner = o2pl.Bandit(2, random_state=0)
    decisions = learner.act_many(np.zeros((10, 2)))
    learner.update_many(decisions[:5], np.ones(5))
    assert learner.forget(decisions[3:7]) == 4  # two are rows, two wait
    assert len(learner.log_) == 3
    assert learner.forget(decisions.ids[0]) == 1
    assert learner.forget(decisions) == 5
    assert len(learner.log_) == 0
    assert learner.act([0.0, 0.0]).propensity == 0.5  # as at the beginning
    with pytest.raises(NothingLearned):
        o2pl.Bandit(2).forget(["a"])


def test_a_log_with_ids_of_its_own() -> None:
    rows = o2pl.Interactions(
        np.eye(4), [0, 1, 0, 1], [1.0, 0.0, 1.0, 0.0], [0.5] * 4, ids=[f"order-{k}" for k in range(4)]
    )
    learner = o2pl.Bandit(2, random_state=0).fit(rows)
    assert learner.forget("order-2") == 1
    assert learner.log_.rewards.tolist() == [1.0, 0.0, 0.0]


def test_prices() -> None:
    shop = o2pl.ContinuousBandit(bounds=(5, 20), reward_range=(0, 20), random_state=0)
    for k in range(60):
        price = shop.act([float(k % 2)])
        shop.update(price, price.action if price.action < 12 else 0.0)
    assert shop.forget(shop.log_.event_ids[::2]) == 30
    assert len(shop.log_) == 30
    assert 5 < shop.act([0.0]).action < 20


def test_a_change_is_found_at_its_rows_now() -> None:
    generator, learner = np.random.default_rng(0), o2pl.Bandit(2, random_state=0)
    for t in range(2400):
        context = generator.normal(size=2)
        decision = learner.act(context)
        learner.update(decision, float(decision.action == (context[0] > 0) ^ (t >= 1200)))
    (before,) = learner.changes_
    learner.forget(learner.log_.event_ids[:400])
    assert learner.changes_ == [(before.row - 400, before.base - 400, before.evidence)]
    assert learner.predict([[2.0, 0.0], [-2.0, 0.0]]).tolist() == [0, 1]  # as it is since the change
