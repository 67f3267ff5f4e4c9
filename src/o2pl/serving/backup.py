"""Backup of the database while it is in use."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from o2pl.errors import InvalidInput
from o2pl.formats.files import whole
from o2pl.serving.database import make_private
from o2pl.serving.store import Store


def back_up(store: Store, out: Path) -> int:
    """Write a consistent copy to a SQLite file while servers and trainers keep running. Returns its size in bytes."""
    if store.engine.dialect.name != "sqlite":
        raise InvalidInput(
            "backup: found a PostgreSQL database, expected SQLite; for PostgreSQL, use pg_dump --format=custom"
        )
    if out.exists():
        raise InvalidInput(f"backup: found {str(out)!r}, which already exists; expected a new name")
    pooled = store.engine.raw_connection()
    try:
        raw: Any = pooled.driver_connection
        with whole(out) as partial:
            make_private(str(partial))
            target = sqlite3.connect(partial)
            try:
                raw.backup(target)  # one step: a consistent snapshot
                target.execute("PRAGMA journal_mode=DELETE")  # a single file
            finally:
                target.close()
            with partial.open("rb") as file:
                os.fsync(file.fileno())
    finally:
        pooled.close()
    return out.stat().st_size
