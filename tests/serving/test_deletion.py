"""What hangs on a decision goes with it."""

from __future__ import annotations

from tests.serving.rows import decision, joined, reward

from o2pl.serving.batch_writes import ActivationRow
from o2pl.serving.deletion import delete_events
from o2pl.serving.store import Store

BOTH = True  # databases


def test_an_event_goes_whole(store: Store) -> None:
    for application in (1, 2):
        store.add([decision(name, application) for name in "abc"])
        store.add([reward(name, application=application) for name in "abc"])
        store.add([ActivationRow(application, name, 1.0) for name in "abc"])
        joined(store, application)
    with store.writing() as connection:
        assert delete_events(connection, 1, ["a", "c", "nobody"]) == 2
    assert not any(store.event(1, "a").values())
    assert {name: len(rows) for name, rows in store.event(1, "b").items()} == dict.fromkeys(store.event(1, "b"), 1)
    assert len(store.outcomes_after(1)) == 1
    assert len(store.outcomes_after(2)) == len(store.decisions_after(2)) == len(store.rewards_after(2)) == 3
