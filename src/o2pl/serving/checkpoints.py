"""SQLite commits into a log beside its file. A thread copies it into the file, so that commits need not wait for that.

The log begins anew once all of it is copied, which never happens while somebody goes on writing. So the thread copies
most of it, and then asks the writer to copy the little that came meanwhile, between two of its transactions.
"""

from __future__ import annotations

import threading

from sqlalchemy import Engine

from o2pl.serving.database import pragma

_EVERY = 0.25  # seconds: little at a time, so that no commit waits long for the disk
_LONG = 1000  # pages of the log from which on it should begin anew


class Checkpoints:
    """Of the database that a writer writes to; of PostgreSQL, nothing: it has its own."""

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
        """As much as readers allow; how many pages the log has."""
        self.due = False
        _, pages, _ = pragma(self._engine, "wal_checkpoint(PASSIVE)")
        return int(pages)

    def _run(self) -> None:
        while not self._stopping.wait(_EVERY):
            try:
                self.due = self.copy() > _LONG
            except Exception:  # full, locked or gone: the writer meets it too, and says so
                continue
