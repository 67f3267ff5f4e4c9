"""Joining: one outcome for each decision, whatever comes late, twice or out of order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.serving.rows import decision, reward

from o2pl.serving.batch_writes import ActivationRow
from o2pl.serving.reward_join import join, outcome_of
from o2pl.serving.settings import Aggregation, Settings
from o2pl.serving.store import Store

BOTH = True  # databases
WAIT = Settings(reward_wait_time=timedelta(seconds=60), default_reward=0.25)
SUM = Settings(reward_wait_time=timedelta(seconds=60), default_reward=0.25, reward_aggregation=Aggregation.SUM)


@pytest.mark.parametrize(
    ("settings", "came", "now", "expected"),
    [
        (WAIT, [], 1050.0, None),
        (WAIT, [(0.5, 1010.0), (1.0, 1020.0)], 1030.0, (0.5, False)),
        (WAIT, [(0.5, 1061.0)], 1070.0, (0.25, True)),  # late
        (WAIT, [(0.5, 1061.0), (0.75, 1059.0)], 1070.0, (0.75, False)),
        (WAIT, [], 1061.0, None),  # a reward that came in time may still be on its way to the disk
        (WAIT, [(0.5, 990.0)], 1001.0, (0.5, False)),  # a clock that was set back
        (SUM, [(0.25, 1010.0), (0.5, 1020.0)], 1030.0, None),
        (SUM, [(0.25, 1010.0), (0.5, 1020.0), (0.1, 1090.0)], 1100.0, (0.75, False)),
        (SUM, [(0.75, 1010.0), (0.75, 1020.0)], 1100.0, (1.0, False)),  # within the range
        (SUM, [], 1100.0, (0.25, True)),
    ],
)
def test_the_reward_of_a_decision(settings: Settings, came: Any, now: float, expected: Any) -> None:
    assert outcome_of(1000.0, came, settings, now) == expected


def found(store: Store) -> dict[str, tuple[float, bool]]:
    named = {row.id: row.event_id + (f"/{row.slot}" if row.slot else "") for row in store.decisions_after(1)}
    return {named[row.decision_id]: (row.reward, row.by_default) for row in store.outcomes_after(1)}


def test_rewards_become_outcomes_once_in_the_order_in_which_they_came(store: Store) -> None:
    store.add_application("shop", settings=WAIT)
    application = store.application("shop")
    store.add([decision(name) for name in "abcd"])
    store.add([reward("c", 0.5), reward("a", 1.0), reward("c", 0.9)])
    assert join(store, application, 1002.0) == 2
    assert join(store, application, 1003.0) == 0
    store.add([reward("c", 0.1), reward("b", 0.2, received_at=1070.0)])  # too late for b
    assert join(store, application, 1061.0) == 0
    assert join(store, application, 1080.0) == 2
    assert list(found(store).items()) == [
        ("c", (0.5, False)),
        ("a", (1.0, False)),
        ("b", (0.25, True)),
        ("d", (0.25, True)),
    ]
    assert join(store, application, 9999.0) == 0


def test_deferred_events_count_once_they_are_activated(store: Store) -> None:
    store.add_application("shop", settings=WAIT)
    application = store.application("shop")
    store.add([decision(name, deferred=True) for name in "abc"])
    store.add([reward("a", 1.0)])
    assert join(store, application, 1010.0) == 0
    store.add([ActivationRow(1, "a", 1011.0), ActivationRow(1, "b", 1011.0)])
    assert join(store, application, 1012.0) == 1  # the reward came before the activation
    assert join(store, application, 1080.0) == 1
    assert found(store) == {"a": (1.0, False), "b": (0.25, True)}
    store.add([reward("c", 0.5, received_at=1005.0), ActivationRow(1, "c", 2000.0)])
    assert join(store, application, 2001.0) == 1  # long after its wait
    assert found(store)["c"] == (0.5, False)


def test_each_slot_has_its_own_outcome(store: Store) -> None:
    store.add_application("shop", settings=WAIT)
    application = store.application("shop")
    store.add([(decision("a", slot="top"), decision("a", slot="side")), reward("a", 1.0, slot="side")])
    join(store, application, 1002.0)
    assert found(store) == {"a/side": (1.0, False)}
    join(store, application, 1080.0)
    assert found(store) == {"a/side": (1.0, False), "a/top": (0.25, True)}


def test_applications_do_not_mix(store: Store) -> None:
    store.add_application("one", settings=WAIT)
    store.add_application("two", settings=SUM)
    store.add([decision("a", 1), decision("a", 2), reward("a", 1.0, 2)])
    assert join(store, store.application("one"), 1002.0) == 0
    assert join(store, store.application("two"), 1002.0) == 0
    assert join(store, store.application("two"), 1080.0) == 1
    assert [row.reward for row in store.outcomes_after(2)] == [1.0]


def test_many_rows_are_joined_in_several_transactions(store: Store) -> None:
    store.add_application("shop", settings=WAIT)
    application = store.application("shop")
    names = [f"e{number}" for number in range(2300)]
    store.add([decision(name) for name in names])
    store.add([reward(name, 1.0) for name in names[:1200]])
    assert join(store, application, 1002.0, waits=False) == 1200
    assert join(store, application, 1080.0) == 1100
    assert len(store.outcomes_after(1, limit=9999)) == 2300


def test_one_decision_of_a_clock_that_ran_ahead_holds_no_other_up(store: Store) -> None:
    store.add_application("shop", settings=WAIT)
    application = store.application("shop")
    store.add([decision("ahead", decided_at=90000.0), decision("a"), decision("b")])
    assert join(store, application, 1080.0) == 2
    store.add([decision("c", decided_at=1090.0)])
    assert join(store, application, 1200.0) == 1
    assert join(store, application, 90100.0) == 1
