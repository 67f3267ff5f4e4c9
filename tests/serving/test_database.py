"""A database is a path or a URL; errors name it without its password."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.serving.rows import decision

from o2pl.errors import InvalidInput
from o2pl.serving import database
from o2pl.serving.database import DEFAULT, StoreUnavailable, make_engine, where_is
from o2pl.serving.store import Store


def test_which_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("O2PL_DATABASE", raising=False)
    assert where_is(None) == DEFAULT
    monkeypatch.setenv("O2PL_DATABASE", "postgresql://somewhere/o2pl")
    assert where_is(None) == "postgresql://somewhere/o2pl"
    assert where_is("here.sqlite") == "here.sqlite"
    assert make_engine("postgres://u:secret@h/d").url.drivername == "postgresql+psycopg"


@pytest.mark.parametrize("wrong", ["mysql://u:secret@h/d", "sqlite://", "://u:secret@h/d", "no/such/folder/a.sqlite"])
def test_what_is_no_database(wrong: str) -> None:
    with pytest.raises(InvalidInput, match="database: found") as caught:
        Store.open(wrong)
    assert "secret" not in str(caught.value)


def test_commits_are_on_disk(store: Store) -> None:
    with store.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_a_transaction_is_whole_or_nothing(store: Store) -> None:
    def fails() -> None:
        with store.writing() as connection:
            connection.exec_driver_sql("INSERT INTO meta VALUES ('a', 'b')")
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert store.note("a") is None


def test_a_reader_keeps_its_snapshot(store: Store) -> None:
    with store.reading() as connection:
        count = "SELECT count(*) FROM decisions"
        before = connection.exec_driver_sql(count).scalar()
        store.add([decision("a")])
        assert connection.exec_driver_sql(count).scalar() == before == 0
    assert len(store.decisions_after(1)) == 1


def test_a_locked_database_is_unavailable_until_it_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_PRAGMAS", ("busy_timeout=10", *database._PRAGMAS[1:]))
    with Store.open(tmp_path / "a.sqlite") as store:
        other = sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match=r"a\.sqlite: database is locked"):
            store.add([decision("a")])
        assert store.decisions_after(1) == []  # readers go on
        other.execute("ROLLBACK")
        other.close()
        store.add([decision("a")])
        assert len(store.decisions_after(1)) == 1
