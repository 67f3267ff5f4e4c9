"""Vowpal Wabbit's dsjson, one JSON object per line, to the columns of a log table and back.

    {"_label_cost": -1, "_label_probability": 0.8, "_label_Action": 2, "_labelIndex": 1, "EventId": "e1",
     "Timestamp": "...", "a": [2, 1], "p": [0.8, 0.2], "c": {"User": {...}, "_multi": [{...}, {...}]}}

Only the envelope is parsed; `c`, the features, stays text until a learner reads it. Fields without a column are kept in
`rest`, so that VW learns the same from the written file as from the original. Events with several slots (`_outcomes`)
become one row per slot; continuous actions are read from `_label_ca`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from operator import attrgetter
from types import GenericAlias
from typing import IO, Any

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.extras import extra
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.blocks import Block, blocks_of, numbered_blocks
from o2pl.formats.dsjson_table import Lines, fast_dsjson_table, scan_dsjson_for_table
from o2pl.formats.rows import rows_of
from o2pl.formats.vw_forms import SLATES, completed_vw_ranking
from o2pl.formats.vw_json_lines import MARKS, is_vw_json_line_left_out, vw_json_line_as_dsjson
from o2pl.threads import ahead_in_threads

_RAW = ("Version", "o", "VWState", "_tag", "_original_label_cost", "_ba", "DeferredAction", "i")  # kept unchanged
_COLUMNS = (
    "context", "action", "reward", "propensity", "ranking", "probabilities", "slot", "event_id", "time",
    "drop_probability", "skip_learn", "rest", "slot_rest",
)  # fmt: skip


@cache
def _dsjson_decoders() -> Any:
    """Return decoders of events with known fields, and of any object, field by field."""
    with extra("logs", "reading dsjson"):
        import msgspec
    raw: Any = msgspec.Raw
    outcome: Any = msgspec.defstruct(
        "outcome",
        [
            ("cost", float | None, msgspec.field(name="_label_cost", default=None)),
            ("a", list[int], msgspec.field(name="_a", default_factory=list)),
            ("p", list[float], msgspec.field(name="_p", default_factory=list)),
            ("id", raw, msgspec.field(name="_id", default=raw())),
            ("o", raw, msgspec.field(name="_o", default=raw())),
        ],
        gc=False,
    )
    real = msgspec.defstruct("real", [("action", float), ("cost", float), ("pdf_value", float)], gc=False)
    event = msgspec.defstruct(
        "event",
        [
            ("c", raw),
            ("a", list[int], msgspec.field(default_factory=list)),
            ("p", list[float], msgspec.field(default_factory=list)),
            ("EventId", str | None, None),
            ("Timestamp", str | None, None),
            ("pdrop", float | None, None),
            ("cost", float | None, msgspec.field(name="_label_cost", default=None)),
            ("probability", float | None, msgspec.field(name="_label_probability", default=None)),
            ("action", int | None, msgspec.field(name="_label_Action", default=None)),
            ("index", int | None, msgspec.field(name="_labelIndex", default=None)),
            ("skip", bool | None, msgspec.field(name="_skipLearn", default=None)),
            ("real", real | None, msgspec.field(name="_label_ca", default=None)),
            ("outcomes", GenericAlias(list, outcome) | None, msgspec.field(name="_outcomes", default=None)),
            *((f"raw{k}", raw, msgspec.field(name=name, default=raw())) for k, name in enumerate(_RAW)),
        ],
        gc=False,
        forbid_unknown_fields=True,
    )
    return msgspec.json.Decoder(event), msgspec.json.Decoder(GenericAlias(dict, (str, raw))), msgspec


def _dsjson_schema(continuous: bool) -> Any:
    import pyarrow as pa

    kinds = {
        "action": pa.float64() if continuous else pa.int64(), "reward": pa.float64(), "propensity": pa.float64(),
        "ranking": pa.list_(pa.int32()), "probabilities": pa.list_(pa.float64()), "slot": pa.int32(),
        "drop_probability": pa.float64(), "skip_learn": pa.bool_(),
    }  # fmt: skip
    return {name: kinds.get(name, pa.string()) for name in _COLUMNS}


# -- reading


def read_dsjson(lines: IO[bytes] | Iterable[bytes], bad: BadRows, *, hashed: bool = False) -> Iterator[Any]:
    """Yield tables of a few thousand rows, all with the same columns. lines: a file, or its lines.

    hashed: a column `hashed` has the features of contexts with `_multi`, except in tables of unusual lines only.
    """
    with extra("logs", "reading dsjson"):
        import pyarrow as pa
    reader = _Reader(pa, bad, hashed)
    for block, found in ahead_in_threads(partial(_scanned_dsjson, hashed=hashed), numbered_blocks(blocks_of(lines))):
        if block.first == 1 and b'"_slot_id"' in block.data:
            raise InvalidInput(f"{bad.file}: {SLATES}")
        table = reader.table(block, found)
        if table is not None and table.num_rows:
            yield table


def _scanned_dsjson(block: Block, hashed: bool) -> tuple[Block, Lines]:
    return block, scan_dsjson_for_table(block.data, hashed)


class _Reader:
    """Reader of one file: converts blocks of lines to tables."""

    def __init__(self, pa: Any, bad: BadRows, hashed: bool) -> None:
        self.pa, self.bad, self.hashed = pa, bad, hashed
        self.continuous: bool | None = None  # set by the first event

    def table(self, block: Block, found: Lines) -> Any:
        """Return the table of a block; unusual lines use the slow reader, and all lines of a log of real numbers."""
        text, first, _ = block
        if self.continuous is None:
            self.continuous = self._kind(text, found)
        if self.continuous:
            return self._slowly(((first + k, line) for k, line in enumerate(text.split(b"\n"))))[0]
        fine = found.fine
        left = np.flatnonzero(~fine)
        if not len(left):
            return fast_dsjson_table(self.pa, found, _dsjson_schema(False), self.hashed)
        places = found.places.reshape(-1, 2)[left].tolist()
        numbers = (first + found.numbered[left]).tolist()
        texts = ((number, text[begin:end]) for number, (begin, end) in zip(numbers, places, strict=True))
        slow, own = self._slowly(texts)
        if not fine.any():
            return slow
        table = fast_dsjson_table(self.pa, found, _dsjson_schema(False), self.hashed).filter(self.pa.array(fine))
        if slow is None:
            return table
        order = np.concatenate([found.numbered[fine], np.array(own) - first])
        both = self.pa.concat_tables([table, slow], promote_options="default")
        return both.take(np.argsort(order, kind="stable"))

    def _kind(self, text: bytes, found: Lines) -> bool | None:
        """Return whether the first event of a block has a real-valued action; None if there is no event."""
        msgspec = _dsjson_decoders()[2]
        for fine, (begin, end) in zip(found.fine.tolist(), found.places.reshape(-1, 2).tolist(), strict=True):
            if fine:
                return False
            with suppress(msgspec.MsgspecError, InvalidInput, UnicodeDecodeError):
                return _dsjson_event(text[begin:end])[0].real is not None
        return None

    def _slowly(self, lines: Iterable[tuple[int, bytes]]) -> tuple[Any, list[int]]:
        """Read line by line. Returns the table (or None) and the line number of each row."""
        msgspec = _dsjson_decoders()[2]
        rows: list[tuple[Any, ...]] = []
        own: list[int] = []
        for number, line in lines:
            if not line.strip():
                continue
            other = is_vw_json_line_left_out(line)
            if other is not None:
                self.bad.note(f"{self.bad.file}: left out {other}")
                continue
            try:
                line.decode()
                one, rest = _dsjson_event(line)
                if self.continuous != (one.real is not None):
                    raise InvalidInput("found events with and without _label_ca, expected only one kind")
                found = _dsjson_rows(one, rest)
            except (msgspec.MsgspecError, InvalidInput, UnicodeDecodeError) as error:
                self.bad.line(number, _said_of_dsjson(error))
                continue
            rows += found
            own += [number] * len(found)
        return (_dsjson_table_of_rows(self.pa, rows, bool(self.continuous)), own) if rows else (None, own)


def _dsjson_table_of_rows(pa: Any, rows: list[tuple[Any, ...]], continuous: bool) -> Any:
    columns = zip(*rows, strict=True)
    made = {}
    for (name, kind), values in zip(_dsjson_schema(continuous).items(), columns, strict=True):
        if name in ("context", "rest", "slot_rest"):  # bytes; validated together, which is faster than one by one
            made[name] = pa.array(values, pa.binary()).cast(kind)
        else:
            made[name] = pa.array(values, kind)
    return pa.table(made)


_raw_fields = attrgetter(*(f"raw{k}" for k in range(len(_RAW))))
_PREFIXES = tuple(f'"{name}":'.encode() for name in _RAW)


def _dsjson_event(line: bytes) -> tuple[Any, bytes | None]:
    """Return the event, and the fields without a column as JSON text. Lines of VW's `--json` are made dsjson."""
    event, anything, msgspec = _dsjson_decoders()
    kept: list[bytes] = []
    try:
        one = event.decode(line)
    except msgspec.ValidationError as error:
        missing = "missing required field `c`" in str(error)
        if not missing and "unknown field" not in str(error):
            raise
        fields = anything.decode(line)
        if "c" not in fields or any(name in fields for name in MARKS if name not in _KNOWN):
            return _dsjson_event(_converted_dsjson(line, fields))
        known = {name: value for name, value in fields.items() if name in _KNOWN}
        kept = [msgspec.json.encode(name) + b":" + bytes(value) for name, value in fields.items() if name not in _KNOWN]
        one = event.decode(msgspec.json.encode(known))
    kept += [prefix + bytes(value) for prefix, value in zip(_PREFIXES, _raw_fields(one), strict=True) if value]
    return one, b"{" + b",".join(kept) + b"}" if kept else None


