"""Compiled scanner of VW's text format: writes the features of each event as JSON.

    shared |User age:31          ->  {"User":{"age":31},"_multi":[{"Item":{"price":3,"kind=news":1}}, ...]}
    0:-1:0.8 |Item price:3 kind=news

Unusual events (namespace scales, quotes, a repeated namespace, numbers that JSON writes differently, errors) are left
to `vw_text`, which reads them or reports what is wrong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from o2pl.compiled import compiled, compiled_apart, compiled_within
from o2pl.contexts.json_scan import number
from o2pl.protocols import Array, Floats, Ints

_SPACES = 64  # largest number of namespaces per line


class Events(NamedTuple):
    """The scanned events."""

    places: Ints  # start and end of each event, [n, 2]
    numbered: Ints  # its first line, from 0 in the block, [n]
    fine: Array  # False: use the slow path
    action: Ints  # -1: no label, [n]
    label: Floats  # cost and probability, [n, 2]
    tag: Ints  # start and end; -1: none, [n, 2]
    context: Ints  # start and end in `written`, [n, 2]
    written: Array


def scan_events(block: bytes, n: int) -> Events:
    """Scan at most n complete events, separated by empty lines."""
    data = np.frombuffer(block, np.uint8)
    found = Events(
        np.zeros((n, 2), np.int64), np.zeros(n, np.int64), np.zeros(n, np.bool_), np.full(n, -1, np.int64),
        np.full((n, 2), np.nan), np.full((n, 2), -1, np.int64), np.zeros((n, 2), np.int64),
        np.empty(8 * len(data) + 64, np.uint8),
    )  # fmt: skip
    events = _scan(data, *found)
    return Events(
        found.places[:events], found.numbered[:events], found.fine[:events], found.action[:events],
        found.label[:events], found.tag[:events], found.context[:events], found.written,
    )  # fmt: skip


@compiled_within
def _blank(byte: Any) -> bool:
    return byte == 32 or byte == 9 or byte == 13  # type: ignore[no-any-return]  # numpy's bool here


@compiled_within
def _copy(data: Array, begin: int, end: int, out: Array, at: int) -> int:
    for i in range(end - begin):
        out[at + i] = data[begin + i]
    return at + end - begin


@compiled_within
def _known(data: Array, begin: int, end: int, spaces: Ints, seen: int) -> bool:
    """Return whether a namespace of this name occurred earlier in the line."""
    for k in range(seen):
        if spaces[k, 1] - spaces[k, 0] == end - begin:
            i = 0
            while i < end - begin and data[spaces[k, 0] + i] == data[begin + i]:
                i += 1
            if i == end - begin:
                return True
    return False


@compiled_apart
def _features(data: Array, p: int, out: Array, at: int, spaces: Ints) -> tuple[int, int]:
    """Convert a line from its first bar to its end to members of a JSON object, without braces.

    Returns the position of the end of the line (-1: slow), and the position after the output.
    """
    seen, top, inner, inside, end = 0, 0, 0, False, len(data)
    while p < end:
        byte = data[p]
        if byte == 10:
            break
        if _blank(byte):
            p += 1
            continue
        bar = byte == 124
        if bar:
            if inside:
                out[at] = 125
                at += 1
            p += 1
            inside = p < end and data[p] != 10 and data[p] != 124 and not _blank(data[p])
            if not inside:
                if seen > 0:
                    return -1, at  # features without a namespace must come first in JSON
                continue
        if (top if bar or not inside else inner) > 0:
            out[at] = 44
            at += 1
        out[at] = 34
        at += 1
        begin, start, colon = p, at, -1
        while p < end:
            byte = data[p]
            if byte <= 32 or byte == 124:
                break
            if byte == 34 or byte == 92:
                return -1, at
            if byte == 58:
                colon = p
            out[at] = byte
            at += 1
            p += 1
        if p < end and data[p] < 32 and data[p] != 10 and not _blank(data[p]):
            return -1, at
        if bar:
            if colon >= 0 or seen >= _SPACES or _known(data, begin, p, spaces, seen):
                return -1, at
            spaces[seen, 0], spaces[seen, 1] = begin, p
            out[at], out[at + 1], out[at + 2] = 34, 58, 123
            seen, at, inner, top = seen + 1, at + 3, 0, top + 1
            continue
        if colon < 0:
            out[at], out[at + 1], out[at + 2] = 34, 58, 49
            at += 3
        else:
            after, _ = number(data, colon + 1, p) if colon + 1 < p else (-1, 0.0)
            if after != p:
                return -1, at
            at = start + colon - begin
            out[at], out[at + 1] = 34, 58
            at = _copy(data, colon + 1, p, out, at + 2)
        inner, top = inner + inside, top + (not inside)
    if inside:
        out[at] = 125
        at += 1
    return p, at


@compiled_within
def _is_shared(data: Array, p: int, end: int) -> bool:
    return (
        end - p == 6 and data[p] == 115 and data[p + 1] == 104 and data[p + 2] == 97 and data[p + 3] == 114
        and data[p + 4] == 101 and data[p + 5] == 100
    )  # fmt: skip


@compiled_apart
def _head(data: Array, p: int, label: Floats, tag: Ints) -> tuple[int, int]:
    """Parse the part before the bar: 0 nothing, 1 label, 2 `shared`; -1: slow. Returns it and the bar's position.

    Writes label and tag.
    """
    found, end = 0, len(data)
    while p < end and data[p] != 124:
        if data[p] == 10:
            return -1, p
        if _blank(data[p]):
            p += 1
            continue
        begin = p
        while p < end and data[p] > 32 and data[p] != 124:
            p += 1
        if p == begin:
            return -1, p
        if data[begin] == 39:
            tag[0], tag[1] = begin + 1, p
        elif found:
            return -1, p
        elif _is_shared(data, begin, p):
            found = 2
        else:
            at, _ = number(data, begin, p)
            if at < 0 or at + 1 >= p or data[at] != 58:
                return -1, p
            at, cost = number(data, at + 1, p)
            if at < 0 or at + 1 >= p or data[at] != 58:
                return -1, p
            at, probability = number(data, at + 1, p)
            if at != p or not 0 < probability <= 1:
                return -1, p
            label[0], label[1], found = cost, probability, 1
    return (found if p < end else -1), p


@compiled_apart
def _event(
    data: Array, p: int, label: Floats, tag: Ints, out: Array, at: int, spaces: Ints
) -> tuple[int, int, int, int]:
    """Scan an event from its first line to an empty line, or to the end of the data.

    Returns the labelled action (-1: none), the position after its JSON (-1: slow), its end in the data, and its lines.
    """
    begin, actions, chosen, lines, end = at, 0, -1, 0, len(data)
    out[at] = 123
    at += 1
    last = p
    while p < end:
        q = p
        while q < end and _blank(data[q]):
            q += 1
        if q == end or data[q] == 10:
            break
        head, bar = _head(data, q, label, tag)
        if head < 0 or (head == 1 and chosen >= 0) or (head == 2 and (actions > 0 or at > begin + 1)):
            return chosen, -1, 0, 0
        if head == 2:
            before = at
            last, at = _features(data, bar, out, at, spaces)
            if last < 0:
                return chosen, -1, 0, 0
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
            if head == 1:
                chosen = actions
            out[at] = 123
            last, at = _features(data, bar, out, at + 1, spaces)
            if last < 0:
                return chosen, -1, 0, 0
            out[at] = 125
            at += 1
            actions += 1
        lines += 1
        p = last + 1
    if actions == 0:
        return chosen, -1, 0, 0
    out[at], out[at + 1] = 93, 125
    return chosen, at + 2, last, lines


@compiled_apart
def _event_end(data: Array, p: int) -> tuple[int, int]:
    """Return the end of an event for the slow path, and its number of lines."""
    last, lines, end = p, 0, len(data)
    while p < end:
        stop, filled = p, False
        while stop < end and data[stop] != 10:
            filled = filled or not _blank(data[stop])
            stop += 1
        if not filled:
            break
        last, lines, p = stop, lines + 1, stop + 1
    return last, lines


@compiled
def _scan(
    data: Array, places: Ints, numbered: Ints, fine: Array, action: Ints, label: Floats, tag: Ints, context: Ints,
    written: Array,
) -> int:  # fmt: skip
    """Scan a block. Returns the number of events."""
    spaces = np.empty((_SPACES, 2), np.int64)
    p, n, line, at = 0, 0, 0, 0
    while p < len(data):
        if data[p] == 10:
            line += 1
            p += 1
            continue
        if _blank(data[p]):
            p += 1
            continue
        action[n], after, last, lines = _event(data, p, label[n], tag[n], written, at, spaces)
        fine[n] = after >= 0
        if after < 0:
            last, lines = _event_end(data, p)
        places[n, 0], places[n, 1], numbered[n], context[n, 0] = p, last, line, at
        at = max(at, after)
        context[n, 1] = at
        p, line = last + 1, line + lines
        n += 1
    return n
