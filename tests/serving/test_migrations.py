"""Stores are made, recognised and brought up to this version."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from o2pl.errors import InvalidInput
from o2pl.serving.store import Store


def test_a_store_is_opened_again(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.sqlite") as store:
        key = store.add_application("shop").write_key
    with Store.open(tmp_path / "a.sqlite") as store:
        assert store.role_of(key) is not None


def test_a_newer_store_is_left_alone(tmp_path: Path) -> None:
    Store.open(tmp_path / "a.sqlite").close()
    with sqlite3.connect(tmp_path / "a.sqlite") as raw:
        raw.execute("UPDATE meta SET value = '99'")
    raw.close()
    with pytest.raises(InvalidInput, match="found schema version 99"):
        Store.open(tmp_path / "a.sqlite")


def test_what_is_no_store_is_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("a letter to a friend, long enough to be a header of a file, or so it may seem\n" * 20)
    with pytest.raises(InvalidInput, match="no SQLite file"):
        Store.open(text)
    with sqlite3.connect(tmp_path / "other.sqlite") as raw:
        raw.execute("CREATE TABLE letters (a)")
    raw.close()
    with pytest.raises(InvalidInput, match=r"other tables \(letters\)"):
        Store.open(tmp_path / "other.sqlite")
