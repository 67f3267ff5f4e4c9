"""The log of SQLite stays short although somebody writes all the time."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.serving.rows import decision

from o2pl.serving import sqlite_checkpoints
from o2pl.serving.store import Store
from o2pl.serving.writer import Writer


def test_the_log_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_checkpoints, "_EVERY", 0.005)
    monkeypatch.setattr(sqlite_checkpoints, "_LONG", 50)
    with Store.open(tmp_path / "a.sqlite") as store:
        writer = Writer(store)
        for k in range(500):  # 8 kB each, 4 MB in all
            writer.submit([decision(f"e{k}", context=b"x" * 8000)]).result()
        writer.stop()
        assert (tmp_path / "a.sqlite-wal").stat().st_size < 2_000_000
        assert len(store.decisions_after(1)) == 500


def test_a_copy_takes_no_lock_from_others(store: Store) -> None:
    copying = sqlite_checkpoints.Checkpoints(store.engine)
    with store.writing() as connection:
        connection.exec_driver_sql("INSERT INTO meta VALUES ('a', 'b')")
        assert copying.copy() >= 0
    copying.stop()
    assert store.note("a") == "b"
