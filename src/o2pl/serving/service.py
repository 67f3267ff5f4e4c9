"""A server's parts, put together: the store, its writer, what is served, who may call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from o2pl.serving.entries import Answer, DecisionRow, Entry
from o2pl.serving.guarding import Guard, Limits
from o2pl.serving.metrics import Metrics
from o2pl.serving.models import Models, Served
from o2pl.serving.problems import Problem, Reply
from o2pl.serving.store import Store
from o2pl.serving.writer import Writer


class Service:
    """All that handlers need. `refresh` it before the first call."""

    def __init__(self, store: Store, limits: Limits | None = None) -> None:
        self.store, self.writer = store, Writer(store)
        self.models = Models(store)
        self.guard = Guard(self.models, limits or Limits())
        self.metrics = Metrics(self.writer)
        self.models.changed = self.metrics.model_changed
        self.ready = False
        self._looked = 0.0

    async def refresh(self) -> None:
        """See at once what was just changed in the store."""
        await asyncio.get_running_loop().run_in_executor(None, self.models.refresh)

    async def look_again(self) -> None:
        """For a key that is not known: it may be new. At most once a second."""
        now = time.monotonic()
        if now - self._looked >= 1:
            self._looked = now
            await self.refresh()

    async def blocking(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Of the store, in a thread: calls go on meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)

    async def write(self, entries: Sequence[Entry]) -> list[Answer]:
        """On disk when this returns."""
        return await self.writer.write(entries)

    async def store_decision(self, served: Served, entry: DecisionRow | tuple[DecisionRow, ...], code: str) -> None:
        """On disk when this returns; refuses an event id that is there already."""
        (answer,) = await self.writer.write((entry,))
        if answer is not Answer.STORED:
            row: DecisionRow = entry if isinstance(entry, DecisionRow) else entry[0]
            raise Problem(409, code, f"eventId: found {row.event_id!r}, which is there already; expected a new one")
        self.metrics.decided(served, 1 if isinstance(entry, DecisionRow) else len(entry))

    def stop(self) -> None:
        """What waits is written; then the store is closed."""
        self.writer.stop()
        self.store.close()


class Call(NamedTuple):
    """One that has passed the guard."""

    service: Service
    served: Served
    body: bytes
    event_id: str = ""  # of the path


class Route(NamedTuple):
    """A path, what serves it, and what is said of it in the OpenAPI document."""

    method: str
    path: str  # with `{eventId}` where an event's id stands
    handler: Callable[[Call], Awaitable[Reply]]
    code: str  # of the error where what was sent is wrong
    summary: str
    role: str = "write"
    request: Any = None  # the type of the body; `bytes`: a file
    answer: Any = None  # the type of the answer's body; None: there is none; `bytes`: a file
    status: int = 200
    documented: bool = True  # False: another name of a path that is
    large: bool = False  # a model is sent
    tag: str = "decisions"


def in_versions(routes: Sequence[Route], prefix: str, versions: Sequence[str], shown: str) -> list[Route]:
    """The routes in each version of an API; the document shows one of them."""
    return [
        route._replace(path=f"{prefix}/{version}{route.path}", documented=version == shown)
        for version in versions
        for route in routes
    ]


def decoder(kind: Any) -> Callable[[bytes], Any]:
    """Of bodies of a type; bytes that are not UTF-8 are refused, also where the text is kept as it is."""
    decode = msgspec.json.Decoder(kind).decode

    def decoded(body: bytes) -> Any:
        if not body.isascii():
            body.decode()
        return decode(body)

    return decoded
