"""Compact policies: nearly the same decisions in a fraction of the bytes, and the same after a file."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl import Bandit
from o2pl.engine.compacting import compact

K = 3


def learner(policy: str, n: int = 1500) -> tuple[Any, list[Any]]:
    g = np.random.default_rng(0)
    contexts: list[Any] = [{"user": f"u{g.integers(40)}", "x": float(g.normal(3, 2))} for _ in range(n)]
    actions = g.integers(K, size=n)
    rewards = (g.random(n) < np.where(actions == [int(one["user"][1:]) % K for one in contexts], 0.8, 0.2)).astype(
        float
    )
    if policy == "hashed actionwise":
        contexts = [(one, [{"id": f"a{k}"} for k in range(K)]) for one in contexts]
        return Bandit(policy=policy).partial_fit(contexts, actions, rewards, np.full(n, 1 / K)), contexts
    named = np.array(["red", "green", "blue"])[actions]
    made = Bandit(actions=["red", "green", "blue"], policy=policy, exploration=0.1)
    return made.partial_fit(contexts, named, rewards, np.full(n, 1 / K)), contexts


@pytest.mark.parametrize("policy", ["hashed", "hashed actionwise"])
def test_a_compact_policy_decides_nearly_alike_and_its_bytes_exactly_so(policy: str) -> None:
    made, contexts = learner(policy)
    whole, small = made.snapshot(), compact(made.snapshot())
    found, expected = small.predict_proba(contexts[:200]), whole.predict_proba(contexts[:200])
    assert np.abs(found - expected).max() < 0.02
    assert not np.array_equal(found, expected)
    body = small.to_bytes()
    assert len(body) < 0.6 * len(whole.to_bytes())
    again = o2pl.load(io.BytesIO(body))
    assert np.array_equal(again.predict_proba(contexts), small.predict_proba(contexts))
    assert again.names == whole.names
    assert again.exploring(0.2).predict_proba(contexts[:5]).min() >= 0.2 / K - 1e-12


def test_what_has_no_weight_and_who_hardly_acts_is_left_out() -> None:
    made, contexts = learner("hashed")
    engine = made._engine
    engine.gains = np.array([0.0] + [-1e6] * (len(engine.gains) - 1))
    for member in engine.members:
        member.params[K * 5 : K * 9] = 0.0
    decider = engine.new_decider()
    small = compact(decider)
    assert len(small.members) == 1
    assert len(small.members[0].params) == len(decider.members[0].params) - 4 * K
    assert np.abs(small.predict_proba(contexts[:100]) - decider.predict_proba(contexts[:100])).max() < 0.02


def test_policies_of_numbers_stay_as_they_are() -> None:
    g = np.random.default_rng(0)
    made = Bandit(K).partial_fit(g.normal(size=(50, 2)), g.integers(K, size=50), g.random(50), np.full(50, 1 / K))
    assert compact(made.snapshot()) is made.snapshot()
    again = o2pl.load(io.BytesIO(made.snapshot().to_bytes()))
    assert np.array_equal(again.predict_proba([[0.1, 0.2]]), made.snapshot().predict_proba([[0.1, 0.2]]))
