"""A fit in two steps: members are weighed on rows that they have not learned from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl.engine.offline import learn_offline


def test_a_union_learns_from_half_before_it_learns_from_all(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    log = o2pl.Interactions(
        rng.normal(size=(400, 2)), rng.integers(2, size=400), rng.integers(2, size=400), np.full(400, 0.5), (0, 1)
    )
    whole = o2pl.Bandit(2, random_state=0).fit(log)
    for learner, expected in ((o2pl.Bandit(2, random_state=0), [200, 400]), (o2pl.O2PL(2, policy="linear"), [400])):
        encoder = learner._encoder_for(log)
        rows = learner._checked(log, encoder=encoder)
        engine = learner._make_engine(encoder, 2)
        engine.extend(rows)
        reached: list[Any] = []
        monkeypatch.setattr(engine, "learn", lambda engine=engine, reached=reached, **how: (
            reached.append(len(engine.log)), type(engine).learn(engine, **how)
        ))  # fmt: skip
        learn_offline(engine, engine.log)
        assert reached == expected
        assert engine.learned == len(engine.log) == 400
        if len(expected) == 2:
            learner._adopt(engine)
            np.testing.assert_array_equal(learner.predict_proba(log.contexts), whole.predict_proba(log.contexts))


def test_a_fit_keeps_its_own_encoding_and_never_the_arrays_it_was_given() -> None:
    rng = np.random.default_rng(0)
    contexts = [[{"w": f"w{rng.integers(5)}"} for _ in range(3)] for _ in range(60)]
    columns = rng.integers(3, size=60), rng.integers(2, size=60), np.full(60, 1 / 3)
    first = o2pl.Bandit(policy="hashed actionwise", random_state=0).fit(contexts, *columns)
    given = first.log_
    second = o2pl.Bandit(policy="hashed actionwise", random_state=0).fit(given)
    assert not np.shares_memory(second.log_.contexts.values.values, given.contexts.values.values)
    before = second.predict_proba(contexts)
    np.testing.assert_array_equal(before, first.predict_proba(contexts))
    given.contexts.values.values[:] = 0
    second.update(contexts[0], 0, 1.0, 1 / 3)
    assert (second.log_.contexts.values.values == 1).all()