def _converted_dsjson(line: bytes, fields: dict[str, Any]) -> bytes:
    made = vw_json_line_as_dsjson(line.decode())
    if made is None:
        raise InvalidInput(
            f"found the fields {', '.join(list(fields)[:8])}, expected `c` (VW's dsjson) or `_multi` and `_label…`"
            ' (--json). JSON of your own is read with a mapping, such as --map "context=$.user, chosen=$.action,'
            ' reward=$.reward, propensity=$.p"'
        )
    return made.encode()


_KNOWN = frozenset(
    ("c", "a", "p", "EventId", "Timestamp", "pdrop", "_label_cost", "_label_probability", "_label_Action",
     "_labelIndex", "_skipLearn", "_label_ca", "_outcomes")
)  # fmt: skip


def _dsjson_rows(one: Any, rest: bytes | None) -> list[tuple[Any, ...]]:
    """Return the rows of an event, in the order of `_COLUMNS`."""
    context = bytes(one.c)
    common = (one.EventId, one.Timestamp, one.pdrop, one.skip, rest)
    if one.real is not None:
        real = one.real
        return [(context, real.action, 0.0 - real.cost, real.pdf_value, None, None, None, *common, None)]
    if one.outcomes is not None:
        rows = []
        for slot, each in enumerate(one.outcomes):
            _check_dsjson_ranking(each.a, each.p, f"_outcomes[{slot}]._a", 0)
            own = b",".join(name + bytes(value) for name, value in ((b'"_id":', each.id), (b'"_o":', each.o)) if value)
            reward = None if each.cost is None else 0.0 - each.cost
            chosen = (each.a[0], reward, each.p[0]) if each.a else (None, reward, None)
            ranking = each.a if not each.p or sum(each.p) > _ALL else _whole_dsjson_ranking(context, one.outcomes, slot)
            rows.append((context, *chosen, ranking, each.p, slot, *common, b"{" + own + b"}" if own else None))
        return rows
    first = 0 if 0 in one.a else 1  # some loggers count from 0
    _check_dsjson_ranking(one.a, one.p, "a", first)
    action = one.index if one.index is not None else None if one.action is None else one.action - 1
    if action is None:
        if one.cost is not None:
            raise InvalidInput("found _label_cost without _labelIndex or _label_Action, expected one of them")
        action = one.a[0] - first if one.a else None
    propensity = one.probability if one.probability is not None else one.p[0] if one.p else None
    if propensity is not None and not 0 < propensity <= 1:
        raise InvalidInput(f"_label_probability: found {propensity}, expected a probability in (0, 1]")
    if action is not None and (action < 0 or (one.a and action >= len(one.a) > 1)):
        raise InvalidInput(f"_labelIndex: found {action}, expected a number from 0 to {max(len(one.a), 1) - 1}")
    ranking = [k - first for k in one.a] or None
    reward = None if one.cost is None else 0.0 - one.cost
    return [(context, action, reward, propensity, ranking, one.p or None, None, *common, None)]


