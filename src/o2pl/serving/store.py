"""The store: a thin object over functions of a connection; each call is one transaction.

with o2pl.serving.store.Store.open("o2pl.sqlite") as store:
    made = store.add_application("shop")
    store.role_of(made.read_key)  # Role(application_id=1, role='read')
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any

from sqlalchemy import Connection, Engine

from o2pl.serving import applications, batch_writes, migrations, row_reads, versions
from o2pl.serving.applications import Application, NewApplication, Role
from o2pl.serving.batch_writes import Answer, Entry
from o2pl.serving.database import ENTRIES, OUTCOMES, driving, make_engine, must_stay, reading, writing
from o2pl.serving.row_reads import Rows
from o2pl.serving.schema import activations, decisions, outcomes, rewards
from o2pl.serving.settings import Kind, Settings


class Store:
    """The database of the service. Thread-safe. Raises `StoreUnavailable` if the database is not available."""

    def __init__(self, engine: Engine, fence: Callable[[Connection], None] | None = None) -> None:
        self.engine, self._fence = engine, fence

    def fenced(self, fence: Callable[[Connection], None]) -> Store:
        """Return the same store, which asks before each of its writes: `fence` raises if it may write no more."""
        return Store(self.engine, fence)

    @classmethod
    def open(cls, database: str | os.PathLike[str]) -> Store:
        """Open a SQLite file (created if missing) or `postgresql://…`. An older store is upgraded."""
        engine = make_engine(database)
        try:
            migrations.prepare(engine)
            must_stay(engine)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine)

    def close(self) -> None:
        self.engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def reading(self) -> AbstractContextManager[Connection]:
        """Open a snapshot, for several functions of `reads`, `versions` and `applications` together."""
        return reading(self.engine)

    @contextmanager
    def writing(self, lock: int | None = None) -> Iterator[Connection]:
        """Open a transaction, for several related writes. `database.OUTCOMES` is the trainer's lock."""
        with writing(self.engine, lock) as connection:
            if self._fence is not None:
                self._fence(connection)
            yield connection

    # -- applications and keys

    def applications(self) -> list[Application]:
        with self.reading() as connection:
            return applications.all_applications(connection)

    def application(self, which: str | int) -> Application:
        """Return the application with this name or number."""
        with self.reading() as connection:
            return applications.find_application(connection, which)

    def add_application(
        self, name: str, kind: Kind | str = Kind.RANKED, settings: Settings | None = None
    ) -> NewApplication:
        """Add an application. Returns its number, write key and read key. The keys are not stored."""
        with self.writing() as connection:
            return applications.add_application(connection, name, Kind(kind), settings or Settings())

    def add_key(self, application_id: int, role: str) -> str:
        with self.writing() as connection:
            return applications.add_key(connection, application_id, role)

    def keys(self) -> Rows:
        """Return (digest, application_id, role, expires_at) of all keys, for `applications.role_among`."""
        with self.reading() as connection:
            return applications.all_keys(connection)

    def role_of(self, key: str) -> Role | None:
        return applications.role_among(self.keys(), key)

    def settings(self, application_id: int) -> Settings:
        return self.application(application_id).settings

    def put_settings(self, application_id: int, settings: Settings) -> None:
        with self.writing() as connection:
            applications.put_settings(connection, application_id, settings)

    # -- decisions, rewards and activations

    def add(self, batch: Sequence[Entry]) -> list[Answer]:
        """Write entries in one transaction; they are on disk when this returns. Returns an answer per entry."""
        with driving(self.engine, ENTRIES) as raw:
            return batch_writes.add_entries(raw, self.engine.dialect.name, batch)

    def decisions_after(self, application_id: int, after: int = 0, limit: int = 1000) -> Rows:
        with self.reading() as connection:
            return row_reads.rows_after(connection, decisions, application_id, after, limit)

    def rewards_after(self, application_id: int, after: int = 0, limit: int = 1000) -> Rows:
        with self.reading() as connection:
            return row_reads.rows_after(connection, rewards, application_id, after, limit)

    def activations_after(self, application_id: int, after: int = 0, limit: int = 1000) -> Rows:
        with self.reading() as connection:
            return row_reads.rows_after(connection, activations, application_id, after, limit)

    def outcomes_after(self, application_id: int, after: int = 0, limit: int = 1000) -> Rows:
        with self.reading() as connection:
            return row_reads.rows_after(connection, outcomes, application_id, after, limit)

    def waited(self, application_id: int, decided_before: float, after: int = 0, limit: int = 1000) -> Rows:
        """Return (id, event_id, slot, decided_at) of counting decisions without an outcome whose wait time is over."""
        with self.reading() as connection:
            return row_reads.waited(connection, application_id, decided_before, after, limit)

    def count_decisions(self, application_id: int) -> int:
        with self.reading() as connection:
            return row_reads.count_decisions(connection, application_id)

    def event(self, application_id: int, event_id: str) -> dict[str, Rows]:
        """Return `decisions`, `rewards`, `activations` and `outcomes` of an event."""
        with self.reading() as connection:
            return row_reads.event(connection, application_id, event_id)

    # -- written by the trainer

    def add_outcomes(self, rows: Sequence[dict[str, Any]]) -> int:
        """Add outcomes. Returns how many are new. In batches of a thousand: with SQLite, servers wait for each."""
        with self.writing(OUTCOMES) as connection:
            return row_reads.add_outcomes(connection, rows)

    def learned_rows(self, application_id: int, after: int = 0, limit: int = 1000) -> Rows:
        """Return outcomes after an id, with the columns of their decisions."""
        with self.reading() as connection:
            return row_reads.learned_rows(connection, application_id, after, limit)

    def put_minutes(self, rows: Sequence[dict[str, Any]]) -> None:
        with self.writing() as connection:
            row_reads.put_minutes(connection, rows)

    def minutes(self, application_id: int, first: int, last: int) -> Rows:
        with self.reading() as connection:
            return row_reads.read_minutes(connection, application_id, first, last)

    def add_model(self, application_id: int, body: bytes, outcome_id: int, rows: int) -> int:
        """Publish a model. Returns its version."""
        with self.writing() as connection:
            return versions.add_model(connection, application_id, body, outcome_id, rows)

    def served_version(self, application_id: int) -> int:
        """Return the served version; 0: before the first model."""
        with self.reading() as connection:
            return versions.served_version(connection, application_id)

    def model_body(self, application_id: int, version: int) -> bytes:
        with self.reading() as connection:
            return versions.model_body(connection, application_id, version)

    def model_versions(self, application_id: int, limit: int = 1000) -> Rows:
        """Return all columns but the body, newest first."""
        with self.reading() as connection:
            return versions.model_versions(connection, application_id, limit)

    def withdraw(self, application_id: int, version: int, why: str | None) -> None:
        """Withdraw a version; why=None: allow it again."""
        with self.writing() as connection:
            versions.withdraw(connection, application_id, version, why)

    def pin(self, application_id: int, version: int | None) -> None:
        """Pin this version; None: serve the newest again."""
        with self.writing() as connection:
            versions.pin(connection, application_id, version)

    # -- notes shared between processes

    def note(self, name: str) -> str | None:
        with self.reading() as connection:
            return row_reads.note(connection, name)

    def put_note(self, name: str, value: str) -> None:
        with self.writing() as connection:
            row_reads.put_note(connection, name, value)
