"""Export of the joined log of an application: every decision with an outcome, in learning order.

ranked       context with `_multi`, as stored; `action`: the index in it
fixed        context; `action`: its name. In VW's formats, names are items of `_multi`
continuous   context; `action`: a real number, and its density
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.extras import extra
from o2pl.formats.files import kind_of_file_to_write, write_file_tables
from o2pl.serving.applications import Application
from o2pl.serving.settings import Kind
from o2pl.serving.store import Store

_ROWS = 5000  # rows per read
_EXPORTS = "exports"  # name of the note that lists exported files, for `forget`


def export(store: Store, application: Application, out: Path, progress: Callable[[int], None] | None = None) -> int:
    """Write the file atomically, in the format of its extension. Returns the number of rows."""
    for_vw = kind_of_file_to_write(out) in ("dsjson", "vw")
    found = tables(store, application, for_vw, progress=progress)
    first = next(found, None)
    if first is None:
        raise InvalidInput(f"log: found no decision of {application.name!r} with an outcome yet, expected at least one")
    rows = write_file_tables(out, chain([first], found))
    remember(store, out)
    return rows


def tables(
    store: Store,
    application: Application,
    for_vw: bool = False,
    decided_before: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Any]:
    """Yield Arrow tables of a few thousand rows. No transaction stays open in between, so that nobody waits."""
    after, done = 0, 0
    while rows := store.learned_rows(application.id, after, _ROWS):
        after, done = rows[-1].id, done + len(rows)
        if decided_before is not None:
            rows = [row for row in rows if row.decided_at < decided_before]
        if rows:
            yield table(application, rows, for_vw)
        if progress is not None:
            progress(done)


def table(application: Application, rows: Sequence[Any], for_vw: bool = False) -> Any:
    """Convert rows of `Store.learned_rows` to a table."""
    with extra("serve", "exporting the log"):
        import pyarrow as pa
    columns: dict[str, Any] = {
        "context": pa.array([_context(application, row, for_vw) for row in rows], pa.string()),
        "action": _actions(pa, application, rows, for_vw),
        "reward": pa.array([row.reward for row in rows], pa.float64()),
        "propensity": pa.array([row.propensity for row in rows], pa.float64()),
    }
    if application.kind is Kind.RANKED or (for_vw and application.kind is Kind.FIXED):
        ranked = [_ranking(row) for row in rows]
        columns["ranking"] = pa.array([order for order, _ in ranked], pa.list_(pa.int32()))
        columns["probabilities"] = pa.array([chances for _, chances in ranked], pa.list_(pa.float64()))
    columns["event_id"] = pa.array([event_name(row) for row in rows], pa.string())
    columns["time"] = pa.array([_moment(row.decided_at) for row in rows], pa.string())
    columns["rest"] = pa.array([f'{{"VWState":{{"m":"{row.model_version}"}}}}' for row in rows], pa.string())
    return pa.table(columns)


def event_name(row: Any) -> str:
    """Return the name of a decision: the event id, with the slot if there are several."""
    return f"{row.event_id}/{row.slot}" if row.slot else str(row.event_id)


def _context(application: Application, row: Any, for_vw: bool) -> str:
    text = bytes(row.context).decode()
    if application.kind is Kind.CONTINUOUS and text.startswith("["):  # VW only supports objects
        return json.dumps({f"x{k}": value for k, value in enumerate(json.loads(text))})
    if application.kind is Kind.FIXED and for_vw:
        names = [{"action": {"name": name}} for name in json.loads(row.actions)]
        own = text.strip()[1:-1].strip()
        return "{" + (own + "," if own else "") + f'"_multi":{json.dumps(names, ensure_ascii=False)}' + "}"
    return text


def _actions(pa: Any, application: Application, rows: Sequence[Any], for_vw: bool) -> Any:
    if application.kind is Kind.CONTINUOUS:
        return pa.array([row.value for row in rows], pa.float64())
    if application.kind is Kind.FIXED and not for_vw:
        return pa.array([json.loads(row.actions)[row.action] for row in rows], pa.string())
    return pa.array([row.action for row in rows], pa.int64())


def _ranking(row: Any) -> tuple[list[int] | None, list[float] | None]:
    """Return the chosen action, then the others by decreasing probability."""
    if row.probabilities is None:
        return None, None
    chances = np.frombuffer(row.probabilities, "<f8")
    order = [row.action, *(k for k in np.argsort(-chances, kind="stable").tolist() if k != row.action)]
    return order, chances[order].tolist()


def _moment(seconds: float) -> str | None:
    """Format a time; None if it is out of range (wrong clock)."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
    except (OverflowError, OSError, ValueError):
        return None


# -- exported files


def remember(store: Store, out: Path) -> None:
    files = exports(store)
    store.put_note(_EXPORTS, json.dumps(list(dict.fromkeys([*map(str, files), str(out.resolve())]))))


def exports(store: Store) -> list[Path]:
    """Return all exported files, including those that no longer exist."""
    return [Path(each) for each in json.loads(store.note(_EXPORTS) or "[]")]
