"""Words in dictionaries and frames: every word has a place of its own, whenever it comes, in the default learner."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl import O2PL, Bandit, InvalidInput

DEVICES = ["tablet", "phone", "desktop"]


def played(learner: Any, contexts: list[Any], best: list[int], pays: float = 1.0) -> Any:
    for context, action in zip(contexts, best, strict=True):
        decision = learner.act(context)
        learner.update(decision, reward=pays * (decision.action == action))
    return learner


@pytest.mark.parametrize("kind", [Bandit, O2PL])
@pytest.mark.parametrize("policy", ["union", "linear"])
def test_words_that_come_later_have_places_of_their_own(kind: Any, policy: str) -> None:
    """The first visitor is on a tablet; phones and desktops must not share what is learned."""
    draws = np.random.default_rng(1).integers(3, size=600)
    draws[0] = 0
    contexts = [{"device": DEVICES[draw]} for draw in draws]
    learner = played(kind(3, policy=policy, random_state=0), contexts, draws.tolist())
    assert learner.predict([{"device": device} for device in DEVICES]).tolist() == [0, 1, 2]
    assert learner.log_.rewards[-200:].mean() > 0.9


def test_numbers_written_as_words_are_words() -> None:
    draws = np.random.default_rng(2).integers(24, size=1500)
    learner = played(Bandit(3, random_state=0), [{"hour": str(hour)} for hour in draws], (draws % 3).tolist())
    chosen = learner.predict([{"hour": str(hour)} for hour in range(24)])
    assert (chosen == np.arange(24) % 3).mean() > 0.9


@pytest.mark.parametrize("rows", ["dictionaries", "frame"])
def test_a_log_too_short_to_know_its_words(rows: str) -> None:
    """Words that a short log lacks are not thrown together with others."""
    words = ["a", "b"] * 20
    contexts: Any = [{"word": word} for word in words]
    if rows == "frame":
        contexts = pytest.importorskip("pandas").DataFrame(contexts)
    actions = np.tile([0, 0, 1, 1], 10)
    rewards = np.array([float((word == "b") == action) for word, action in zip(words, actions, strict=True)])
    learner = Bandit(3, random_state=0).fit(contexts, actions, rewards, np.full(40, 1 / 3))
    played(learner, [{"word": word} for word in ["c", "d"] * 150], [1, 2] * 150)
    assert learner.predict([{"word": word} for word in "abcd"]).tolist() == [0, 1, 1, 2]


def test_rows_of_numbers_alone_keep_their_products() -> None:
    """XOR of two numbers needs products of pairs, which only rows of numbers have."""
    signs = np.random.default_rng(3).choice([-1.0, 1.0], (800, 2))
    best = (signs.prod(1) > 0).astype(int).tolist()
    learner = played(Bandit(2, random_state=0), [{"a": a, "b": b, "known": True} for a, b in signs.tolist()], best)
    assert learner.log_.rewards[-200:].mean() > 0.9


# -- without a context


@pytest.mark.parametrize("nothing", [None, {}, []])
@pytest.mark.parametrize("kind", [Bandit, O2PL])
def test_decisions_without_a_context(kind: Any, nothing: Any, tmp_path: Path) -> None:
    learner = kind(3, random_state=0)
    for step in range(300):  # more rows than the first buffers hold
        if step == 150:
            learner.save(tmp_path / "half.o2pl")
            learner = o2pl.load(tmp_path / "half.o2pl")
        decision = learner.act() if nothing is None and step % 2 else learner.act(nothing)
        if step % 3:
            learner.update(decision, float(decision.action == 2))
        else:
            learner.update(nothing, decision.action, float(decision.action == 2), decision.propensity)
    assert len(learner.log_) == 300
    assert learner.predict_proba([{}])[0, 2] > 0.9
    assert learner.act(exclude=[2]).action in (0, 1)


def test_no_context_where_others_have_one() -> None:
    numbers = Bandit(2, random_state=0)
    numbers.update(numbers.act([1.0, 2.0]), 1.0)
    with pytest.raises(InvalidInput, match=r"found .*no columns.*expected rows of 2 numbers"):
        numbers.act()
    named = Bandit(2, random_state=0)
    named.update(named.act({"a": 1.0}), 1.0)
    assert named.act({}).action in (0, 1)  # what a row leaves out is missing
    nothing = Bandit(2, random_state=0)
    nothing.update(nothing.act(), 1.0)
    with pytest.raises(InvalidInput, match="expected a dictionary"):
        nothing.act([1.0, 2.0])
    assert len(nothing.log_) == 1


# -- values of dictionaries


def test_missing_values_are_left_out() -> None:
    learner = Bandit(2, policy="hashed", random_state=0)
    whole = [{"age": float(age), "city": "Rome"} for age in range(20, 60)]
    played(learner, whole, [int(row["age"] > 40) for row in whole])
    gone = [{"age": age, "city": "Rome"} for age in (math.nan, None, np.float32("nan"))]
    expected = learner.predict_proba([{"city": "Rome"}])
    for row in gone:
        np.testing.assert_array_equal(learner.predict_proba([row]), expected)
    for row in gone:
        learner.update(row, 0, 1.0, 0.5)
    assert np.diff(learner.log_.contexts.offsets).tolist() == [2] * 40 + [1] * 3


def test_dates_are_days_hours_and_weekdays() -> None:
    moment = dt.datetime(2026, 5, 4, 15, 30, tzinfo=dt.UTC)  # a Monday
    learner = Bandit(2, policy="hashed", random_state=0)
    spelled = {"at": {"day": moment.timestamp() / 86400, "hour": "15", "weekday": "0"}}
    learner.update(spelled, 0, 1.0, 0.5)
    for given in (moment, np.datetime64("2026-05-04T15:30"), moment.replace(tzinfo=None)):
        learner.update({"at": given}, 1, 0.0, 0.5)
    rows = learner.log_.contexts
    assert len(set(map(tuple, rows.indices.reshape(4, -1).tolist()))) == 1
    np.testing.assert_array_equal(rows.values.reshape(4, -1), np.tile(rows.values[:3], (4, 1)))


def test_what_is_no_value_is_named() -> None:
    learner = Bandit(2, policy="hashed", random_state=0)
    with pytest.raises(InvalidInput, match=r"context.*, a\.b: found .*expected a string, number, bool, date, list"):
        learner.act({"a": {"b": object()}})
    with pytest.raises(InvalidInput, match="expected a finite number"):
        learner.act({"a": math.inf})


# -- memory


def test_rows_without_features_move_with_the_log() -> None:
    """Rows without entries fill the offsets alone: what appends must follow them to a larger buffer."""
    learner = Bandit(2, policy="hashed", random_state=0)
    for step in range(500):
        learner.update({}, step % 2, 1.0, 0.5)
        learner.update(learner.act({}), 0.0)
    assert np.array_equal(learner.log_.contexts.offsets, np.zeros(1001))


def test_copies_that_began_with_words_merge(tmp_path: Path) -> None:
    first = played(Bandit(2, random_state=0), [{"w": "a"}, {"w": "b"}] * 20, [0, 1] * 20)
    first.save(tmp_path / "first.o2pl")
    other = o2pl.load(tmp_path / "first.o2pl", worker=1)
    played(other, [{"w": "c"}] * 20, [1] * 20)
    first.merge(other)
    assert len(first.log_) == 60
    fresh = Bandit(2, random_state=0).merge(first.log_)
    assert fresh.predict([{"w": "a"}, {"w": "b"}, {"w": "c"}]).tolist() == [0, 1, 1]


@pytest.mark.parametrize("first", ["tablet", "phone", "desktop"])
def test_words_that_the_first_row_does_not_have_where_columns_are_needed(first: str) -> None:
    generator, devices = np.random.default_rng(0), ["tablet", "phone", "desktop"]
    best = {"tablet": 6.0, "phone": 12.0, "desktop": 18.0}
    shop = o2pl.ContinuousBandit(bounds=(5, 20), reward_range=(0, 1), random_state=0)
    page = o2pl.Bandit(3, policy="quadratic", random_state=0)
    for visit in range(1500):
        device = first if visit == 0 else devices[generator.integers(3)]
        price, shown = shop.act({"device": device}), page.act({"device": device})
        shop.update(price, max(0.0, 1 - abs(price.action - best[device]) / 6))
        page.update(shown, float(devices[shown.action] == device))
    each = [{"device": device} for device in devices]
    assert np.abs(shop.predict(each) - list(best.values())).max() < 1
    assert page.predict(each).tolist() == [0, 1, 2]
    with pytest.raises(o2pl.InvalidInput, match="found texts, which ContinuousBandit would take for categories"):
        o2pl.ContinuousBandit(bounds=(5, 20)).act({"prompt": "a whole sentence"})


@pytest.mark.parametrize("named", [{}, {"policy": "quadratic"}])
def test_a_run_on_dictionaries_decides_as_a_loop_does(named: dict[str, Any]) -> None:
    """What the first dictionary is decides how contexts are read, also where all of them are known before."""
    generator = np.random.default_rng(4)
    contexts: list[Any] = [
        {"device": str(generator.choice(["phone", "tablet", "desktop"])), "age": float(generator.normal(40, 10))}
        for _ in range(300)
    ]
    rewards = (generator.random((300, 3)) < 0.4) * 1.0
    one, other = Bandit(3, random_state=0, **named), Bandit(3, random_state=0, **named)
    loop = []
    for context, row in zip(contexts, rewards, strict=True):
        loop.append(one.act(context))
        one.update(loop[-1], row[loop[-1].action])
    run = other.run((contexts, rewards))
    assert [decision.action for decision in loop] == run.actions.tolist()
    assert [decision.propensity for decision in loop] == run.propensities.tolist()
