"""Conversion between Vowpal Wabbit's text format and the columns of a log table.

    shared |User age:31 city=Rome
    0:-1:0.8 |Item price:3 kind=news
    |Item price:2 kind=sport

and an empty line after each event. The labelled line (`action:cost:probability`) is the action that was taken. Other
forms (a decision per line, several slots per event) are in `vw_forms`.
Namespaces become objects of VW's JSON, `{"User": {"age": 31, "city=Rome": 1}, "_multi": [...]}`. JSON is converted to
text by VW's rules, so that VW sees the same features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import IO, Any

import numpy as np

from o2pl import _core
from o2pl.data.vw_events import BLANKS, BadLine, vw_event_row
from o2pl.extras import extra
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.blocks import Block, blocks_of, numbered_blocks, texts_in_block
from o2pl.formats.hashed_column import HASHED, hashed_column
from o2pl.formats.vw_forms import Rows, vw_form_of, vw_rows_by_line, vw_slot_rows
from o2pl.formats.vw_scan import Events, scan_vw_events
from o2pl.protocols import Ints
from o2pl.threads import ahead_in_threads

_LONG = 1 << 20  # bytes from which the compiled reader pays off
_START, _PEEKED = 1 << 16, 1000  # bytes, or lines, that tell the form of a file


# -- reading


def read_vw_text(lines: IO[bytes] | Iterable[bytes], bad: BadRows, *, hashed: bool = False) -> Iterator[Any]:
    """Yield tables of a few thousand rows. lines: a file, or its lines.

    hashed: a column `hashed` has the features of usual events, whose context is their text; others have JSON.
    """
    with extra("logs", "reading VW's text"):
        import pyarrow as pa
    start, lines = _opened_vw_text(lines)
    form = vw_form_of(start, bad.file)
    if form in ("cb", "ca"):
        for block in numbered_blocks(blocks_of(lines)):
            table, _ = _slow_vw_text(pa, vw_rows_by_line(block.data, block.first, form), bad, real=form == "ca")
            if table is not None:
                yield table
        return
    if form == "ccb":
        for block in numbered_blocks(blocks_of(lines, b"\n\n")):
            table, _ = _slow_vw_text(pa, _vw_text_rows(block.data, block.first, vw_slot_rows), bad)
            if table is not None:
                yield table
        return
    for block, found in ahead_in_threads(_scanned_vw_text, numbered_blocks(blocks_of(lines, b"\n\n"))):
        if found is None:
            table, _ = _slow_vw_text(pa, _vw_text_rows(block.data, block.first, _one_vw_text_row), bad)
        else:
            table = _fast_vw_text(pa, block, found, bad, hashed)
        if table is not None and table.num_rows:
            yield table


def _opened_vw_text(lines: IO[bytes] | Iterable[bytes]) -> tuple[bytes, Any]:
    """Return the start of a file, without a line that it cuts, and the whole of it."""
    read: Any = getattr(lines, "read", None)
    if read is None:
        each = iter(lines)
        some = list(islice(each, _PEEKED))
        return b"".join(line if line.endswith(b"\n") else line + b"\n" for line in some), chain(some, each)
    start = read(_START)
    return start if len(start) < _START else start[: start.rfind(b"\n") + 1], _Again(start, read)


class _Again:
    """A file whose start was read already."""

    def __init__(self, start: bytes, read: Callable[[int], bytes]) -> None:
        self._start, self._read = start, read

    def read(self, size: int) -> bytes:
        found, self._start = self._start[:size], self._start[size:]
        return found or self._read(size)


def _scanned_vw_text(block: Block) -> tuple[Block, Events | None]:
    many = block.first > 1 or len(block.data) > _LONG  # a short file has one block
    return block, scan_vw_events(block.data) if many else None


def _fast_vw_text(pa: Any, block: Block, found: Events, bad: BadRows, hashed: bool) -> Any:
    """Return the table of a scanned block, with the slow reader for unusual events."""
    text, first, _ = block
    data, usual = np.frombuffer(text, np.uint8), pa.array(found.usual)
    texts = (data, _vw_text_up_to_next(found.places)) if hashed else _core.vw_text_json(data, found.places, found.usual)
    none = found.action < 0
    try:
        table = pa.table(
            {
                "context": texts_in_block(pa, *texts),
                "action": pa.array(found.action, pa.int64(), mask=none),
                "reward": pa.array(0.0 - found.label[:, 0], pa.float64(), mask=none),
                "propensity": pa.array(found.label[:, 1], pa.float64(), mask=none),
                "event_id": texts_in_block(pa, data, found.tag),
                **({HASHED: hashed_column(pa, found)} if hashed else {}),
            }
        )
    except pa.ArrowInvalid:  # not UTF-8: invalid characters are replaced
        return _slow_vw_text(pa, _vw_text_rows(text, first, _one_vw_text_row), bad)[0]
    if found.usual.all():
        return table
    left = np.flatnonzero(~found.usual)
    rows = [
        one
        for line, (begin, end) in zip((first + found.numbered[left]).tolist(), found.places[left].tolist(), strict=True)
        for one in _vw_text_rows(text[begin:end], line, _one_vw_text_row)
    ]
    slow, own = _slow_vw_text(pa, rows, bad)
    if slow is None:
        return table.filter(usual)
    order = np.concatenate([found.numbered[found.usual], np.array(own) - first])
    both = pa.concat_tables([table.filter(usual), slow], promote_options="default")
    return both.take(np.argsort(order, kind="stable"))


def _vw_text_up_to_next(places: Ints) -> Ints:
    """Return events with the empty lines after them: `texts_in_block` copies no text without gaps."""
    return np.column_stack([places[:, 0], np.append(places[1:, 0], places[-1:, 1])])


def _vw_text_rows(block: bytes, first: int, rows_of_event: Callable[[int, list[str]], list[dict[str, Any]]]) -> Rows:
    for line, event in _vw_text_events(block, first):
        try:
            yield line, rows_of_event(line, event)
        except BadLine as error:
            yield line, error


def _one_vw_text_row(first: int, event: list[str]) -> list[dict[str, Any]]:
    return [vw_event_row(first, event)]


def _slow_vw_text(
    pa: object, found: Iterable[tuple[int, list[dict[str, Any]] | BadLine]], bad: BadRows, *, real: bool = False
) -> tuple[Any, list[int]]:
    """Collect rows. Returns the table (or None) and the first line of each row. real: actions are real numbers."""
    rows: list[dict[str, Any]] = []
    own: list[int] = []
    for first, each in found:
        if isinstance(each, BadLine):
            bad.line(each.line, each.reason)
        else:
            rows += each
            own += [first] * len(each)
    return (_vw_text_table(pa, rows, real), own) if rows else (None, own)


def _vw_text_table(pa: Any, rows: list[dict[str, Any]], real: bool) -> Any:
    kinds = {
        "context": pa.string(), "action": pa.float64() if real else pa.int64(), "reward": pa.float64(),
        "propensity": pa.float64(), "event_id": pa.string(), "rest": pa.string(), "slot": pa.int32(),
        "ranking": pa.list_(pa.int32()), "probabilities": pa.list_(pa.float64()),
    }  # fmt: skip
    return pa.table({name: pa.array([row[name] for row in rows], kinds[name]) for name in kinds if name in rows[0]})


def _vw_text_events(block: bytes, first: int) -> Iterator[tuple[int, list[str]]]:
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
