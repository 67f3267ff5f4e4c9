"""Erasure of rows from the file of a log: by id, or by a condition on their context."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from o2pl.errors import InvalidInput
from o2pl.extras import extra
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.files import kind_of_file_to_write, read_file_tables, write_file_tables


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
        return any(_same_to_erase(found, self.value) for found in _erase_at(pairs, self.path))


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object; names may repeat."""


def _erase_at(value: object, path: tuple[str, ...]) -> Iterator[Any]:
    if isinstance(value, _Pairs):
        for name, inner in value:
            if path and name == path[0]:
                yield from _erase_at(inner, path[1:])
    elif isinstance(value, list):
        for inner in value:
            yield from _erase_at(inner, path)
    elif not path:
        yield value


def _same_to_erase(found: object, text: str) -> bool:
    """Compare a value with text: 17 equals 17.0 and "17"."""
    if isinstance(found, str):
        return found == text
    if isinstance(found, int | float) and not isinstance(found, bool):
        try:
            return float(text) == found
        except ValueError:
            return False
    return json.dumps(found) == text


def erase(path: Path, where: Where | None, ids: set[str]) -> int:
    """Rewrite the file, or the Parquet files of a folder, without these rows. Returns the number of removed rows.

    A file without any of these rows is left as it is.
    """
    if path.is_dir():
        return sum(erase(part, where, ids) for part in sorted(path.rglob("*.parquet")))
    with extra("logs", "rewriting logs"):
        import pyarrow as pa
    gone = left = 0

    def kept() -> Iterator[Any]:
        nonlocal gone, left
        for table in read_file_tables(path, BadRows(path.name)):
            keep = [not erased for erased in _erased(table, path.name, where, ids)]
            gone, left = gone + keep.count(False), left + keep.count(True)
            yield table.filter(pa.array(keep, pa.bool_()))

    for _ in kept():  # only to count
        pass
    if gone and not left and kind_of_file_to_write(path) in ("dsjson", "vw"):
        path.write_bytes(b"")  # there is no line without an event
    elif gone:
        gone = 0
        write_file_tables(path, kept())
    return gone


def _erased(table: Any, name: str, where: Where | None, ids: set[str]) -> Iterator[bool]:
    """Yield for each row whether it is to be erased."""
    rows, columns = len(table), table.column_names
    if ids and ("event_id" not in columns or table.column("event_id").null_count == rows):
        raise InvalidInput(f"{name}: found no ids of decisions (`event_id`), expected them, or --where")
    events = table.column("event_id").to_pylist() if ids else [None] * rows
    values: list[Any] = [None] * rows
    if where is not None:
        text = "context" in columns
        column = "context" if text else ".".join(where.path)
        if column not in columns:
            raise InvalidInput(f"{name}: found columns {columns}, expected 'context' or {column!r}")
        given = table.column(column).to_pylist()
        values = [where.matches(value) if text else _same_to_erase(value, where.value) for value in given]
    for event, value in zip(events, values, strict=True):
        yield bool(value) or (event is not None and str(event) in ids)
