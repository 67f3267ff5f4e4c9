"""Erasing a person: the events whose context names them, from the store and from exported files."""

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

_ROWS = 2000  # contexts that are read at a time


class Where(NamedTuple):
    """`user.id=17`: a path into the features, and the value there."""

    path: tuple[str, ...]
    value: str

    @classmethod
    def parsed(cls, text: str) -> Where:
        path, equals, value = text.partition("=")
        if not (equals and path.strip() and value):
            raise InvalidInput(f"where: found {text!r}, expected a feature and its value, such as user.id=17")
        return cls(tuple(part.strip() for part in path.split(".")), value)

    def matches(self, context: bytes | str) -> bool:
        """Lists match where one of their items does."""
        pairs = json.loads(context, object_pairs_hook=_Pairs)
        return any(_same(found, self.value) for found in _at(pairs, self.path))


class _Pairs(list[tuple[str, Any]]):
    """The members of an object of JSON, also where a name comes twice."""


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
    """17 and 17.0 are the same number, 17 and "17" the same name."""
    if isinstance(found, str):
        return found == text
    if isinstance(found, int | float) and not isinstance(found, bool):
        try:
            return float(text) == found
        except ValueError:
            return False
    return json.dumps(found) == text


class Forgotten(NamedTuple):
    """What has gone."""

    decisions: int
    files: dict[Path, int]  # rows that were taken out of exported files
    missing: list[Path]  # files that were exported once and are not there any more


def forget(
    store: Store,
    applications: Sequence[Application],
    where: Where | None = None,
    events: Sequence[str] = (),
    files: Sequence[Path] = (),
    progress: Callable[[int], None] | None = None,
) -> Forgotten:
    """Erase what matches `where`, and these events; also from files that were exported, and from these files.

    The trainer is asked to learn anew from what is left (`refit_wanted`).
    """
    names, gone = set(events), 0
    for application in applications:
        chosen = list(dict.fromkeys([*events, *(_found(store, application.id, where, progress) if where else [])]))
        erased = _erased(store, application.id, chosen)
        gone, names = gone + len(erased), names | erased
    if gone and store.engine.dialect.name == "sqlite":
        pragma(store.engine, "wal_checkpoint(TRUNCATE)")  # what was erased is not left in the log of changes either
    known = list(dict.fromkeys([*exports(store), *(path.resolve() for path in files)]))
    rewritten = {path: _rewritten(path, where, names) for path in known if path.exists()}
    return Forgotten(gone, rewritten, [path for path in known if not path.exists()])


def _found(store: Store, application_id: int, where: Where, progress: Callable[[int], None] | None) -> Iterator[str]:
    """Every context is parsed: what must go must be found."""
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
    """From the tables, and from the bytes of the file; the names that the decisions have in exported files."""
    gone: set[str] = set()
    for at in range(0, len(events), AT_ONCE):
        some = events[at : at + AT_ONCE]
        with store.writing() as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA secure_delete=ON")  # zeros in the place of what goes
            query = select(decisions.c.event_id, decisions.c.slot, decisions.c.decided_at).where(
                decisions.c.application_id == application_id, decisions.c.event_id.in_(some)
            )
            rows = connection.execute(query).all()
            if rows:
                delete_events(connection, application_id, some)
                want_refit(connection, application_id, [int(row.decided_at // 60) for row in rows])
        gone.update(event_name(row) for row in rows)
    return gone


# -- what the trainer must do


def want_refit(connection: Connection, application_id: int, minutes: Sequence[int]) -> None:
    """Ask for models that are learned anew, and for the sums of these minutes to be made again."""
    number, older = refit_wanted(connection, application_id)
    told = {"number": number + 1, "minutes": sorted({*older, *minutes})}
    reads.put_note(connection, _note(application_id), json.dumps(told))


def refit_wanted(connection: Connection, application_id: int) -> tuple[int, list[int]]:
    """How often it was asked for, and the minutes whose sums have changed. A trainer keeps the number that it met."""
    told = json.loads(reads.note(connection, _note(application_id)) or '{"number": 0, "minutes": []}')
    return told["number"], told["minutes"]


def recounted(connection: Connection, application_id: int, minutes: Sequence[int]) -> None:
    """The sums of these minutes have been made again."""
    number, wanted = refit_wanted(connection, application_id)
    told = {"number": number, "minutes": sorted(set(wanted) - set(minutes))}
    reads.put_note(connection, _note(application_id), json.dumps(told))


def _note(application_id: int) -> str:
    return f"refit of application {application_id}"


# -- files


def _rewritten(path: Path, where: Where | None, events: set[str]) -> int:
    """The file without these rows; how many have gone."""
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

    for _ in kept():  # to count
        pass
    if gone:
        gone = 0
        write_tables(path, kept())
    return gone
