"""Erasure of a person's events, selected by context, from the store and from exported files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, select

from o2pl.formats.erasing import Where, erase
from o2pl.serving import row_reads
from o2pl.serving.applications import Application
from o2pl.serving.database import pragma
from o2pl.serving.deletion import AT_ONCE, delete_events
from o2pl.serving.export import event_name, exports
from o2pl.serving.schema import decisions
from o2pl.serving.store import Store

_ROWS = 2000  # contexts per read


class Forgotten(NamedTuple):
    """The result of `forget`."""

    decisions: int
    files: dict[Path, int]  # rows removed from exported files
    missing: list[Path]  # exported files that no longer exist


def forget(
    store: Store,
    applications: Sequence[Application],
    where: Where | None = None,
    events: Sequence[str] = (),
    files: Sequence[Path] = (),
    progress: Callable[[int], None] | None = None,
) -> Forgotten:
    """Erase the events that match `where`, and these events, also from exported files and the given files.

    The trainer is asked to retrain on the remaining rows (`refit_wanted`).
    """
    names, gone = set(events), 0
    for application in applications:
        chosen = list(dict.fromkeys([*events, *(_found(store, application.id, where, progress) if where else [])]))
        erased = _erased(store, application.id, chosen)
        gone, names = gone + len(erased), names | erased
    if gone and store.engine.dialect.name == "sqlite":
        pragma(store.engine, "wal_checkpoint(TRUNCATE)")  # the write-ahead log must not keep erased data either
    known = list(dict.fromkeys([*exports(store), *(path.resolve() for path in files)]))
    rewritten = {path: erase(path, where, names) for path in known if path.exists()}
    return Forgotten(gone, rewritten, [path for path in known if not path.exists()])


def _found(store: Store, application_id: int, where: Where, progress: Callable[[int], None] | None) -> Iterator[str]:
    """Yield matching events. Every context is parsed, so that none is missed."""
    columns = (decisions.c.id, decisions.c.event_id, decisions.c.context)
    after = done = 0
    while True:
        query = select(*columns).where(decisions.c.application_id == application_id, decisions.c.id > after)
        with store.reading() as connection:
            rows = connection.execute(query.order_by(decisions.c.id).limit(_ROWS)).all()
        if not rows:
            return
        yield from (row.event_id for row in rows if where.matches(bytes(row.context)))
        after, done = rows[-1].id, done + len(rows)
        if progress is not None:
            progress(done)


def _erased(store: Store, application_id: int, events: Sequence[str]) -> set[str]:
    """Erase events from the tables and the file's bytes. Returns the decisions' names in exported files."""
    gone: set[str] = set()
    for at in range(0, len(events), AT_ONCE):
        some = events[at : at + AT_ONCE]
        with store.writing() as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA secure_delete=ON")  # overwrite deleted data with zeros
            query = select(decisions.c.event_id, decisions.c.slot, decisions.c.decided_at).where(
                decisions.c.application_id == application_id, decisions.c.event_id.in_(some)
            )
            rows = connection.execute(query).all()
            if rows:
                delete_events(connection, application_id, some)
                want_refit(connection, application_id, [int(row.decided_at // 60) for row in rows])
        gone.update(event_name(row) for row in rows)
    return gone


# -- requests to the trainer


def want_refit(connection: Connection, application_id: int, minutes: Sequence[int]) -> None:
    """Ask the trainer to retrain, and to recompute the sums of these minutes."""
    number, older = refit_wanted(connection, application_id)
    told = {"number": number + 1, "minutes": sorted({*older, *minutes})}
    row_reads.put_note(connection, _note(application_id), json.dumps(told))


def refit_wanted(connection: Connection, application_id: int) -> tuple[int, list[int]]:
    """Return the number of refit requests, and the minutes whose sums have changed. Trainers remember the number."""
    told = json.loads(row_reads.note(connection, _note(application_id)) or '{"number": 0, "minutes": []}')
    return told["number"], told["minutes"]


def recounted(connection: Connection, application_id: int, minutes: Sequence[int]) -> None:
    """Mark the sums of these minutes as recomputed."""
    number, wanted = refit_wanted(connection, application_id)
    told = {"number": number, "minutes": sorted(set(wanted) - set(minutes))}
    row_reads.put_note(connection, _note(application_id), json.dumps(told))


def _note(application_id: int) -> str:
    return f"refit of application {application_id}"
