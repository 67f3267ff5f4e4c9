"""What is older than `logRetentionDays` goes, and can be kept as Parquet."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import update
from tests.serving.rows import decision, joined, reward

import o2pl
from o2pl.serving import deletion, retention
from o2pl.serving.schema import models
from o2pl.serving.settings import Settings
from o2pl.serving.store import Store

BOTH = True  # databases
DAY = 86400.0


def filled(store: Store, days: int) -> None:
    shop = store.add_application("shop", settings=Settings(log_retention_days=days)).id
    news = store.add_application("news").id
    for application in (shop, news):
        for day in range(10):
            name = f"day{day}"
            store.add([decision(name, application, decided_at=day * DAY + 1), reward(name, application=application)])
        joined(store, application)


@pytest.mark.parametrize("at_once", [3, 500])
def test_old_events_go(store: Store, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(deletion, "AT_ONCE", at_once)
    monkeypatch.setattr(retention, "AT_ONCE", at_once)
    filled(store, 3)
    for _ in range(28):
        store.add_model(1, b"model", 1, 1)
    with store.writing() as connection:
        connection.execute(update(models).values(created_at=0.0))
    assert retention.delete_old(store, store.application("shop"), 10 * DAY, at_most=1).decisions == min(at_once, 7)
    gone = retention.delete_old(store, store.application("shop"), 10 * DAY)
    assert gone == (7 - min(at_once, 7), 0, None)
    assert [row.event_id for row in store.decisions_after(1)] == ["day7", "day8", "day9"]
    assert len(store.rewards_after(1)) == len(store.outcomes_after(1)) == 3
    assert len(store.decisions_after(2)) == 10
    assert len(store.model_versions(1)) == 20  # none was cited: the newest stay
    assert retention.delete_old(store, store.application("shop"), 10 * DAY) == (0, 0, None)


def test_for_ever_is_for_ever(store: Store) -> None:
    filled(store, -1)
    assert retention.delete_old(store, store.application("shop"), 1e12) == (0, 0, None)
    assert len(store.decisions_after(1)) == 10
    assert retention.delete_old(store, store.application("shop"), 10 * DAY, days=4) == (6, 0, None)  # unless asked


def test_what_goes_can_be_kept(store: Store, tmp_path: Path) -> None:
    filled(store, 3)
    gone = retention.delete_old(store, store.application("shop"), 10 * DAY, archive=tmp_path / "old")
    assert gone.archive == tmp_path / "old" / "shop-before-1970-01-08T000000.parquet"
    assert len(o2pl.read_log(gone.archive, reward_range=(0, 1))) == 7
    assert retention.delete_old(store, store.application("shop"), 10 * DAY, archive=tmp_path / "old").archive is None
