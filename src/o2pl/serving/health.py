"""What a server watches: whether the store can be written, whether somebody trains, and how far learning is behind."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, func, select

from o2pl.serving import control_comparison, row_reads, training_batches, versions
from o2pl.serving.applications import Application, all_applications
from o2pl.serving.database import StoreUnavailable
from o2pl.serving.reward_join import GRACE, Joined
from o2pl.serving.schema import decisions, models, outcomes, rewards
from o2pl.serving.store import Store
from o2pl.serving.trainer_lease import lease, trains

_EVERY = 5.0  # seconds
_COUNTED = 10_000  # limit of counting rows that are not learned yet
_LOGGER = logging.getLogger("o2pl.serving")


class Lag(NamedTuple):
    """How far learning is behind: rewards and outcomes that are not learned yet, and the age of the oldest."""

    events: int
    seconds: float


class State(NamedTuple):
    """Of one application."""

    name: str
    lag: Lag
    age: float | None  # seconds since the served model was published; None: no model
    failed: bool  # learning fails, and is tried again
    alerts: int = 0  # of guardrails, in the comparison with the control group


def lag_of(connection: Connection, application: Application, now: float) -> Lag:
    said, learned = (
        row_reads.note(connection, f"joined:{application.id}"),
        training_batches.learned(connection, application.id),
    )
    joined = msgspec.json.decode(said, type=Joined) if said else Joined()
    since, events = [now], 0
    for table, column, after in (
        (outcomes, outcomes.c.joined_at, learned.outcome if learned else 0),
        (rewards, rewards.c.received_at, joined.reward),
    ):
        new = (table.c.application_id == application.id, table.c.id > after)
        first = connection.scalar(select(column).where(*new).order_by(table.c.id).limit(1))
        if first is not None:
            counted = select(table.c.id).where(*new).limit(_COUNTED).subquery()
            events += int(connection.scalar(select(func.count()).select_from(counted)) or 0)
            since.append(first)
    waiting = select(decisions.c.decided_at).where(
        decisions.c.application_id == application.id, decisions.c.id > joined.decision
    )
    oldest = connection.scalar(waiting.order_by(decisions.c.id).limit(1))
    if oldest is not None:  # its wait time may be over
        since.append(oldest + application.settings.reward_wait_time.total_seconds() + GRACE)
    return Lag(events, now - min(since))


def state_of(connection: Connection, application: Application, now: float) -> State:
    served = versions.served_version(connection, application.id)
    query = select(models.c.created_at).where(
        models.c.application_id == application.id, models.c.version == served
    )  # fmt: skip
    published = connection.scalar(query)
    failed = bool(row_reads.note(connection, f"{row_reads.FAILED}{application.id}"))
    age = None if published is None else now - published
    group = control_comparison.compared(connection, application)
    alerts = 0 if group is None else len(group.alerts)
    return State(application.name, lag_of(connection, application, now), age, failed, alerts)


class LearningWatch:
    """Looks every few seconds. most: seconds that learning may be behind before the server is not ready; 0: any."""

    def __init__(self, store: Store, most: float = 0.0) -> None:
        self._store, self._most = store, most
        self.unavailable: str | None = None  # why the store cannot be read or written
        self.trainer = False
        self.states: list[State] = []

    def look(self) -> None:
        now = time.time()
        try:
            self._store.put_note("probe", f"{now:.0f}")  # a store may be readable, and full or read-only
            with self._store.reading() as connection:
                self.trainer = trains(lease(connection), now)
                self.states = [state_of(connection, each, now) for each in all_applications(connection)]
            self.unavailable = None
        except StoreUnavailable as error:
            if self.unavailable is None:
                _LOGGER.error("the store cannot be read and written", extra={"reason": str(error)})
            self.unavailable = str(error)

    def problems(self) -> list[str]:
        """Return why the server is not ready; without names, since anybody may ask."""
        found = [] if self.unavailable is None else ["the database is away, full or read-only"]
        behind = max((each.lag.seconds for each in self.states if not each.failed), default=0.0)
        if 0 < self._most < behind:
            found.append(f"learning is {behind:.0f} s behind, expected at most {self._most:g}")
        return found

    async def follow(self, every: float = _EVERY) -> None:
        """Call `look` forever."""
        loop: Any = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(every)
            try:
                await loop.run_in_executor(None, self.look)
            except Exception:
                _LOGGER.exception("looking at the store failed")
