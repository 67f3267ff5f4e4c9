"""Conversion between Vowpal Wabbit's text format and the columns of a log table.

    shared |User age:31 city=Rome
    0:-1:0.8 |Item price:3 kind=news
    |Item price:2 kind=sport

and an empty line after each event. The labelled line (`action:cost:probability`) is the action that was taken.
Namespaces become objects of VW's JSON, `{"User": {"age": 31, "city=Rome": 1}, "_multi": [...]}`. JSON is converted to
text by VW's rules, so that VW sees the same features.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import IO, Any

import numpy as np

from o2pl import _core
from o2pl.data.vw_events import BLANKS, BadLine, event_row
from o2pl.errors import InvalidInput
from o2pl.extras import extra
from o2pl.formats.bad import BadRows
from o2pl.formats.blocks import Block, blocks_of, numbered, texts_at
from o2pl.formats.hashed_column import HASHED, hashed_column
from o2pl.formats.rows import rows_of
from o2pl.formats.vw_scan import Events, scan_events
from o2pl.protocols import Ints
from o2pl.threads import ahead

_LONG = 1 << 20  # bytes from which the compiled reader pays off
Pairs = list[tuple[str, Any]]  # a JSON object; keys may repeat


# -- reading


def read_vw_text(lines: IO[bytes] | Iterable[bytes], bad: BadRows, *, hashed: bool = False) -> Iterator[Any]:
    """Yield tables of a few thousand rows. lines: a file, or its lines.

    hashed: a column `hashed` has the features of usual events, whose context is their text; others have JSON.
    """
    with extra("logs", "reading VW's text"):
        import pyarrow as pa
    for block, found in ahead(_scanned, numbered(blocks_of(lines, b"\n\n"))):
        if found is None:
            table, _ = _slowly(pa, _events(block.data, block.first), bad)
        else:
            table = _fast(pa, block, found, bad, hashed)
        if table is not None and table.num_rows:
            yield table


def _scanned(block: Block) -> tuple[Block, Events | None]:
    many = block.first > 1 or len(block.data) > _LONG  # a short file has one block
    return block, scan_events(block.data) if many else None


def _fast(pa: Any, block: Block, found: Events, bad: BadRows, hashed: bool) -> Any:
    """Return the table of a scanned block, with the slow reader for unusual events."""
    text, first, _ = block
    data, usual = np.frombuffer(text, np.uint8), pa.array(found.usual)
    texts = (data, _up_to_the_next(found.places)) if hashed else _core.vw_text_json(data, found.places, found.usual)
    none = found.action < 0
    try:
        table = pa.table(
            {
                "context": texts_at(pa, *texts),
                "action": pa.array(found.action, pa.int64(), mask=none),
                "reward": pa.array(0.0 - found.label[:, 0], pa.float64(), mask=none),
                "propensity": pa.array(found.label[:, 1], pa.float64(), mask=none),
                "event_id": texts_at(pa, data, found.tag),
                **({HASHED: hashed_column(pa, found)} if hashed else {}),
            }
        )
    except pa.ArrowInvalid:  # not UTF-8: invalid characters are replaced
        return _slowly(pa, _events(text, first), bad)[0]
    if found.usual.all():
        return table
    left = np.flatnonzero(~found.usual)
    events = [
        one
        for line, (begin, end) in zip((first + found.numbered[left]).tolist(), found.places[left].tolist(), strict=True)
        for one in _events(text[begin:end], line)
    ]
    slow, own = _slowly(pa, events, bad)
    if slow is None:
        return table.filter(usual)
    order = np.concatenate([found.numbered[found.usual], np.array(own) - first])
    both = pa.concat_tables([table.filter(usual), slow], promote_options="default")
    return both.take(np.argsort(order, kind="stable"))


def _up_to_the_next(places: Ints) -> Ints:
    """Return events with the empty lines after them: `texts_at` copies no text without gaps."""
    return np.column_stack([places[:, 0], np.append(places[1:, 0], places[-1:, 1])])


def _slowly(pa: Any, events: Iterable[tuple[int, list[str]]], bad: BadRows) -> tuple[Any, list[int]]:
    """Read event by event. Returns the table (or None) and the first line of each row."""
    rows: list[dict[str, Any]] = []
    own: list[int] = []
    for first, event in events:
        try:
            rows.append(event_row(first, event))
            own.append(first)
        except BadLine as error:
            bad.line(error.line, error.reason)
    return (_table(pa, rows), own) if rows else (None, own)


def _table(pa: Any, rows: list[dict[str, Any]]) -> Any:
    kinds = {"context": pa.string(), "action": pa.int64(), "reward": pa.float64(), "propensity": pa.float64()}
    made = {name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()}
    return pa.table(made | {"event_id": pa.array([row["tag"] for row in rows], pa.string())})


def _events(block: bytes, first: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line of each event, and its lines. first: number of the block's first line."""
    event: list[str] = []
    number = first
    for number, line in enumerate(block.split(b"\n"), first):
        text = line.decode("utf-8", "replace").strip(BLANKS)
        if text:
            event.append(text)
        elif event:
            yield number - len(event), event
            event = []
    if event:
        yield number - len(event) + 1, event


