"""One trainer at a time: the holder of a lease trains, others wait.

The lease is a note in the database. A thread renews it as long as the trainer makes progress, so it ends with its
process, with its machine, and with a trainer that hangs. A holder that lost it can write nothing more: `check` is asked
in every transaction.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable

import msgspec
from sqlalchemy import Connection, select

from o2pl.serving import row_reads
from o2pl.serving.database import TRAINER, StoreUnavailable
from o2pl.serving.schema import meta
from o2pl.serving.store import Store

_NAME = "trainer"
BEAT, LEASE = 2.0, 20.0  # seconds between two renewals; seconds without one after which others may take it
_FAR = 60.0  # seconds by which the clocks of two machines differ at most
HUNG = 900.0  # seconds without progress after which a trainer hangs
_LOGGER = logging.getLogger("o2pl.serving")


class Lease(msgspec.Struct, frozen=True):
    """Who trains. holder "": nobody."""

    holder: str = ""
    beat: int = 0
    at: float = 0.0  # of the last beat, by the holder's clock


class LeaseLost(Exception):
    """Raised if another process trains now. Nothing was written."""


class Election:
    """The lease of a trainer. `held` says whether this process may train; it tries to take the lease."""

    def __init__(self, store: Store, hung: Callable[[], None] = lambda: None) -> None:
        """hung: called once if the trainer makes no progress, in another thread."""
        self._store, self._hung = store, hung
        self.name, self.term = uuid.uuid4().hex, 0  # term: how often this process has taken the lease
        self._seen: tuple[Lease, float] | None = None  # of another holder, and when it was first seen
        self._mine, self._beaten, self._progress = False, 0.0, 0.0
        self._stopping, self._thread = threading.Event(), None  # type: tuple[threading.Event, threading.Thread | None]

    def held(self) -> bool:
        """Return whether this process holds the lease. Call it before each step."""
        self.progress()
        if self._mine and time.monotonic() - self._beaten > LEASE:
            self._mine = False
        return self._mine or self._taken()

    def progress(self) -> None:
        """Say that the trainer does not hang."""
        self._progress = time.monotonic()

    def check(self, connection: Connection) -> None:
        """Raise `LeaseLost` unless this process holds the lease; on PostgreSQL nobody takes it until the commit."""
        row = select(meta.c.value).where(meta.c.name == _NAME).with_for_update(read=True)
        if _parsed(connection.scalar(row)).holder != self.name:
            self._mine = False
            raise LeaseLost("another process trains on this database now")

    def give_up(self) -> None:
        """Release the lease."""
        self._stop()
        if self._mine:
            self._mine = False
            try:
                self._renew(free=True)
            except StoreUnavailable:
                return  # it ends by itself

    # -- the note

    def _taken(self) -> bool:
        """Take the lease if nobody holds it."""
        with self._store.reading() as connection:
            found = lease(connection)
        if not self._is_over(found):
            return False
        with self._store.writing(TRAINER) as connection:
            if lease(connection) != found:  # another was faster
                return False
            _put(connection, Lease(self.name, 0, time.time()))
        self._mine, self._beaten, self.term = True, time.monotonic(), self.term + 1
        self._stop()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(self._stopping,), name="o2pl lease", daemon=True)
        self._thread.start()
        return True

    def _is_over(self, found: Lease) -> bool:
        """Return whether a lease has not been renewed in time: by this process's own clock, or for very long."""
        if not found.holder or time.time() - found.at > LEASE + _FAR:
            return True
        if self._seen is None or self._seen[0] != found:
            self._seen = found, time.monotonic()
        return time.monotonic() - self._seen[1] > LEASE

    def _renew(self, free: bool = False) -> None:
        with self._store.writing(TRAINER) as connection:
            found = lease(connection)
            if found.holder != self.name:
                self._mine = False
                return
            _put(connection, Lease() if free else Lease(self.name, found.beat + 1, time.time()))
        self._beaten = time.monotonic()

    def _run(self, stopping: threading.Event) -> None:
        while not stopping.wait(BEAT) and self._mine:
            if time.monotonic() - self._progress > HUNG:
                _LOGGER.critical("the trainer hangs; its lease ends", extra={"seconds": HUNG})
                self._hung()
                return
            try:
                self._renew()
            except StoreUnavailable:
                continue

    def _stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None


def lease(connection: Connection) -> Lease:
    return _parsed(row_reads.note(connection, _NAME))


def _parsed(said: str | None) -> Lease:
    return msgspec.json.decode(said, type=Lease) if said else Lease()


def _put(connection: Connection, value: Lease) -> None:
    row_reads.put_note(connection, _NAME, msgspec.json.encode(value).decode())


def someone_trains(store: Store) -> bool:
    """Return whether a process holds the lease and has renewed it lately."""
    with store.reading() as connection:
        return trains(lease(connection), time.time())


def trains(found: Lease, now: float) -> bool:
    """Return whether a lease is held at this time."""
    return bool(found.holder) and now - found.at <= LEASE + _FAR