_ALL = 0.999  # sum of the probabilities of all actions of a slot, but for rounding


def _whole_dsjson_ranking(context: bytes, outcomes: list[Any], slot: int) -> list[int]:
    """Return the ranking of a slot of which only some actions are listed, with the others that it could choose."""
    event = json.loads(context)
    allowed = event["_slots"][slot].get("_inc")
    taken = [each.a[0] for each in outcomes[:slot] if each.a]
    return completed_vw_ranking(outcomes[slot].a, len(event["_multi"]), allowed, taken)


def _check_dsjson_ranking(actions: list[int], probabilities: list[float], name: str, first: int) -> None:
    if len(actions) != len(probabilities):
        raise InvalidInput(
            f"{name}: found {len(actions)} actions and {len(probabilities)} probabilities, expected equal numbers"
        )
    if actions and min(actions) < first:
        raise InvalidInput(f"{name}: found {min(actions)}, expected numbers from {first}")
    if first == 0 and name == "a" and max(actions) >= len(actions):
        raise InvalidInput(f"a: found {max(actions)}, expected numbers below {len(actions)}, as it counts from 0")


def _said_of_dsjson(error: Exception) -> str:
    text = str(error).replace(" - at `$.", ", field `").replace(" - at `$`", "")
    return f"found no complete JSON object ({text})" if "truncated" in text or "malformed" in text else text