# -- writing


def write_vw_text(tables: Iterable[Any]) -> Iterator[bytes]:
    """Yield the lines of events, with an empty line after each."""
    for table in tables:
        for row in rows_of(table):
            if row.get("slot") is not None or isinstance(row["action"], float):
                raise InvalidInput(
                    "VW's text: found slots or real-valued actions, which it does not support; write dsjson instead"
                )
            if row.get("drop_probability"):
                raise InvalidInput("VW's text: found drop_probability, which it does not support; write dsjson instead")
            yield _event_text(row).encode()


def _event_text(row: dict[str, Any]) -> str:
    context: Pairs = json.loads(row["context"], object_pairs_hook=_Pairs)
    shared = [(key, value) for key, value in context if key != "_multi"]
    actions = next((value for key, value in context if key == "_multi"), None)
    if actions is None:
        raise InvalidInput("VW's text: found a context without _multi, expected action sets")
    tag = f"'{row['event_id']}" if row.get("event_id") and " " not in row["event_id"] else ""
    lines = [f"shared {tag}{features_text(shared)}"] if features_text(shared) else []
    for place, action in enumerate(actions):
        label = ""
        if place == row["action"] and row["reward"] is not None and not row.get("skip_learn"):
            label = f"0:{0.0 - row['reward']!r}:{row['propensity']!r} "
        lines.append(f"{label}{features_text(action) or '|'}")
    return "\n".join(lines) + "\n\n"


class _Pairs(list[tuple[str, Any]]):
    """A JSON object; other lists are arrays."""


def features_text(pairs: Pairs, namespace: str = "") -> str:
    """Convert JSON to text by VW's rules: every object is a namespace; scalars are features of the enclosing one."""
    own: list[str] = []
    inner: list[str] = []
    for key, value in pairs:
        if key == "_text":
            own += str(value).split()
        elif key.startswith("_"):
            continue
        elif isinstance(value, _Pairs):
            inner.append(features_text(value, key))
        elif isinstance(value, list):
            numbers = [f"{k}:{_number(one)}" for k, one in enumerate(value) if _is_number(one)]
            if numbers:
                inner.append(f"|{_escaped(key)} {' '.join(numbers)}")
            inner += [features_text(one, key) for one in value if isinstance(one, _Pairs)]
        elif isinstance(value, str):
            own.append(_escaped(key + value))
        elif value is True:
            own.append(_escaped(key))
        elif _is_number(value):
            own.append(f"{_escaped(key)}:{_number(value)}")
    first = f"|{_escaped(namespace)} {' '.join(own)}" if own else ""
    return " ".join(part for part in (first, *inner) if part)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: float) -> str:
    return repr(value)


def _escaped(name: str) -> str:
    for character in " \t\n:|":
        name = name.replace(character, "_")
    return name
