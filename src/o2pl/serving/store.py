"""The store: a thin object over functions of a connection, each call one transaction.

with o2pl.serving.store.Store.open("o2pl.sqlite") as store:
    made = store.add_application("shop")
    store.role_of(made.read_key)  # Role(application_id=1, role='read')
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from sqlalchemy import Connection, Engine

from o2pl.serving import applications, entries, migrations, reads, versions
from o2pl.serving.applications import Application, NewApplication, Role
from o2pl.serving.database import ENTRIES, OUTCOMES, driving, make_engine, must_stay, reading, writing
from o2pl.serving.entries import Answer, Entry
from o2pl.serving.reads import Rows
from o2pl.serving.schema import activations, decisions, outcomes, rewards
from o2pl.serving.settings import Kind, Settings


class Store:
    """What the service keeps. Threads may share it; `StoreUnavailable` where the database cannot be used."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @classmethod
    def open(cls, database: str | os.PathLike[str]) -> Store:
        """A path, made where there is none, or `postgresql://…`. An older store is brought up to this version."""
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
        """A snapshot, for several of the functions in `reads`, `versions` and `applications` together."""
        return reading(self.engine)

    def writing(self, lock: int | None = None) -> AbstractContextManager[Connection]:
        """A transaction, for several writes that belong together. `database.OUTCOMES` is the lock of the trainer."""
        return writing(self.engine, lock)

    # -- applications and keys

    def applications(self) -> list[Application]:
        with self.reading() as connection:
            return applications.all_applications(connection)

    def application(self, which: str | int) -> Application:
        """By its name or number."""
        with self.reading() as connection:
            return applications.find_application(connection, which)

    def add_application(
        self, name: str, kind: Kind | str = Kind.RANKED, settings: Settings | None = None
    ) -> NewApplication:
        """Its number, write key and read key. The keys are not stored: this is the one time to see them."""
        with self.writing() as connection:
            return applications.add_application(connection, name, Kind(kind), settings or Settings())

    def add_key(self, application_id: int, role: str) -> str:
        with self.writing() as connection:
            return applications.add_key(connection, application_id, role)

    def keys(self) -> Rows:
        """(digest, application_id, role) of each, for `applications.role_among`."""
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
        """One transaction, on disk when this returns; an answer for each entry."""
        with driving(self.engine, ENTRIES) as raw:
            return entries.add_entries(raw, self.engine.dialect.name, batch)

    def decisions_after(self, application_id: int, after: int = 0, limit: int = 1000) -> Rows:
        with self.reading() as connection:
            return reads.rows_after(connection, decisions, application_id, after, limit)

    def rewards_after(self, application_id: int, after: int = 0, limit: int = 1000) -> Rows:
        with self.reading() as connection:
            return reads.rows_after(connection, rewards, application_id, after, limit)

    def activations_after(self, application_id: int, after: int = 0, limit: int = 1000) -> Rows:
        with self.reading() as connection:
            return reads.rows_after(connection, activations, application_id, after, limit)

    def outcomes_after(self, application_id: int, after: int = 0, limit: int = 1000) -> Rows:
        with self.reading() as connection:
            return reads.rows_after(connection, outcomes, application_id, after, limit)

    def waited(self, application_id: int, decided_before: float, after: int = 0, limit: int = 1000) -> Rows:
        """(id, event_id, slot, decided_at) of decisions that count, have no outcome, and whose wait is over."""
        with self.reading() as connection:
            return reads.waited(connection, application_id, decided_before, after, limit)

    def count_decisions(self, application_id: int) -> int:
        with self.reading() as connection:
            return reads.count_decisions(connection, application_id)

    def event(self, application_id: int, event_id: str) -> dict[str, Rows]:
        """`decisions`, `rewards`, `activations` and `outcomes` of one."""
        with self.reading() as connection:
            return reads.event(connection, application_id, event_id)

    # -- what the trainer makes of them

    def add_outcomes(self, rows: Sequence[dict[str, Any]]) -> int:
        """How many are new. A thousand at a time: servers wait meanwhile, on SQLite."""
        with self.writing(OUTCOMES) as connection:
            return reads.add_outcomes(connection, rows)

    def learned_rows(self, application_id: int, after: int = 0, limit: int = 1000) -> Rows:
        """Outcomes after an id, with the columns of their decisions."""
        with self.reading() as connection:
            return reads.learned_rows(connection, application_id, after, limit)

    def put_minutes(self, rows: Sequence[dict[str, Any]]) -> None:
        with self.writing() as connection:
            reads.put_minutes(connection, rows)

    def minutes(self, application_id: int, first: int, last: int) -> Rows:
        with self.reading() as connection:
            return reads.read_minutes(connection, application_id, first, last)

    def add_model(self, application_id: int, body: bytes, outcome_id: int, rows: int) -> int:
        """Its version."""
        with self.writing() as connection:
            return versions.add_model(connection, application_id, body, outcome_id, rows)

    def served_version(self, application_id: int) -> int:
        """0: before the first model."""
        with self.reading() as connection:
            return versions.served_version(connection, application_id)

    def model_body(self, application_id: int, version: int) -> bytes:
        with self.reading() as connection:
            return versions.model_body(connection, application_id, version)

    def model_versions(self, application_id: int, limit: int = 1000) -> Rows:
        """All columns but the body, the newest first."""
        with self.reading() as connection:
            return versions.model_versions(connection, application_id, limit)

    def withdraw(self, application_id: int, version: int, why: str | None) -> None:
        """why=None: it may be served again."""
        with self.writing() as connection:
            versions.withdraw(connection, application_id, version, why)

    def pin(self, application_id: int, version: int | None) -> None:
        """Serve this version whatever comes; None: the newest again."""
        with self.writing() as connection:
            versions.pin(connection, application_id, version)

    # -- notes that processes leave for each other

    def note(self, name: str) -> str | None:
        with self.reading() as connection:
            return reads.note(connection, name)

    def put_note(self, name: str, value: str) -> None:
        with self.writing() as connection:
            reads.put_note(connection, name, value)
