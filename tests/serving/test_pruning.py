"""Versions live as long as events name them."""

from __future__ import annotations

from sqlalchemy import update
from tests.serving.rows import decision

from o2pl.serving.minute_sums import count_minutes
from o2pl.serving.pruning import prune_models
from o2pl.serving.schema import models
from o2pl.serving.store import Store

BOTH = True  # databases


def test_versions_that_no_event_names_are_deleted(store: Store) -> None:
    store.add_application("shop")
    for _ in range(30):
        store.add_model(1, b"body", 0, 0)
    store.add([decision(f"e{k}", model_version=version) for k, version in enumerate((1, 2, 4, 4, 30))])
    count_minutes(store, store.application("shop"))
    assert prune_models(store, 1) == 0  # all are new: events may not have been counted
    with store.writing() as connection:
        connection.execute(update(models).values(created_at=0.0))
        connection.exec_driver_sql("DELETE FROM decisions WHERE id <= 2")
    store.pin(1, 2)
    assert prune_models(store, 1) == 8  # 1, 3 and 5 to 10: 2 is pinned, 4 has events, from 11 on they are the newest
    assert sorted(row.version for row in store.model_versions(1))[:3] == [2, 4, 11]
