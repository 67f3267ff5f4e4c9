"""Erasure of a person's events, selected by context, from the store and from exported files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from o2pl.errors import InvalidInput
from o2pl.formats.bad import BadRows
from o2pl.formats.files import read_tables, write_tables
from o2pl.serving import reads
from o2pl.serving.applications import Application
from o2pl.serving.database import pragma
from o2pl.serving.deleting import AT_ONCE, delete_events
from o2pl.serving.export import event_name, exports
from o2pl.serving.schema import decisions
from o2pl.serving.store import Store

_ROWS = 2000  # contexts per read


class Where(NamedTuple):
    """A condition such as `user.id=17`: a path in the features, and its value."""

    path: tuple[str, ...]
    value: str

    @classmethod
    def parsed(cls, text: str) -> Where:
        path, equals, value = text.partition("=")
        if not (equals and path.strip() and value):
            raise InvalidInput(f"where: found {text!r}, expected a feature and its value, such as user.id=17")
        return cls(tuple(part.strip() for part in path.split(".")), value)

    def matches(self, context: bytes | str) -> bool:
        """Return whether a context matches. Lists match if one of their items does."""
        pairs = json.loads(context, object_pairs_hook=_Pairs)
        return any(_same(found, self.value) for found in _at(pairs, self.path))


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object; names may repeat."""


def _at(value: Any, path: tuple[str, ...]) -> Iterator[Any]:
    if isinstance(value, _Pairs):
        for name, inner in value:
            if path and name == path[0]:
                yield from _at(inner, path[1:])
    elif isinstance(value, list):
        for inner in value:
            yield from _at(inner, path)
    elif not path:
        yield value


def _same(found: Any, text: str) -> bool:
    """Compare a value with text: 17 equals 17.0 and "17"."""
    if isinstance(found, str):
        return found == text
    if isinstance(found, int | float) and not isinstance(found, bool):
        try:
            return float(text) == found
        except ValueError:
            return False
    return json.dumps(found) == text


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
    rewritten = {path: _rewritten(path, where, names) for path in known if path.exists()}
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
    reads.put_note(connection, _note(application_id), json.dumps(told))


def refit_wanted(connection: Connection, application_id: int) -> tuple[int, list[int]]:
    """Return the number of refit requests, and the minutes whose sums have changed. Trainers remember the number."""
    told = json.loads(reads.note(connection, _note(application_id)) or '{"number": 0, "minutes": []}')
    return told["number"], told["minutes"]


def recounted(connection: Connection, application_id: int, minutes: Sequence[int]) -> None:
    """Mark the sums of these minutes as recomputed."""
    number, wanted = refit_wanted(connection, application_id)
    told = {"number": number, "minutes": sorted(set(wanted) - set(minutes))}
    reads.put_note(connection, _note(application_id), json.dumps(told))


def _note(application_id: int) -> str:
    return f"refit of application {application_id}"


# -- files


def _rewritten(path: Path, where: Where | None, events: set[str]) -> int:
    """Rewrite the file without these rows. Returns the number of removed rows."""
    import pyarrow as pa

    gone = 0

    def kept() -> Iterator[Any]:
        nonlocal gone
        for table in read_tables(path, BadRows(path.name)):
            ids, texts = table.column("event_id").to_pylist(), table.column("context").to_pylist()
            keep = [
                not (event in events or (where is not None and where.matches(text)))
                for event, text in zip(ids, texts, strict=True)
            ]
            gone += keep.count(False)
            yield table.filter(pa.array(keep))

    for _ in kept():  # only to count
        pass
    if gone:
        gone = 0
        write_tables(path, kept())
    return gone
