"""Database connections of the service: SQLite in a file, or PostgreSQL."""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy import exc as failures

from o2pl.errors import InvalidInput
from o2pl.extras import extra

DEFAULT = "o2pl.sqlite"
_VARIABLE = "O2PL_DATABASE"
_IDLE = 1.0  # seconds
_PATIENCE = 5.0  # seconds to wait for the database, or for a free connection in the pool
_TURN = 20.0  # seconds to wait for another writer: SQLite has no queue, and slow disks cause long waits
_PRAGMAS = (
    f"busy_timeout={int(_TURN * 1000)}",
    "journal_mode=WAL",
    "synchronous=FULL",  # commits are durable
    "wal_autocheckpoint=16384",  # pages: used if no `Checkpoints` runs, or it falls behind
    "cache_size=-16384",
    "temp_store=MEMORY",
)


class StoreUnavailable(OSError):
    """Raised if the database is gone, locked, full or too busy. Nothing was acknowledged; try again later."""


def where_is(database: str | os.PathLike[str] | None) -> str | os.PathLike[str]:
    """Return the given database, or O2PL_DATABASE, or the default file in the working folder."""
    return database or os.environ.get(_VARIABLE) or DEFAULT


def make_engine(database: str | os.PathLike[str]) -> Engine:
    """Create the engine. database: the path of a SQLite file, or a URL such as `postgresql://user@host/name`."""
    url = _url(database)
    if url.get_backend_name() == "sqlite":
        folder = Path(str(url.database)).resolve().parent
        if not folder.is_dir():
            raise InvalidInput(f"database: found no folder {str(folder)!r}, expected one for {url.database}")
        make_private(str(url.database))
        return _listening(create_engine(url, hide_parameters=True, pool_timeout=_PATIENCE, max_overflow=20))
    with extra("postgres", "a PostgreSQL database"):
        import psycopg  # noqa: F401
    engine = create_engine(
        url,
        hide_parameters=True,  # parameters contain contexts
        pool_timeout=_PATIENCE,
        max_overflow=20,
        connect_args={"connect_timeout": int(_PATIENCE), "application_name": "o2pl"},
    )
    return _pinging(engine)


def make_private(file: str) -> None:
    """Create a file that only its owner can read; SQLite gives its other files the same permissions."""
    with suppress(FileExistsError, OSError):  # SQLite says what is wrong
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def check_whole(engine: Engine) -> None:
    """Refuse a damaged SQLite file. It reads the whole file."""
    if engine.dialect.name == "sqlite":
        try:
            found = str(pragma(engine, "quick_check(1)")[0])
        except sqlite3.DatabaseError as error:
            found = str(error)
        if found != "ok":
            raise damaged(str(engine.url.database), found)


def damaged(file: str, found: str) -> InvalidInput:
    said = " ".join(found.split())
    return InvalidInput(
        f"database: found a damaged file {file!r} ({said}), expected a whole one: stop the service, and put the newest"
        f" backup (`o2pl backup`) in its place; what can be saved of it: sqlite3 {file} .recover"
    )


def _pinging(engine: Engine) -> Engine:
    """Test connections that were idle for a while before use: they die with the database server."""

    @event.listens_for(engine, "checkout")
    def checked_out(raw: Any, record: Any, _: Any) -> None:
        if time.monotonic() - record.info.get("used", math.inf) > _IDLE:
            try:
                engine.dialect.do_ping(raw)
            except engine.dialect.loaded_dbapi.Error:
                raise failures.DisconnectionError from None  # retry with a new connection

    @event.listens_for(engine, "checkin")
    def checked_in(_: Any, record: Any) -> None:
        record.info["used"] = time.monotonic()

    return engine


def _url(database: str | os.PathLike[str]) -> URL:
    text = os.fspath(database)
    if "://" not in text:
        return URL.create("sqlite", database=text)
    try:
        url = make_url(text)
    except failures.ArgumentError:
        raise InvalidInput(f"database: found {_no_password(text)!r}, expected a path or postgresql://…") from None
    kind = url.get_backend_name()
    if kind in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if kind == "sqlite" and url.database and url.database != ":memory:":
        return URL.create("sqlite", database=url.database)
    raise InvalidInput(f"database: found {_no_password(text)!r}, expected the path of a SQLite file or postgresql://…")


def _no_password(text: str) -> str:
    start, at, rest = text.rpartition("@")
    return f"{start.partition('://')[0]}://…@{rest}" if at else text


