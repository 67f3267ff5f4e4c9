"""Compiled scanner of events in Vowpal Wabbit's text: checks them, and hashes their features like `json_scan`.

    shared |User age:31           an event: the features that its actions share, if any,
    0:-1:0.8 |Item price:3 x      and a line per action; the played one has a label, action:cost:probability
    |Item price:2

Names and numbers are those of the JSON that `vw_json` writes: `shared.User.age`, `Item.price`. Unusual events
(namespace scales, quotes, a repeated namespace, numbers that JSON writes differently, errors) are left to `vw_events`,
which reads them or reports what is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.compiled import compiled_apart, compiled_within
from o2pl.contexts.json_scan import LARGEST, NO_NAME, crc, hashed, mixed, number
from o2pl.contexts.json_syntax import byte_at
from o2pl.protocols import Array, Floats, Ints

SPACES = 64  # largest number of namespaces per line
UNUSUAL, LINE_END, NO_NAMESPACE, NAMESPACE, FEATURE = range(-1, 4)  # kinds of parts of a line
NO_LABEL, LABEL, SHARED = range(3)  # kinds of lines

_PLAIN = np.ones(256, np.bool_)  # bytes without a meaning of their own
_PLAIN[:33] = _PLAIN[[34, 58, 92, 124]] = False


@compiled_within
def is_blank(byte: Any) -> bool:
    return byte == 32 or byte == 9 or byte == 13  # type: ignore[no-any-return]  # numpy's bool here


@compiled_within
def next_part(data: Array, p: int, end: int) -> tuple[int, int, int, int]:
    """Scan the next part of a line, from its first bar on. Returns its kind, start, last colon (-1: none), and end."""
    while p < end and is_blank(data[p]):
        p += 1
    if p >= end or data[p] == 10:
        return LINE_END, p, -1, p
    kind = FEATURE
    if data[p] == 124:
        p += 1
        if p >= end or data[p] == 10 or data[p] == 124 or is_blank(data[p]):
            return NO_NAMESPACE, p, -1, p
        kind = NAMESPACE
    begin, colon = p, -1
    while p < end:
        byte = byte_at(data, p)
        if not _PLAIN[byte]:
            if byte <= 32 or byte == 124:
                break
            if byte != 58:
                return UNUSUAL, begin, -1, p
            colon = p
        p += 1
    if p < end and data[p] < 32 and data[p] != 10 and not is_blank(data[p]):
        return UNUSUAL, begin, -1, p
    return kind, begin, colon, p


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
def _line(
    data: Array, p: int, end: int, prefix: Any, hashes: Array, values: Floats, n: int, spaces: Ints
) -> tuple[int, int]:
    """Scan the features of a line, from its first bar on. Returns the end of the line (-1: unusual) and n.

    Writes them from n on. prefix: the state before their names; spaces: work array, [`SPACES`, 2].
    """
    seen, state, hidden = 0, prefix, False
    while True:
        kind, begin, colon, p = next_part(data, p, end)
        if kind == FEATURE:
            value = 1.0
            if colon >= 0:
                after, value = number(data, colon + 1, p) if colon + 1 < p else (-1, 0.0)
                if after != p or abs(value) > LARGEST:
                    return -1, n
            if not hidden and (seen > 0 or data[begin] != 95):  # names that start with _ are reserved by VW
                hashes[n], values[n] = mixed(hashed(data, begin, p if colon < 0 else colon, state)), value
                n += 1
        elif kind == NAMESPACE:
            if colon >= 0 or seen >= SPACES or _known(data, begin, p, spaces, seen):
                return -1, n
            spaces[seen, 0], spaces[seen, 1] = begin, p
            seen, hidden, state = seen + 1, data[begin] == 95, crc(hashed(data, begin, p, prefix), 46)
        elif kind == LINE_END:
            return p, n
        elif kind == UNUSUAL or seen > 0:  # features without a namespace come first in JSON
            return -1, n


@compiled_within
def _is_shared(data: Array, p: int, end: int) -> bool:
    return (
        end - p == 6 and data[p] == 115 and data[p + 1] == 104 and data[p + 2] == 97 and data[p + 3] == 114
        and data[p + 4] == 101 and data[p + 5] == 100
    )  # fmt: skip


@compiled_apart
def scan_head(data: Array, p: int, end: int, label: Floats, tag: Ints) -> tuple[int, int]:
    """Scan the part of a line before its first bar. Returns the kind of the line (-1: unusual) and the bar's position.

    Writes label (cost and probability) and tag (start and end).
    """
    found = NO_LABEL
    while p < end and data[p] != 124:
        if data[p] == 10:
            return -1, p
        if is_blank(data[p]):
            p += 1
            continue
        begin = p
        while p < end and data[p] > 32 and data[p] != 124:
            p += 1
        if p == begin:
            return -1, p
        if data[begin] == 39:
            tag[0], tag[1] = begin + 1, p
        elif found != NO_LABEL:
            return -1, p
        elif _is_shared(data, begin, p):
            found = SHARED
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
            label[0], label[1], found = cost, probability, LABEL
    return (found if p < end else -1), p


@compiled_apart
def scan_event(
    data: Array, p: int, end: int, label: Floats, tag: Ints, hashes: Array, values: Floats, n: int, lists: Ints, k: int,
    spaces: Ints,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Scan an event from its first line to an empty line, or to the end of the data.

    Writes label and tag, and its features from n on: the shared ones up to lists[k], those of action a up to
    lists[k + 1 + a]. Returns the labelled action (-1: none), n and k after it (k unchanged: unusual), the event's end,
    and its lines.
    """
    begin, chosen, lines, last = k, -1, 0, p
    lists[k] = n
    k += 1
    while p < end:
        q = p
        while q < end and is_blank(data[q]):
            q += 1
        if q == end or data[q] == 10:
            break
        kind, bar = scan_head(data, q, end, label, tag)
        if kind < 0 or (kind == LABEL and chosen >= 0) or (kind == SHARED and lines > 0):
            return -1, n, begin, 0, 0
        prefix = np.uint32(NO_NAME)
        if kind == SHARED:
            k = begin
            for byte in (115, 104, 97, 114, 101, 100, 46):  # "shared."
                prefix = crc(prefix, byte)
        elif kind == LABEL:
            chosen = k - begin - 1
        last, n = _line(data, bar, end, prefix, hashes, values, n, spaces)
        if last < 0:
            return -1, n, begin, 0, 0
        lists[k] = n
        k += 1
        lines += 1
        p = last + 1
    return chosen, n, begin if k == begin + 1 else k, last, lines
