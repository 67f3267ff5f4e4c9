"""What the trainer reads: in order, none left out, none twice."""

from __future__ import annotations

from typing import Any

from tests.serving.rows import decision, reward

from o2pl.serving import schema
from o2pl.serving.batch_writes import ActivationRow
from o2pl.serving.row_reads import rewards_of
from o2pl.serving.store import Store

BOTH = True  # databases


def outcome(number: int, value: float = 1.0, application: int = 1) -> dict[str, Any]:
    return {
        "application_id": application, "decision_id": number, "reward": value, "by_default": False, "joined_at": 9.0,
    }  # fmt: skip


def test_whose_wait_is_over(store: Store) -> None:
    store.add(
        [
            decision("early", decided_at=10.0),
            decision("late", decided_at=30.0),
            decision("joined", decided_at=10.0),
            decision("deferred", decided_at=10.0, deferred=True),
            decision("activated", decided_at=10.0, deferred=True),
            decision("elsewhere", 2, decided_at=10.0),
            decision("clock went back", decided_at=5.0),
            ActivationRow(1, "activated", 11.0),
        ]
    )
    store.add_outcomes([outcome(3)])
    assert [row.event_id for row in store.waited(1, 20.0)] == ["early", "activated", "clock went back"]
    assert [row.event_id for row in store.waited(1, 20.0, after=1, limit=1)] == ["activated"]
    assert [row.event_id for row in store.waited(2, 20.0)] == ["elsewhere"]


def test_a_decision_has_one_outcome(store: Store) -> None:
    store.add([decision("a"), decision("b"), decision("c", 2)])
    assert store.add_outcomes([outcome(2), outcome(1)]) == 2
    assert store.add_outcomes([outcome(2, 0.0), outcome(3, 0.5, 2)]) == 1
    assert store.add_outcomes([]) == 0
    learned = store.learned_rows(1)
    assert [(row.id, row.decision_id, row.event_id, row.reward) for row in learned] == [(1, 2, "b", 1), (2, 1, "a", 1)]
    assert learned[0].context == decision("b").context
    assert [row.event_id for row in store.learned_rows(1, after=1)] == ["a"]
    (elsewhere,) = store.learned_rows(2)
    assert elsewhere.event_id == "c"
    assert len(store.outcomes_after(1)) == 2


def test_numbers_are_not_given_twice(store: Store) -> None:
    """A reader that has seen number 2 asks for what comes after it: a new row must not be number 2 again."""
    store.add([decision("a"), decision("b")])
    with store.writing() as connection:
        connection.exec_driver_sql("DELETE FROM decisions WHERE id = 2")
    store.add([decision("c")])
    assert [row.event_id for row in store.decisions_after(1, after=2)] == ["c"]


def test_all_that_is_known_of_an_event(store: Store) -> None:
    slots = (decision("a", slot="top"), decision("a", slot="side"))
    store.add([slots, reward("a", slot="side"), ActivationRow(1, "a", 5.0), decision("b"), reward("b")])
    store.add_outcomes([outcome(2)])
    found = store.event(1, "a")
    assert {name: len(rows) for name, rows in found.items()} == {
        "decisions": 2, "rewards": 1, "activations": 1, "outcomes": 1,
    }  # fmt: skip
    assert not any(store.event(1, "nobody").values())
    with store.reading() as connection:
        assert [row.event_id for row in rewards_of(connection, 1, ["b", "a"])] == ["a", "b"]


def test_minutes_take_the_place_of_older_ones(store: Store) -> None:
    of_kind = {int: 1, float: 0.5, str: "[]", bytes: b""}
    row = {column.name: of_kind[column.type.python_type] for column in schema.minutes.columns} | {"minute": 7}
    store.put_minutes([row, {**row, "minute": 8}, {**row, "application_id": 2}])
    store.put_minutes([{**row, "decisions": 5}])
    assert [(each.minute, each.decisions) for each in store.minutes(1, 7, 8)] == [(7, 5), (8, 1)]
    assert [each.minute for each in store.minutes(1, 8, 99)] == [8]


def test_notes_are_left_and_changed(store: Store) -> None:
    assert store.note("refit") is None
    store.put_note("refit", "1")
    store.put_note("refit", "2")
    assert store.note("refit") == "2"
