"""Group commit: one thread writes all pending entries in one transaction, then answers all callers.

The longer a commit takes, the more entries the next one contains, so one flush to disk serves many calls.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from o2pl.serving.batch_writes import Answer, Entry, check_entry
from o2pl.serving.database import StoreUnavailable
from o2pl.serving.sqlite_checkpoints import Checkpoints
from o2pl.serving.store import Store

_MOST = 512  # entries per transaction
# Seconds to wait for more entries when several callers are active, if the last commit took longer than that: fewer
# commits, each with a fixed cost. After a fast one, a wait would only make callers wait.
_GATHER = 0.002


class _Waiting(NamedTuple):
    entries: Sequence[Entry]
    future: Any  # asyncio future, or concurrent future if loop is None
    loop: asyncio.AbstractEventLoop | None


class Writer:
    """The writer, shared by threads and coroutines. room: limit of pending entries; beyond it, callers get an error."""

    def __init__(self, store: Store, room: int = 4096) -> None:
        self._store, self._room = store, room
        self._queue: deque[_Waiting] = deque()
        self._waiting = 0  # entries in the queue and in the current transaction
        self._stopping = False
        self._checkpoints = Checkpoints(store.engine)
        self._wake = threading.Condition(threading.Lock())
        self._thread = threading.Thread(target=self._run, name="o2pl writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Number of entries that are not on disk yet."""
        return self._waiting

    async def write(self, entries: Sequence[Entry]) -> list[Answer]:
        """Write entries. They are on disk when this returns; raises `StoreUnavailable` if that is not certain."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._put(_Waiting(entries, future, loop))
        return await future  # type: ignore[no-any-return]

    def submit(self, entries: Sequence[Entry]) -> Future[list[Answer]]:
        """Like `write`, for threads."""
        future: Future[list[Answer]] = Future()
        self._put(_Waiting(entries, future, None))
        return future

    def _put(self, waiting: _Waiting) -> None:
        for entry in waiting.entries:
            check_entry(entry)
        size = len(waiting.entries)
        with self._wake:
            if self._stopping:
                raise StoreUnavailable("the service is stopping")
            if self._waiting + size > self._room:
                raise StoreUnavailable(f"{self._waiting} entries are pending, expected at most {self._room}")
            self._waiting += size
            self._queue.append(waiting)
            if len(self._queue) == 1:
                self._wake.notify()

    def stop(self) -> None:
        """Write pending entries, then stop. New entries are rejected."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join()
        self._checkpoints.stop()

    def _run(self) -> None:
        several, took = False, 0.0
        while True:
            with self._wake:
                while not self._queue and not self._stopping:
                    self._wake.wait()
                if not self._queue:
                    return
            if several and took > _GATHER and not self._stopping:
                time.sleep(_GATHER)
            with self._wake:
                taken = self._take()
            began = time.perf_counter()
            written = self._written(taken)
            took = time.perf_counter() - began
            answer(written)
            several = len(taken) > 1
            with self._wake:
                self._waiting -= sum(len(each.entries) for each in taken)
            if self._checkpoints.due:
                self._checkpoints.copy()

    def _take(self) -> list[_Waiting]:
        taken: list[_Waiting] = []
        size = 0
        while self._queue and (not taken or size + len(self._queue[0].entries) <= _MOST):
            taken.append(self._queue.popleft())
            size += len(taken[-1].entries)
        return taken

    def _written(self, taken: list[_Waiting]) -> list[tuple[_Waiting, Any]]:
        """Write a batch. Returns each item with its answers or its error."""
        try:
            answers = iter(self._store.add([entry for each in taken for entry in each.entries]))
            return [(each, [next(answers) for _ in each.entries]) for each in taken]
        except StoreUnavailable as error:
            return [(each, error) for each in taken]
        except Exception as error:  # one entry is invalid: write the others one by one
            if len(taken) == 1:
                return [(taken[0], error)]
            return [pair for each in taken for pair in self._written([each])]


def answer(pairs: list[tuple[_Waiting, Any]]) -> None:
    """Wake up all callers; each event loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Any, Any]]] = {}
    for waiting, found in pairs:
        if waiting.loop is None:
            _settle([(waiting.future, found)])
        else:
            by_loop.setdefault(waiting.loop, []).append((waiting.future, found))
    for loop, settled in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, settled)
        except RuntimeError:  # the loop is closed: nobody is waiting
            continue


def _settle(pairs: list[tuple[Any, Any]]) -> None:
    for future, found in pairs:
        if future.cancelled() or future.done():  # the caller is gone; its entries are on disk anyway
            continue
        put: Callable[[Any], None] = future.set_exception if isinstance(found, Exception) else future.set_result
        put(found)
