"""What hangs on a decision goes with it; models go when no decision cites them."""

from __future__ import annotations

from tests.serving.rows import decision, joined, reward

from o2pl.serving.deleting import delete_events, delete_models
from o2pl.serving.entries import ActivationRow
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


def test_models_that_nobody_cites(store: Store) -> None:
    shop, news = store.add_application("shop").id, store.add_application("news").id
    for k in range(6):
        store.add_model(shop, b"model", k, k)
        store.add_model(news, b"model", k, k)
    store.add([decision("a", shop, model_version=2), decision("b", news, model_version=1)])
    store.pin(shop, 4)
    store.withdraw(shop, 6, "bad")
    with store.writing() as connection:
        assert delete_models(connection, shop) == 2
    # cited, pinned, the newest that can be served, and what is newer than that
    assert [row.version for row in store.model_versions(shop)] == [6, 5, 4, 2]
    assert len(store.model_versions(news)) == 6
    assert store.add_model(shop, b"model", 9, 9) == 7  # numbers go on
