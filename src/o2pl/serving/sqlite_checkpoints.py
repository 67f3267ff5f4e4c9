"""SQLite commits to a write-ahead log. A thread copies it to the database file, so that commits need not wait for that.

The write-ahead log restarts only when all of it is copied, which never happens under constant writes. So the thread
copies most of it, and then asks the writer to copy the small rest between two of its transactions.
"""

from __future__ import annotations

import threading

from sqlalchemy import Engine

from o2pl.serving.database import pragma

_EVERY = 0.25  # seconds; short, so that commits do not wait long for the disk
_LONG = 1000  # pages of the write-ahead log from which it should restart


class Checkpoints:
    """Checkpoints of a writer's database. For PostgreSQL it does nothing."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.due = False  # the writer should call `copy` now
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="o2pl checkpoints", daemon=True)
        if engine.dialect.name == "sqlite":
            self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def copy(self) -> int:
        """Copy as much as readers allow. Returns the number of pages of the write-ahead log."""
        self.due = False
        _, pages, _ = pragma(self._engine, "wal_checkpoint(PASSIVE)")
        return int(pages)

    def _run(self) -> None:
        while not self._stopping.wait(_EVERY):
            try:
                self.due = self.copy() > _LONG
            except Exception:  # disk full, locked or gone: the writer reports it too
                continue
