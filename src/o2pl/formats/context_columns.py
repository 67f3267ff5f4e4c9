"""Contexts of a log table: feature columns, JSON text, features of the actions, and slots of events."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl import _core
from o2pl.data.frames import as_frame
from o2pl.data.hashed_sets import HashedSets
from o2pl.data.offers import Offer
from o2pl.data.records import Records, Texts, record_parser
from o2pl.data.vw_json import as_json
from o2pl.encode.json_sets import json_sets
from o2pl.errors import InvalidInput
from o2pl.extras import extra
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.files import file_columns_not_context
from o2pl.formats.hashed_column import HASHED, has_hashes, hashed_sets
from o2pl.formats.json_columns import ROLES
from o2pl.protocols import Array
from o2pl.threads import ahead_in_threads

if TYPE_CHECKING:
    from o2pl.data.frames import Frame

_BLOCK = 4096  # texts that a thread hashes at a time
# Columns of these names say when, or as what, a decision is stored.
_IDS = frozenset(("id", "uuid", "guid", "row_id", "decision_id", "request_id", "impression_id", "session_id"))
_TIMES = frozenset(("timestamp", "ts", "datetime", "event_time", "decided_at", "created_at", "updated_at"))
_INDEX = re.compile(r"Unnamed: \d+|__index_level_\d+__")  # as pandas writes the index of a data frame


def named_columns(names: Sequence[str]) -> str:
    names = [name for name in names if name != HASHED]
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "")


def contexts_of(table: Any, taken: list[str], chosen: Sequence[str] | None, bad: BadRows) -> Frame | Records:
    import pyarrow as pa

    names = table.column_names
    if chosen is not None:
        for name in chosen:
            if name not in names:
                raise InvalidInput(f"{bad.file}: found columns {named_columns(names)}, expected a column {name!r}")
    elif "context" in names:
        if "actions" in names:
            return _contexts_with_action_columns(table, bad)
        column = table.column("context").cast(pa.binary())
        if has_hashes(table):
            texts = Texts(column)
            hashed = hashed_sets(table.column(HASHED), texts)
            return (
                _text_contexts(list(as_json(texts)), bad) if hashed is None else _hashed_context_column(texts, hashed)
            )
        return _text_contexts(column.to_pylist(), bad)
    else:
        chosen = _feature_columns(table, taken, bad)
    if "actions" in names:
        return _contexts_with_shared_columns(table, list(chosen))
    if not chosen:
        said = "".join(f" ({note})" for note in bad.notes)
        raise InvalidInput(f"{bad.file}: found no context columns, expected at least one (it may be constant){said}")
    return as_frame(table.select(list(chosen)))


def _feature_columns(table: Any, taken: list[str], bad: BadRows) -> list[str]:
    """Return the columns that are features. Keys of partitions, ids and times are not, which is said."""
    named = [name for name in table.column_names if name not in (*ROLES, *taken, "actions")]
    reasons = file_columns_not_context(table.schema)
    for name in named:
        if name.lower() in _IDS | _TIMES:
            reasons.setdefault(name, "an id" if name.lower() in _IDS else "a time of the decision")
        if _INDEX.fullmatch(name):
            reasons.setdefault(name, "the index of a data frame")
    left = [name for name in named if name in reasons]
    if left:
        said = ", ".join(f"{name!r} ({reasons[name]})" for name in left)
        bad.note(f"{bad.file}: not used as context: {said}. To use them: context=[...]")
    return [name for name in named if name not in reasons]


def _hashed_context_column(texts: Array | Texts, hashed: HashedSets) -> Records:
    return Records(texts, np.diff(hashed.offsets), hashed=hashed)


def _text_contexts(texts: list[bytes], bad: BadRows) -> Records:
    values = _context_objects(texts)
    if b'"_multi"' not in texts[0]:
        return Records(values)
    with extra("logs", "reading dsjson"):
        import msgspec
    only = msgspec.defstruct("c", [("multi", list[msgspec.Raw], msgspec.field(name="_multi"))], gc=False)
    decode: Any = msgspec.json.Decoder(only).decode
    blocks = [texts[start : start + _BLOCK] for start in range(0, len(texts), _BLOCK)]
    parts = list(ahead_in_threads(json_sets, blocks))
    hashed = [part for part in parts if part is not None]
    if len(hashed) == len(parts):
        return _hashed_context_column(values, HashedSets.joined(hashed))
    sizes = np.concatenate(list(ahead_in_threads(_core.set_sizes, blocks)))
    for row in np.flatnonzero(sizes == 0).tolist():
        text = texts[row]
        try:
            sizes[row] = len(decode(text).multi)
        except msgspec.MsgspecError as error:
            raise InvalidInput(f"{bad.file}, context {row}: {error}") from None
    return Records(values, sizes)


def _context_objects(texts: list[bytes]) -> Array:
    values = np.empty(len(texts), object)
    values[:] = texts
    return values


def has_slot_columns(table: Any) -> bool:
    return "slot" in table.column_names and table.column("slot").null_count < len(table)


def slot_columns(table: Any, actions: Array) -> tuple[Records, Array]:
    """Convert events with several slots: slot features are shared, and actions of earlier slots are removed.

    Actions are renumbered among those that the slot could still choose.
    """
    parse = record_parser()
    sets: list[Any] = []
    places = np.empty(len(table), np.int64)
    columns = (table.column(name).to_pylist() for name in ("context", "slot", "ranking"))
    for row, (text, slot, ranking) in enumerate(zip(*columns, strict=True)):
        event = parse(text)
        shared = {key: value for key, value in event.items() if not key.startswith("_")}
        shared["slot"] = event["_slots"][slot]
        left = sorted(ranking)
        sets.append(Offer(shared, [event["_multi"][k] for k in left], slot=slot))
        places[row] = left.index(int(actions[row]))
    return Records.of(sets), places


def _contexts_with_action_columns(table: Any, bad: BadRows) -> Records:
    """Read events whose shared features are JSON in `context`, and those of the actions in `actions`."""
    parse, found = record_parser(), []
    for row, (text, actions) in enumerate(
        zip(*(table.column(name).to_pylist() for name in ("context", "actions")), strict=True)
    ):
        shared = parse(text)
        if "_multi" in shared:
            raise InvalidInput(
                f"{bad.file}, row {row}: found features of the actions in `actions` and in `_multi` of `context`,"
                " expected one of the two"
            )
        found.append((shared, json.loads(actions) if isinstance(actions, str) else actions))
    return Records.of(found)


def _contexts_with_shared_columns(table: Any, shared: list[str]) -> Records:
    rows = as_frame(table.select(shared)).dictionaries() if shared else [{}] * len(table)
    actions = [json.loads(each) if isinstance(each, str) else each for each in table.column("actions").to_pylist()]
    return Records.of(list(zip(rows, actions, strict=True)))