# -- writing


def write_dsjson(tables: Iterable[object]) -> Iterator[bytes]:
    """Yield lines, one per event."""
    _, _, msgspec = _dsjson_decoders()
    encode = msgspec.json.encode
    slots: list[dict[str, Any]] = []  # slots of one event
    for table in tables:
        for row in rows_of(table):
            if row.get("slot") is None:
                yield _dsjson_line(row, encode)
                continue
            if slots and row["slot"] == 0:
                yield _dsjson_slots_line(slots, encode)
                slots = []
            slots.append(row)
    if slots:
        yield _dsjson_slots_line(slots, encode)


def _dsjson_line(row: dict[str, Any], encode: object) -> bytes:
    """Return a line in the field order that VW needs: labels first."""
    parts = []
    action, reward, propensity = row["action"], row["reward"], row["propensity"]
    if isinstance(action, float):
        parts.append(
            _dsjson_field("_label_ca", {"action": action, "cost": 0.0 - reward, "pdf_value": propensity}, encode)
        )
    elif reward is not None:
        for name, value in (("cost", 0.0 - reward), ("probability", propensity), ("Action", action + 1)):
            parts.append(_dsjson_field(f"_label_{name}", value, encode))
        parts.append(_dsjson_field("_labelIndex", action, encode))
    parts += _common_dsjson_fields(row, encode)
    ranking, probabilities = row.get("ranking"), row.get("probabilities")
    if not ranking and reward is not None and not isinstance(action, float):
        ranking, probabilities = [action], [propensity]  # VW does not learn from an event without `a`
    if ranking:
        parts.append(_dsjson_field("a", [k + 1 for k in ranking], encode))
    parts.append(b'"c":' + row["context"].encode())
    if probabilities:
        parts.append(_dsjson_field("p", probabilities, encode))
    return b"{" + b",".join(parts) + b"}\n"


_NAMES = {"Timestamp": "time", "EventId": "event_id", "pdrop": "drop_probability", "_skipLearn": "skip_learn"}


def _common_dsjson_fields(row: dict[str, Any], encode: object) -> list[bytes]:
    parts = [_dsjson_field(name, row[column], encode) for name, column in _NAMES.items() if row.get(column) is not None]
    return [*parts, row["rest"].encode()[1:-1]] if row.get("rest") else parts


def _dsjson_slots_line(rows: list[dict[str, Any]], encode: object) -> bytes:
    outcomes = []
    for row in rows:
        parts = [] if row["reward"] is None else [_dsjson_field("_label_cost", 0.0 - row["reward"], encode)]
        parts += [row["slot_rest"].encode()[1:-1]] if row.get("slot_rest") else []
        listed = (row["ranking"] or [])[: len(row["probabilities"] or [])]  # the rest is known to come from the context
        parts += [_dsjson_field("_a", listed, encode), _dsjson_field("_p", row["probabilities"] or [], encode)]
        outcomes.append(b"{" + b",".join(parts) + b"}")
    first = rows[0]
    parts = [
        *_common_dsjson_fields(first, encode),
        b'"c":' + first["context"].encode(),
        b'"_outcomes":[' + b",".join(outcomes) + b"]",
    ]
    return b"{" + b",".join(parts) + b"}\n"


def _dsjson_field(name: str, value: Any, encode: Any) -> bytes:
    written: bytes = encode(value)
    return b'"' + name.encode() + b'":' + written
