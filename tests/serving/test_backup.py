"""A backup is whole, and is made while others write."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.serving.postgres import Postgres
from tests.serving.rows import decision, reward

from o2pl.errors import InvalidInput
from o2pl.serving.backup import back_up
from o2pl.serving.store import Store
from o2pl.serving.writer import Writer


def test_a_backup_under_load_is_one_moment(store: Store, tmp_path: Path) -> None:
    key = store.add_application("shop").write_key
    writer, stop = Writer(store), threading.Event()
    acknowledged = 0

    def write() -> None:
        nonlocal acknowledged
        while not stop.is_set():
            name = f"e{acknowledged}"
            writer.submit([decision(name, context=b"x" * 5000), reward(name)]).result()
            acknowledged += 1

    thread = threading.Thread(target=write)
    thread.start()
    while acknowledged < 20:
        pass
    before = acknowledged
    assert back_up(store, tmp_path / "copy.sqlite") > 20 * 5000
    after = acknowledged
    stop.set()
    thread.join()
    writer.stop()
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.sqlite"]
    with Store.open(tmp_path / "copy.sqlite") as copy:
        assert copy.role_of(key) is not None
        decided = [row.event_id for row in copy.decisions_after(1, limit=100_000)]
        rewarded = [row.event_id for row in copy.rewards_after(1, limit=100_000)]
    assert decided == rewarded == [f"e{k}" for k in range(len(decided))]  # whole transactions
    assert before <= len(decided) <= after + 1


def test_nothing_is_overwritten(store: Store, tmp_path: Path) -> None:
    (tmp_path / "copy.sqlite").write_text("precious")
    with pytest.raises(InvalidInput, match="already exists"):
        back_up(store, tmp_path / "copy.sqlite")
    assert (tmp_path / "copy.sqlite").read_text() == "precious"


def test_postgresql_has_its_own(postgres: Postgres, tmp_path: Path) -> None:
    postgres.empty()
    with Store.open(postgres.url) as store, pytest.raises(InvalidInput, match="pg_dump"):
        back_up(store, tmp_path / "copy.sqlite")
