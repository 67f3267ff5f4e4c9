"""Writes the features of events in Vowpal Wabbit's text as JSON.

    shared |User age:31          ->  {"User":{"age":31},"_multi":[{"Item":{"price":3,"kind=news":1}}, ...]}
    0:-1:0.8 |Item price:3 kind=news

Names and numbers are copied as they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from o2pl.compiled import compiled, compiled_apart, compiled_within
from o2pl.contexts.vw_events import event_json, is_event
from o2pl.contexts.vw_scan import LINE_END, NAMESPACE, NO_NAMESPACE, SHARED, UNUSUAL, is_blank, next_part, scan_head
from o2pl.protocols import Array, Floats, Ints

_MANY, _BLOCK = 2000, 4096  # number of events from which a compiled kernel pays off, and events per block


def as_json(contexts: Sequence[bytes] | Array) -> Iterator[bytes]:
    """Yield contexts as JSON: usual events of VW's text, those that `scan_event` reads, or JSON already."""
    if len(contexts) < _MANY:
        yield from (event_json(one) if is_event(one) else one for one in contexts)
        return
    for start in range(0, len(contexts), _BLOCK):
        own = contexts[start : start + _BLOCK]
        ends = np.cumsum([0] + [len(one) for one in own])
        found = np.array([is_event(one) for one in own])
        if not found.any():
            yield from own
            continue
        data: Array = np.frombuffer(b"".join(own), np.uint8)
        written, places = write_json(data, np.column_stack([ends[:-1], ends[1:]]), found)
        texts = written.tobytes()
        for one, event, (begin, end) in zip(own, found.tolist(), places.tolist(), strict=True):
            yield texts[begin:end] if event else one


def write_json(data: Array, places: Ints, usual: Array) -> tuple[Array, Ints]:
    """Return the JSON of the usual events at these places, [n, 2], and its places."""
    out, written = np.empty(8 * len(data) + 16 * len(places), np.uint8), np.zeros((len(places), 2), np.int64)
    return out[: _write(data, places, usual, out, written)], written


@compiled_within
def _copy(data: Array, begin: int, end: int, out: Array, at: int) -> int:
    for i in range(end - begin):
        out[at + i] = data[begin + i]
    return at + end - begin


@compiled_apart
def _members(data: Array, p: int, end: int, out: Array, at: int) -> tuple[int, int]:
    """Write a line, from its first bar on, as members of an object, without braces.

    Returns the end of the line, and the position after the output.
    """
    inside, first = False, True  # of a namespace; nothing written in this object
    while True:
        kind, begin, colon, p = next_part(data, p, end)
        if inside and kind in (NAMESPACE, LINE_END):
            out[at] = 125
            at, first = at + 1, False
        if kind in (LINE_END, UNUSUAL):  # the second does not occur
            return p, at
        if kind == NO_NAMESPACE:
            continue
        if not first:
            out[at] = 44
            at += 1
        out[at] = 34
        at = _copy(data, begin, p if colon < 0 else colon, out, at + 1)
        out[at], out[at + 1] = 34, 58
        at, first = at + 2, False
        if kind == NAMESPACE:
            out[at] = 123
            at, inside, first = at + 1, True, True
        elif colon < 0:
            out[at] = 49
            at += 1
        else:
            at = _copy(data, colon + 1, p, out, at)


@compiled
def _write(data: Array, places: Ints, usual: Array, out: Array, written: Ints) -> int:
    """Write events. Returns the end of the output."""
    label, tag, at = np.empty(2), np.empty(2, np.int64), 0
    for s in range(len(places)):
        written[s] = at
        if usual[s]:
            at = _event(data, places[s, 0], places[s, 1], out, at, label, tag)
            written[s, 1] = at
    return at


@compiled_apart
def _event(data: Array, p: int, end: int, out: Array, at: int, label: Floats, tag: Ints) -> int:
    out[at] = 123
    at += 1
    actions = 0
    while p < end:
        while p < end and (data[p] == 10 or is_blank(data[p])):
            p += 1
        if p == end:
            break
        kind, bar = scan_head(data, p, end, label, tag)
        if kind == SHARED:
            before = at
            p, at = _members(data, bar, end, out, at)
            if at > before:
                out[at] = 44
                at += 1
        else:
            if actions == 0:
                for byte in (34, 95, 109, 117, 108, 116, 105, 34, 58, 91):  # "_multi":[
                    out[at] = byte
                    at += 1
            else:
                out[at] = 44
                at += 1
            out[at] = 123
            p, at = _members(data, bar, end, out, at + 1)
            out[at] = 125
            at += 1
            actions += 1
        p += 1
    out[at], out[at + 1] = 93, 125
    return at + 2
