"""One trainer at a time: the holder of a lock trains, others wait. The lock is released when its process ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import text

from o2pl.locks import FileLock
from o2pl.serving.database import StoreUnavailable
from o2pl.serving.store import Store

_TRAINER = 0x6F32706C0010  # different from the locks in `database`
_HELD = """
SELECT EXISTS (
    SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
    WHERE locktype = 'advisory' AND granted AND datname = current_database()
    AND (classid::bigint << 32) + objid::bigint = :key
)"""


class Election:
    """Lock of the trainer. `held` says whether this process may train; it tries to take the lock."""

    def __init__(self, store: Store) -> None:
        self._store, self._file = store, _lock_file(store)
        self._connection: Any = None

    def held(self) -> bool:
        """Return whether this process holds the lock. Call it before each step: a lost connection loses the lock."""
        if self._store.engine.dialect.name == "sqlite":
            return self._file.take()
        return self._held_connection()

    def _held_connection(self) -> bool:
        try:
            if self._connection is not None:
                self._connection.execute(text("SELECT 1"))
                self._connection.commit()
                return True
            connection = self._store.engine.connect()
            if connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _TRAINER}):
                connection.commit()  # the lock belongs to the session, not to the transaction
                self._connection = connection
                return True
            connection.close()
            return False
        except Exception as error:
            self.give_up()
            raise StoreUnavailable(f"the trainer's lock: {error}") from error

    def give_up(self) -> None:
        """Release the lock."""
        self._file.release()
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.invalidate()  # closes the session, and with it the lock
            connection.close()


def _lock_file(store: Store) -> FileLock:
    """Return the lock of a SQLite store; PostgreSQL has its own."""
    return FileLock(f"{Path(store.engine.url.database or 'o2pl')}.trainer.lock")


def someone_trains(store: Store) -> bool:
    """Return whether any process holds the lock now."""
    if store.engine.dialect.name != "sqlite":
        with store.reading() as connection:
            return bool(connection.scalar(text(_HELD), {"key": _TRAINER}))
    return _lock_file(store).is_taken()
