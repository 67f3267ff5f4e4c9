"""Sums of minutes: each row counted once, whenever it comes."""

from __future__ import annotations

import json
from datetime import timedelta

import numpy as np
import pytest
from tests.serving.rows import decision, reward

from o2pl.serving import gain_intervals, minute_sums
from o2pl.serving.batch_writes import ActivationRow
from o2pl.serving.reward_join import join
from o2pl.serving.settings import Settings
from o2pl.serving.store import Store

BOTH = True  # databases
WAIT = Settings(reward_wait_time=timedelta(seconds=60), default_reward=0.25)


def test_sums_are_those_of_the_rows(store: Store) -> None:
    store.add_application("shop", settings=WAIT)
    application = store.application("shop")
    store.add([
        decision("a", decided_at=600.0, baseline=0), decision("b", decided_at=601.0, baseline=1),
        decision("c", decided_at=661.0, action=0, propensity=0.8),
        decision("d", decided_at=602.0, preferred=0, baseline=1, propensity=1.0),
        decision("e", decided_at=603.0, deferred=True),
    ])  # fmt: skip
    store.add([reward("a", 1.0, received_at=600.0), reward("b", 0.5, received_at=601.0)])
    join(store, application, 605.0)
    minute_sums.count_minutes(store, application)
    store.add([reward("c", 1.0, received_at=662.0), ActivationRow(1, "e", 650.0)])
    join(store, application, 670.0)
    minute_sums.count_minutes(store, application)
    minute_sums.count_minutes(store, application)
    ten, eleven = store.minutes(1, 0, 100)
    assert (ten.minute, ten.decisions, ten.outcomes, ten.defaults) == (10, 4, 4, 2)
    assert (eleven.minute, eleven.decisions, eleven.outcomes, eleven.defaults) == (11, 1, 1, 0)
    assert ten.reward == 1.0 + 0.5 + 0.25 + 0.25
    assert ten.reward_squared == 1.0 + 0.25 + 2 * 0.0625
    assert json.loads(ten.uniform) == [3.0, 1.75, 3.0, 1.0 + 0.25 + 0.0625]  # not of d, where the application chose
    assert json.loads(ten.baseline) == [3.0, 1.25, 5.0, 1.0 + 0.0625]  # a was not the baseline's; w = 2, 1
    assert json.loads(eleven.uniform) == pytest.approx([0.625, 0.625, 0.625**2, 0.625**2])
    assert json.loads(ten.actions) == {"b": 4}
    assert json.loads(eleven.actions) == {"a": 1}
    whole = gain_intervals.unpack(ten.standing) + gain_intervals.unpack(eleven.standing)
    assert whole[0, 0] == 5
    direct = gain_intervals.tally(
        np.array([1.0, 0.5, 0.25, 0.25, 1.0]), (0.0, 1.0), np.array([1, 1, np.nan, 1, 0.625]),
        np.array([0.0, 2.0, 1.0, np.nan, np.nan]),
    )  # fmt: skip
    assert np.allclose(whole, direct, rtol=1e-5)


def test_no_row_is_counted_twice_however_few_are_read_at_a_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minute_sums, "_MOST", 3)
    store.add_application("shop", settings=WAIT)
    application = store.application("shop")
    names = [f"e{k}" for k in range(10)]
    store.add([decision(name, deferred=k % 2 == 0) for k, name in enumerate(names)])
    store.add([ActivationRow(1, name, 1001.0) for name in reversed(names)])
    store.add([reward(name) for name in names])
    join(store, application, 1002.0)
    minute_sums.count_minutes(store, application)
    (only,) = store.minutes(1, 0, 100)
    assert (only.decisions, only.outcomes, only.reward) == (10, 10, 10.0)


def test_versions_know_their_last_decision(store: Store) -> None:
    store.add_application("shop", settings=WAIT)
    store.add_model(1, b"one", 0, 0)
    store.add_model(1, b"two", 0, 0)
    store.add([decision("a", model_version=1), decision("b", model_version=1), decision("c", model_version=0)])
    minute_sums.count_minutes(store, store.application("shop"))
    assert [row.last_decision for row in store.model_versions(1)] == [None, 2]
