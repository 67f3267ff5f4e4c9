"""Entries of one transaction are answered one by one; what is acknowledged is there once."""

from __future__ import annotations

import uuid

import pytest
from tests.serving.rows import decision, reward

from o2pl.errors import InvalidInput
from o2pl.serving import schema
from o2pl.serving.batch_writes import ActivationRow, Answer, DecisionRow, RewardRow, check_entry, new_event_id
from o2pl.serving.store import Store

STORED, DUPLICATE, UNKNOWN = Answer.STORED, Answer.DUPLICATE, Answer.UNKNOWN

BOTH = True  # databases


def test_rows_have_the_columns_of_their_tables() -> None:
    pairs = ((DecisionRow, schema.decisions), (RewardRow, schema.rewards), (ActivationRow, schema.activations))
    for row, table in pairs:
        assert list(row._fields) == [column.name for column in table.columns][1:]


def test_an_event_is_stored_once(store: Store) -> None:
    assert store.add([decision("a"), decision("a"), decision("a", 2)]) == [STORED, DUPLICATE, STORED]
    assert store.add([decision("b"), decision("a")]) == [STORED, DUPLICATE]
    assert [(row.id, row.event_id) for row in store.decisions_after(1)] == [(1, "a"), (3, "b")]
    (row,) = store.decisions_after(2)
    assert tuple(row)[1:] == decision("a", 2)  # every column as it was given


def test_slots_are_stored_together(store: Store) -> None:
    slots = (decision("a", slot="top"), decision("a", slot="side"))
    assert store.add([slots, decision("b")]) == [STORED, STORED]
    assert store.add([(decision("a", slot="new"),)]) == [DUPLICATE]
    rewards = [reward("a"), reward("a", slot="side"), reward("b", slot="side"), reward("b")]
    assert store.add(rewards) == [UNKNOWN, STORED, UNKNOWN, STORED]


def test_a_reward_needs_its_decision(store: Store) -> None:
    assert store.add([reward("a"), ActivationRow(1, "a", 5.0)]) == [UNKNOWN, UNKNOWN]
    batch = [reward("a"), decision("a"), reward("a", 0.5), reward("a", application=2)]
    assert store.add(batch) == [STORED, STORED, STORED, UNKNOWN]  # a batch has no order
    assert [row.value for row in store.rewards_after(1)] == [1.0, 0.5]
    assert store.rewards_after(2) == []


def test_the_same_idempotency_key_is_the_same_reward(store: Store) -> None:
    store.add([decision("a"), decision("b"), decision("a", 2)])
    twice = [reward("a", idempotency_key="k"), reward("a", 0.5, idempotency_key="k")]
    assert store.add(twice) == [STORED, DUPLICATE]
    others = [reward("b", idempotency_key="k"), reward("a", application=2, idempotency_key="k"), reward("a")]
    assert store.add([*twice, *others]) == [DUPLICATE, DUPLICATE, STORED, STORED, STORED]
    assert [row.value for row in store.rewards_after(1)] == [1.0, 1.0, 1.0]


def test_an_event_is_activated_once(store: Store) -> None:
    store.add([decision("a", deferred=True), decision("b", deferred=True)])
    assert store.add([ActivationRow(1, "a", 5.0), ActivationRow(1, "a", 6.0)]) == [STORED, DUPLICATE]
    assert store.add([ActivationRow(1, "a", 7.0), ActivationRow(1, "b", 7.0)]) == [DUPLICATE, STORED]
    assert [(row.event_id, row.activated_at) for row in store.activations_after(1)] == [("a", 5.0), ("b", 7.0)]


def test_a_batch_of_any_size_keeps_its_order(store: Store) -> None:
    names = [f"e{k}" for k in range(3 * 64 + 7)]
    assert set(store.add([decision(name) for name in names])) == {STORED}
    assert [row.event_id for row in store.decisions_after(1)] == names
    assert [row.event_id for row in store.decisions_after(1, after=100, limit=2)] == names[100:102]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_reward_is_finite(value: float) -> None:
    with pytest.raises(InvalidInput, match="expected a finite reward"):
        check_entry(reward("a", value))


@pytest.mark.parametrize("event", ["", "a\x00b", "\ud800", "x" * 257])
def test_ids_are_short_texts(event: str) -> None:
    for entry in (decision(event), reward(event), ActivationRow(1, event, 0.0), (decision("a"), decision(event))):
        with pytest.raises(InvalidInput, match="eventId: found"):
            check_entry(entry)
    with pytest.raises(InvalidInput, match="idempotency key: found"):
        check_entry(reward("a", idempotency_key=event))


def test_a_propensity_is_over_nothing() -> None:
    with pytest.raises(InvalidInput, match="propensity: found 0"):
        check_entry(decision("a", propensity=0.0))
    check_entry(decision("a", propensity=3.5))  # a density


def test_new_ids_are_uuids_in_the_order_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", iter(range(10**18, 10**18 + 10**10, 10**7)).__next__)
    ids = [new_event_id() for _ in range(500)]
    assert ids == sorted(set(ids))
    assert {(uuid.UUID(each).version, uuid.UUID(each).variant) for each in ids} == {(7, uuid.RFC_4122)}
