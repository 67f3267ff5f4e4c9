"""Rows that no member learns from any more are dropped; learning goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl import Bandit, Geometric, InvalidInput
from o2pl.engine.trimming import trim_rows

K = 3


def rows(n: int, seed: int) -> tuple[Any, ...]:
    g = np.random.default_rng(seed)
    contexts, actions = [{"likes": f"c{g.integers(K)}"} for _ in range(n)], g.integers(K, size=n)
    rewards = (g.random(n) < np.where(actions == [int(one["likes"][1]) for one in contexts], 0.8, 0.2)).astype(float)
    return contexts, actions, rewards, np.full(n, 1 / K)


def test_a_learner_goes_on_with_the_rows_that_are_left(tmp_path: Path) -> None:
    learner = Bandit(K, policy="hashed", schedule=Geometric(window=1300), changes=o2pl.Change(), random_state=0)
    learner.partial_fit(*rows(2000, 0))
    engine: Any = learner._engine
    before, params = learner.predict_proba([{"likes": "c1"}]), engine.members[0].params.copy()
    trim_rows(engine, 700)
    assert len(learner.log_) == 1300
    assert np.array_equal(engine.members[0].params, params)
    assert {member.known for member in engine.members} == {seen.rows for seen in engine.seen} == {1300}
    assert all(1300 < member.checkpoint < 3000 for member in engine.members)
    assert np.allclose(learner.predict_proba([{"likes": "c1"}]), before, atol=0.02)
    learner.save(tmp_path / "after.o2pl")
    again = o2pl.load(tmp_path / "after.o2pl")
    for one in (learner, again):
        for seed in range(1, 6):
            one.partial_fit(*rows(300, seed), at_most=500)
    assert np.array_equal(learner._engine.members[0].params, again._engine.members[0].params)
    assert learner.changes_ == []
    assert learner.predict([{"likes": f"c{k}"} for k in range(K)]).tolist() == [0, 1, 2]


def test_rows_that_are_learned_from_are_kept() -> None:
    learner = Bandit(K, policy="hashed").partial_fit(*rows(500, 0))
    with pytest.raises(InvalidInput, match="found 10 to drop, expected at most 0"):
        trim_rows(learner._engine, 10)
    assert len(learner.log_) == 500
