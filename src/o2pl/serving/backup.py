"""Backup of the database while it is in use."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from o2pl.errors import InvalidInput
from o2pl.formats.files import whole_file
from o2pl.serving.database import make_private
from o2pl.serving.store import Store

# What a copy of an earlier time keeps: rows up to then. The rest follows from them.
_LOG = {"decisions": "decided_at", "rewards": "received_at", "activations": "activated_at", "models": "created_at"}
_DERIVED = ("outcomes", "minutes", "cuts", "trainings")
_KEPT_NOTES = ("schema version", "exports")


def back_up(store: Store, out: Path, until: float | None = None) -> int:
    """Write a consistent copy to a SQLite file while servers and trainers keep running. Returns its size in bytes.

    until: the log and the models as they were then; None: now. Applications, settings and keys are those of now.
    """
    if store.engine.dialect.name != "sqlite":
        raise InvalidInput(
            "backup: found a PostgreSQL database, expected SQLite; for PostgreSQL, use pg_dump --format=custom"
        )
    if out.exists():
        raise InvalidInput(f"backup: found {str(out)!r}, which already exists; expected a new name")
    pooled = store.engine.raw_connection()
    try:
        raw: Any = pooled.driver_connection
        with whole_file(out) as partial:
            make_private(str(partial))
            target = sqlite3.connect(partial)
            try:
                raw.backup(target)  # one step: a consistent snapshot
                target.execute("PRAGMA journal_mode=DELETE")  # a single file
                if until is not None:
                    _cut(target, until)
            finally:
                target.close()
            with partial.open("rb") as file:
                os.fsync(file.fileno())
    finally:
        pooled.close()
    return out.stat().st_size


def _cut(copy: sqlite3.Connection, until: float) -> None:
    """Delete what came later, and what a trainer makes from the log: it makes it again."""
    with copy:
        for table, at in _LOG.items():
            copy.execute(f"DELETE FROM {table} WHERE {at} > ?", (until,))
        for table in _DERIVED:
            copy.execute(f"DELETE FROM {table}")
        copy.execute(f"DELETE FROM meta WHERE name NOT IN ({','.join('?' * len(_KEPT_NOTES))})", _KEPT_NOTES)
        copy.execute(
            "UPDATE applications SET pinned = NULL WHERE pinned > 0 AND NOT EXISTS"
            " (SELECT 1 FROM models WHERE application_id = applications.id AND version = applications.pinned)"
        )
    copy.execute("VACUUM")
