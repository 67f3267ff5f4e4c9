"""Locks between processes, on every system that Python runs on: the system releases them when the process ends.

The lock is SQLite's, on an empty database that is never written: SQLite knows each system's file locks.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path


class FileLock:
    """A lock that one holder has at a time. The file is made with the first attempt, and stays."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._held: sqlite3.Connection | None = None

    def take(self) -> bool:
        """Take the lock if nobody else has it. Returns whether this object has it now."""
        if self._held is None:
            # Only for the owner. Never opened where it exists: POSIX drops a process's locks with any handle it closes.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            self._held = self._opened("BEGIN EXCLUSIVE")
        return self._held is not None

    def release(self) -> None:
        """Release the lock, if this object has it."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def _opened(self, statement: str) -> sqlite3.Connection | None:
        """Return a connection that has run the statement; None: another holds the lock."""
        connection = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            connection.execute(statement)
        except sqlite3.Error as error:
            connection.close()
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
                return None
            raise OSError(f"{self._path}: cannot be locked: {error}") from error
        return connection
