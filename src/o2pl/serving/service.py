"""The parts of a server: store, writer, served models, access control."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from o2pl.serving.access_control import AccessGuard, Limits
from o2pl.serving.batch_writes import Answer, DecisionRow, Entry, same_request
from o2pl.serving.health import LearningWatch
from o2pl.serving.metrics import ServiceMetrics
from o2pl.serving.models import Models, Served
from o2pl.serving.problems import ErrorBody, Problem, Reply
from o2pl.serving.store import Store
from o2pl.serving.tracing import Traces, Untraced
from o2pl.serving.writer import Writer


class Service:
    """Everything that handlers need. Call `refresh` before the first call."""

    def __init__(
        self, store: Store, limits: Limits | None = None, most_behind: float = 0.0, traces: Traces | None = None
    ) -> None:
        self.traces = traces or Untraced()
        self.store, self.writer = store, Writer(store)
        self.models = Models(store)
        self.guard = AccessGuard(self.models, limits or Limits())
        self.watch = LearningWatch(store, most_behind)
        self.metrics = ServiceMetrics(self.writer, self.watch)
        self.models.changed = self.metrics.model_changed
        self.ready = False
        self._looked = -math.inf  # never, on the monotonic clock

    async def refresh(self) -> None:
        """Reload after a change in the store."""
        await asyncio.get_running_loop().run_in_executor(None, self.models.refresh)

    async def look_again(self) -> None:
        """Reload for an unknown key, which may be new; at most once a second."""
        now = time.monotonic()
        if now - self._looked >= 1:
            self._looked = now
            await self.refresh()

    async def blocking(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a blocking function of the store in a thread."""
        return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)

    async def write(self, entries: Sequence[Entry]) -> list[Answer]:
        """Write entries; they are on disk when this returns."""
        with self.traces.span("store"):
            return await self.writer.write(entries)

    async def store_decision(
        self, served: Served, entry: DecisionRow | tuple[DecisionRow, ...], code: str
    ) -> Sequence[Any] | None:
        """Store a decision; it is on disk when this returns. Returns None, or the rows that this request made before.

        An event id that exists already, of another request, is an error.
        """
        (answer,) = await self.write((entry,))
        if answer is not Answer.STORED:
            return await self.made_before(entry, code)
        self.metrics.decided(served, 1 if isinstance(entry, DecisionRow) else len(entry))
        return None

    async def made_before(self, entry: DecisionRow | tuple[DecisionRow, ...], code: str) -> Sequence[Any]:
        """Return the stored rows of this request, which is sent again. Another request is an error."""
        rows = (entry,) if isinstance(entry, DecisionRow) else entry
        first: DecisionRow = rows[0]
        found = await self.blocking(self.store.event, first.application_id, first.event_id)
        known: Sequence[Any] = found["decisions"]
        if not same_request(rows, known):
            raise Problem(
                409, code, f"eventId: found {first.event_id!r}, which already exists with another request; expected a"
                " new id, or the same request again",
            )  # fmt: skip
        return known

    def stop(self) -> None:
        """Write pending entries, then close the store."""
        self.writer.stop()
        self.traces.close()
        self.store.close()


class Call(NamedTuple):
    """An authorised call."""

    service: Service
    served: Served
    body: bytes
    event_id: str = ""  # from the path, or what else stands for its placeholder
    if_match: str | None = None  # headers
    if_none_match: str | None = None
    headers: Sequence[tuple[bytes, bytes]] = ()  # all, with lower-case names

    def admit(self, decisions: int) -> None:
        """Count the decisions or rewards of a batch: the rate limit has counted one for the call."""
        self.service.guard.admit((self.served.application.id, "write"), decisions - 1)


class Route(NamedTuple):
    """A route: path, handler and OpenAPI description."""

    method: str
    path: str  # with `{eventId}` as placeholder
    handler: Callable[[Call], Awaitable[Reply]]
    code: str  # error code of invalid requests
    summary: str
    role: str = "write"
    request: Any = None  # type of the request body; `bytes`: a file
    answer: Any = None  # type of the response body; None: empty; `bytes`: a file
    error: Any = ErrorBody  # type of the body of 400 and 404
    status: int = 200
    documented: bool = True  # False: alias of a documented path
    large: bool = False  # the body is a model
    tag: str = "decisions"


def in_versions(routes: Sequence[Route], prefix: str, versions: Sequence[str], shown: str) -> list[Route]:
    """Return the routes for each API version; the document shows one of them."""
    return [
        route._replace(path=f"{prefix}{'/' * bool(version)}{version}{route.path}", documented=version == shown)
        for version in versions
        for route in routes
    ]


def decoder(kind: Any) -> Callable[[bytes], Any]:
    """Return a decoder of request bodies. Invalid UTF-8 is an error, even in text that is kept unparsed."""
    decode = msgspec.json.Decoder(kind).decode

    def decoded(body: bytes) -> Any:
        if not body.isascii():
            body.decode()
        return decode(body)

    return decoded