def _listening(engine: Engine) -> Engine:
    """Start SQLite transactions explicitly; writing ones take the lock at once."""

    file = str(engine.url.database)

    @event.listens_for(engine, "connect")
    def connected(raw: Any, record: Any) -> None:
        raw.isolation_level = None  # no implicit BEGIN
        for each in _PRAGMAS:
            raw.execute(f"PRAGMA {each}")
        record.info["file"] = _identity(file)

    @event.listens_for(engine, "checkout")
    def checked_out(raw: Any, record: Any, _: Any) -> None:
        """Reject a connection whose file was deleted or replaced: writes would be lost."""
        if record.info["file"] != _identity(file):
            raise failures.DisconnectionError  # retry with a new connection

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        writes = connection.get_execution_options().get("o2pl_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def must_stay(engine: Engine) -> None:
    """From now on, do not create a new file if the database file is gone."""
    if engine.dialect.name == "sqlite":

        @event.listens_for(engine, "do_connect")
        def connecting(*_: Any) -> None:
            if _identity(str(engine.url.database)) is None:
                raise sqlite3.OperationalError("the file is gone")


def _identity(file: str) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


# PostgreSQL locks, one for each sequence of ids that readers rely on; SQLite has one writer at a time.
ENTRIES, OUTCOMES, SCHEMA, TRAINER = 0x6F32706C0001, 0x6F32706C0002, 0x6F32706C0003, 0x6F32706C0010
_LOCK = "SELECT pg_advisory_xact_lock(%s)"


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Open a snapshot of the database."""
    with _said(engine), engine.connect() as connection, connection.begin():
        yield connection


@contextmanager
def writing(engine: Engine, lock: int | None = None) -> Iterator[Connection]:
    """Open a transaction: everything written in it is on disk when the context ends, or nothing is.

    lock: PostgreSQL assigns ids before rows become visible; writers with the same lock do both in the same order.
    """
    with (
        _said(engine),
        engine.connect().execution_options(o2pl_writes=True) as connection,
        connection.begin(),
    ):
        if lock is not None and connection.dialect.name == "postgresql":
            connection.exec_driver_sql(_LOCK, (lock,))
        yield connection


@contextmanager
def driving(engine: Engine, lock: int) -> Iterator[Any]:
    """Like `writing`, for frequent writes: the raw driver connection takes half the time for a batch.

    It has `execute(text, values)`, with `?` or `%s` as placeholders.
    """
    pooled = _pooled(engine)
    raw: Any = pooled.driver_connection
    try:
        if engine.dialect.name == "sqlite":
            raw.execute("BEGIN IMMEDIATE")
            yield raw
            raw.commit()
        else:
            with raw.pipeline():  # pipelined: no round trip per statement
                raw.execute(_LOCK, (lock,))
                yield raw
                raw.commit()
    except BaseException as error:
        pooled.invalidate()  # its state is unknown
        if isinstance(error, engine.dialect.loaded_dbapi.Error) and not isinstance(error, _of_statements(engine)):
            raise _unavailable(engine, error) from error
        raise
    finally:
        pooled.close()


def pragma(engine: Engine, text: str) -> Any:
    """Run a SQLite PRAGMA outside of transactions. Returns its first row."""
    pooled = _pooled(engine)
    try:
        raw: Any = pooled.driver_connection
        return raw.execute(f"PRAGMA {text}").fetchone()
    finally:
        pooled.close()


def _pooled(engine: Engine) -> Any:
    try:
        with _said(engine):
            return engine.raw_connection()
    except engine.dialect.loaded_dbapi.Error as error:  # while replacing a lost connection
        raise _unavailable(engine, error) from error


def _of_statements(engine: Engine) -> tuple[type[Exception], ...]:
    driver = engine.dialect.loaded_dbapi
    return driver.IntegrityError, driver.DataError, driver.ProgrammingError


_OURS = (
    failures.IntegrityError,
    failures.DataError,
    failures.ProgrammingError,
)  # errors of a statement, not of the database


@contextmanager
def _said(engine: Engine) -> Iterator[None]:
    try:
        yield
    except _OURS:
        raise
    except (failures.DBAPIError, failures.TimeoutError) as error:
        raise _unavailable(engine, getattr(error, "orig", None) or error) from error


def _unavailable(engine: Engine, error: BaseException) -> Exception:
    reason = str(error).strip().partition("\n")[0]
    if "not a database" in reason:
        return InvalidInput(f"database: found {engine.url.database!r}, which is not a SQLite file")
    return StoreUnavailable(f"{engine.url.render_as_string(hide_password=True)}: {reason}")
