"""Learners that decide one at a time: as in a batch, to the bit, and bad contexts change nothing."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl.data.contexts import ActionSets
from o2pl.features import Chain, Intercept, Standardise
from o2pl.policies import ActionWise

FEATURES = {
    "standardised": Standardise(),
    "raw": Chain(()),
    "chain": Chain((Standardise(clip=1.0),)),
    "intercept": Chain((Standardise(), Intercept())),
}


def a_set(generator: Any, width: int = 4) -> Any:
    return generator.normal(size=(int(generator.integers(1, 30)), width)).astype(np.float32)


def assert_same_state(one: Any, other: Any) -> None:
    (header, arrays), (its_header, its_arrays) = one._engine.state(), other._engine.state()
    assert header == its_header
    for key in arrays.keys() - {"log.ids"}:  # every decision has an id of its own
        np.testing.assert_array_equal(arrays[key], its_arrays[key])


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("exploration", [0.0, 0.2])
@pytest.mark.parametrize("schedule", ["geometric", "replay"])
def test_a_set_at_a_time_is_decided_and_kept_as_in_a_batch(features: str, exploration: float, schedule: str) -> None:
    generator = np.random.default_rng(9)
    made: dict[str, Any] = {"schedule": schedule, "exploration": exploration, "random_state": 4, "sharpness": 1.7}
    fast, slow = (o2pl.O2PL(policy=o2pl.Member(FEATURES[features], ActionWise()), **made) for _ in range(2))
    for _ in range(120):
        context = a_set(generator)
        given_fast = context if generator.random() < 0.8 else context.astype(np.float64)
        decision = fast.act(given_fast)
        assert type(decision.action) is int
        assert slow.act(context.tolist()) == decision  # a list: the batch's path
        reward = float(generator.random())
        fast.update(given_fast, decision.action, reward, decision.propensity)
        slow.update(context.tolist(), np.int64(decision.action), reward, decision.propensity)
    assert_same_state(fast, slow)


@pytest.mark.parametrize("learn_scale", [False, True])
@pytest.mark.parametrize("features", FEATURES)
def test_a_row_at_a_time_is_decided_and_kept_as_in_a_batch(features: str, learn_scale: bool) -> None:
    generator = np.random.default_rng(10)
    made: dict[str, Any] = {"features": FEATURES[features], "learn_scale": learn_scale, "centre": 0.3, "scale": 0.7}
    fast, slow = (o2pl.GaussianO2PL(**made, random_state=5) for _ in range(2))
    for _ in range(80):
        context = generator.normal(size=7).astype(np.float32)
        decision = fast.act(context)
        assert decision == slow.act(context.tolist())
        reward = math.exp(-(decision.action**2))
        fast.update(context, decision.action, reward, decision.propensity)
        slow.update(context.tolist(), np.float64(decision.action), reward, decision.propensity)
    assert_same_state(fast, slow)
    many = generator.normal(size=(500, 7)).astype(np.float32)
    actions, densities = fast._engine.decider.sample(many, fast._engine.stream.take(500))
    assert [*zip(actions.tolist(), densities.tolist(), strict=True)] == [tuple(slow.act(row)) for row in many]


NAMED: dict[str, Any] = {
    "bandit": o2pl.Bandit(actions=["a", "b", "c"], random_state=0),
    "cells": o2pl.ContinuousBandit((0.0, 1.0), random_state=0),
    "normal": o2pl.GaussianO2PL(random_state=0),
}


@pytest.mark.parametrize("kind", NAMED)
def test_rows_with_names_are_decided_as_in_a_batch(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generator, learner = np.random.default_rng(11), NAMED[kind]
    rows: list[Any] = [{"age": float(x), "city": "Rome" if x > 0 else "Oslo"} for x in generator.normal(size=60)]
    for row in rows:
        decision = learner.act(row)
        learner.update(decision, float(generator.random()))
    decider, uniforms = learner.snapshot(), generator.random(60)
    actions, propensities = decider.sample(decider.encoder.encode(rows), uniforms)
    named = [decider.names[action] for action in actions] if decider.names else actions.tolist()
    monkeypatch.setattr(type(decider), "sample", None)  # a batch takes longer
    for row, uniform, action, propensity in zip(rows, uniforms, named, propensities, strict=True):
        decision = decider.decide(row, uniform)
        assert decision == (action, propensity)
        assert decision.context == row
        assert decision.context is not row


@pytest.mark.parametrize("kind", ["sets", "rows"])
def test_bad_contexts_are_refused_and_change_nothing(kind: str) -> None:
    generator = np.random.default_rng(11)
    learner: Any = o2pl.GaussianO2PL(random_state=0)
    good = generator.normal(size=4).astype(np.float32)
    if kind == "sets":
        learner, good = o2pl.O2PL(policy="actionwise", random_state=0), a_set(generator)
    decision = learner.act(good)
    learner.update(good, *decision[:1], 0.5, decision.propensity)
    header, arrays = learner._engine.state()
    holed, huge = good.astype(np.float64), good.astype(np.float64)
    holed.flat[1], huge.flat[0] = np.nan, 1e300
    for bad in (holed, huge, good[..., :3], good[..., None], good[:0]):
        with np.errstate(over="ignore"):
            with pytest.raises(o2pl.InvalidInput):
                learner.act(bad)
            with pytest.raises(o2pl.InvalidInput):
                learner.update(bad, 0, 0.5, 0.5)
    if kind == "sets":
        for action in (len(good), -1, 0.5):
            with pytest.raises(o2pl.InvalidInput):
                learner.update(good, action, 0.5, 0.5)
    later_header, later = learner._engine.state()
    assert later_header == header
    for key, array in arrays.items():
        np.testing.assert_array_equal(array, later[key])


def test_many_rows_in_stretches_are_those_of_each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(12)
    x, sets = generator.normal(size=(50, 4)).astype(np.float32), [a_set(generator) for _ in range(50)]
    rows = o2pl.O2PL(3, random_state=0).partial_fit(x, np.arange(50) % 3, np.arange(50) % 2, np.full(50, 0.4))
    of_sets = o2pl.O2PL(policy="actionwise").partial_fit(sets, np.zeros(50, int), np.arange(50) % 2, np.full(50, 0.4))
    whole = rows.predict_proba(x), of_sets.predict_proba(sets)
    monkeypatch.setattr("o2pl.engine.decider._STRETCH", 7)
    np.testing.assert_array_equal(rows.predict_proba(x), whole[0])
    np.testing.assert_array_equal(of_sets.predict_proba(sets), whole[1])
    actions = np.arange(50) % 3
    likelihoods = rows._engine.decider.likelihoods(x, actions)
    np.testing.assert_array_equal(likelihoods, whole[0][np.arange(50), actions])
    by_member = rows._engine.decider.member_likelihoods(x, actions)
    monkeypatch.undo()
    np.testing.assert_array_equal(rows._engine.decider.member_likelihoods(x, actions), by_member)
    assert len(rows.predict_proba(np.empty((0, 4)))) == 0
    assert of_sets._engine.decider.n_actions is None
    assert isinstance(of_sets._engine.encoder.encode(sets), ActionSets)


def published(kind: str) -> Any:
    """A learned policy, and a context that it decides on."""
    generator = np.random.default_rng(3)
    learner: Any = o2pl.Bandit(actions=["a", "b", "c"], policy="hashed", random_state=0)
    contexts: Any = [{"user": f"u{k % 2}"} for k in range(90)]
    if kind == "numbers":
        learner, contexts = o2pl.ContinuousBandit((0, 10), random_state=0), generator.normal(size=(90, 2))
    for context in contexts:
        decision = learner.act(context)
        good = decision.action == "b" if kind == "names" else decision.action > 6
        learner.update(context, decision.action, float(good), decision.propensity)
    return learner.snapshot(), contexts[0]


def test_exploration_is_added_to_a_published_policy() -> None:
    decider, context = published("names")
    alone, mixed = (one.predict_proba([context]) for one in (decider, decider.exploring(0.4)))
    np.testing.assert_allclose(mixed, 0.6 * alone + 0.4 / 3, rtol=1e-12)
    assert np.ptp(alone) > 0.2
    decider, context = published("numbers")
    actions = np.linspace(0.1, 9.9, 9)
    contexts = np.tile(context, (9, 1))
    alone, mixed = (one.predict_density(contexts, actions) for one in (decider, decider.exploring(0.4)))
    np.testing.assert_allclose(mixed, 0.6 * alone + 0.4 / 10, rtol=1e-9)
    with pytest.raises(o2pl.InvalidInput, match="share"):
        decider.exploring(1.5)


def test_probabilities_among_some_actions_are_those_of_decisions() -> None:
    decider, context = published("names")
    allowed = np.array([0, 2])
    pi = decider.among(context, allowed)
    assert pi.sum() == pytest.approx(1)
    for uniform in (0.0, 0.3, 0.6, 0.99):
        decision = decider.decide(context, uniform, allowed)
        place = int(np.searchsorted(np.cumsum(pi), uniform, side="right"))
        assert decision == ("ac"[place], pi[place])
    np.testing.assert_allclose(decider.among(context, np.arange(3)), decider.predict_proba([context])[0], rtol=1e-12)


def test_an_open_file_is_loaded(tmp_path: Any) -> None:
    decider, context = published("names")
    decider.save(tmp_path / "model")
    again = o2pl.load(io.BytesIO((tmp_path / "model").read_bytes()))
    np.testing.assert_array_equal(again.predict_proba([context]), decider.predict_proba([context]))
    with pytest.raises(o2pl.InvalidInput, match=r"^sent: not a saved learner"):
        o2pl.load(io.BytesIO(b"no"), name="sent")
