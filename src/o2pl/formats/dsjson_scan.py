"""Compiled scanner of dsjson lines: labels and rankings become numbers, everything else stays as positions in the text.

Unusual lines (slots, real-valued actions, escaped keys, numbers with many digits, errors) are left to `dsjson`, which
reads them or reports what is wrong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from o2pl.compiled import compiled_apart, compiled_for_threads, compiled_within
from o2pl.contexts.json_scan import number
from o2pl.contexts.json_syntax import DEEPEST, after_space, after_string, after_value
from o2pl.protocols import Array, Floats, Ints

NUMBERS = ("_label_cost", "_label_probability", "_label_Action", "_labelIndex", "pdrop")
COST, PROBABILITY, ACTION, INDEX, DROP = range(len(NUMBERS))
TEXTS = ("EventId", "Timestamp")
_OTHERS = ("c", "a", "p", "_skipLearn", "_label_ca", "_outcomes")
_C, _A, _P, _SKIP, _REAL, _SLOTS = range(7, 13)
_KEYS = np.array([name.encode().ljust(24, b"\0") for name in (*NUMBERS, *TEXTS, *_OTHERS)])
_NAMES = _KEYS.view(np.uint8).reshape(len(_KEYS), 24)
_LENGTHS = np.array([len(name) for name in (*NUMBERS, *TEXTS, *_OTHERS)])


class Lines(NamedTuple):
    """The scanned lines; empty lines are omitted."""

    places: Ints  # start and end of each line, [n, 2]
    numbered: Ints  # number of each line, from 0 in the block, [n]
    fine: Array  # False: use the slow path
    numbers: Floats  # in the order of `NUMBERS`; NaN if missing, [n, 5]
    skip: Ints  # -1: missing, [n]
    texts: Ints  # start and end of the texts of `TEXTS`, without quotes; -1: none, [n, 4]
    context: Ints  # start and end of `c`, [n, 2]
    ranked: Ints  # offsets of the lines' actions, [n + 1]
    actions: Ints
    chances: Floats  # one per action
    rest: Ints  # start and end in `rest_bytes`; equal: empty, [n, 2]
    rest_bytes: Array


def scan_lines(block: bytes, n: int) -> Lines:
    """Scan at most n complete lines."""
    data = np.frombuffer(block, np.uint8)
    found = Lines(
        np.zeros((n, 2), np.int64), np.zeros(n, np.int64), np.zeros(n, np.bool_), np.full((n, len(NUMBERS)), np.nan),
        np.full(n, -1, np.int8), np.full((n, 4), -1, np.int64), np.zeros((n, 2), np.int64), np.zeros(n + 1, np.int64),
        np.empty(len(data) // 2 + 1, np.int32), np.empty(len(data) // 2 + 1), np.zeros((n, 2), np.int64),
        np.empty(len(data) + 2 * n + 2, np.uint8),
    )  # fmt: skip
    lines = _scan(data, *found)
    total = found.ranked[lines]
    return Lines(
        found.places[:lines], found.numbered[:lines], found.fine[:lines], found.numbers[:lines], found.skip[:lines],
        found.texts[:lines], found.context[:lines], found.ranked[: lines + 1], found.actions[:total],
        found.chances[:total], found.rest[:lines], found.rest_bytes,
    )  # fmt: skip


@compiled_within
def _key(data: Array, p: int, end: int) -> int:
    """Return the number of the key at this position; -1: unknown."""
    for k in range(len(_LENGTHS)):
        if _LENGTHS[k] == end - p:
            i = 0
            while i < end - p and data[p + i] == _NAMES[k, i]:
                i += 1
            if i == end - p:
                return k
    return -1


@compiled_apart
def _ranking(data: Array, p: int, end: int, out: Any, n: int, whole: bool) -> tuple[int, int]:
    """Scan a list of numbers into out[n:]. Returns the position after it (-1: slow) and n. whole: integers only."""
    if data[p] != 91:
        return -1, n
    p = after_space(data, p + 1, end)
    if p < end and data[p] == 93:
        return p + 1, n
    while p < end:
        p, value = number(data, p, end)
        if p < 0 or (whole and (value != np.floor(value) or abs(value) > 1e9)):
            return -1, n
        out[n] = value
        n += 1
        p = after_space(data, p, end)
        if p >= end:
            return -1, n
        if data[p] == 93:
            return p + 1, n
        if data[p] != 44:
            return -1, n
        p = after_space(data, p + 1, end)
    return -1, n


@compiled_within
def _is_null(data: Array, p: int, end: int) -> bool:
    return p + 4 <= end and data[p] == 110 and data[p + 1] == 117 and data[p + 2] == 108 and data[p + 3] == 108


@compiled_apart
def _line(
    data: Array, p: int, end: int, numbers: Floats, skip: Ints, row: int, texts: Ints, context: Ints, n: int,
    actions: Ints, chances: Floats, rest: Ints, rest_bytes: Array, at: int, objects: Array,
) -> tuple[int, int]:  # fmt: skip
    """Scan one event to the end of its line. Returns the actions and bytes of the rest so far; -1: slow path."""
    if p >= end or data[p] != 123:
        return -1, at
    first, ranked, chanced = n, n, n
    p = after_space(data, p + 1, end)
    rest[0] = at
    begun = False
    while True:
        if p >= end or data[p] != 34:
            return -1, at
        begin = p
        p = after_string(data, p, end)
        if p < 0:
            return -1, at
        key = _key(data, begin + 1, p - 1)
        for i in range(begin + 1, p - 1):
            if data[i] == 92:
                return -1, at
        p = after_space(data, p, end)
        if p >= end or data[p] != 58:
            return -1, at
        p = after_space(data, p + 1, end)
        if p >= end:
            return -1, at
        value = p
        if key >= _REAL:
            return -1, at
        if 0 <= key < 5:
            if _is_null(data, p, end):
                p += 4
            else:
                p, found = number(data, p, end)
                if p < 0:
                    return -1, at
                numbers[key] = found
        elif 5 <= key < 7:
            if _is_null(data, p, end):
                p += 4
            else:
                if data[p] != 34:
                    return -1, at
                p = after_string(data, p, end)
                if p < 0:
                    return -1, at
                for i in range(value + 1, p - 1):
                    if data[i] == 92:
                        return -1, at
                texts[2 * (key - 5)], texts[2 * (key - 5) + 1] = value + 1, p - 1
        elif key == _A:
            p, ranked = _ranking(data, p, end, actions, first, True)
        elif key == _P:
            p, chanced = _ranking(data, p, end, chances, first, False)
        else:
            p = after_value(data, p, end, objects)
            if p < 0:
                return -1, at
            if key == _C:
                context[0], context[1] = value, p
            elif key == _SKIP:
                if data[value] != 116 and data[value] != 102:
                    return -1, at
                skip[row] = data[value] == 116
            else:
                rest_bytes[at] = 44 if begun else 123
                at += 1
                begun = True
                for i in range(begin, p):
                    rest_bytes[at] = data[i]
                    at += 1
        if p < 0:
            return -1, at
        p = after_space(data, p, end)
        if p >= end:
            return -1, at
        if data[p] == 125:
            break
        if data[p] != 44:
            return -1, at
        p = after_space(data, p + 1, end)
    if begun:
        rest_bytes[at] = 125
        at += 1
    rest[1] = at
    if after_space(data, p + 1, end) != end or ranked != chanced or context[1] == 0:
        return -1, at
    return ranked, at


@compiled_for_threads
def _scan(
    data: Array, places: Ints, numbered: Ints, fine: Array, numbers: Floats, skip: Ints, texts: Ints, context: Ints,
    ranked: Ints, actions: Ints, chances: Floats, rest: Ints, rest_bytes: Array,
) -> int:  # fmt: skip
    """Scan a block. Returns the number of non-empty lines."""
    objects = np.empty(DEEPEST, np.bool_)
    p, n, line, at = 0, 0, 0, 0
    while p < len(data):
        end = p
        while end < len(data) and data[end] != 10:
            end += 1
        begin = after_space(data, p, end)
        if begin < end:
            places[n, 0], places[n, 1], numbered[n] = begin, end, line
            so_far, before = ranked[n], at
            reached, at = _line(
                data, begin, end, numbers[n], skip, n, texts[n], context[n], so_far, actions, chances, rest[n],
                rest_bytes, at, objects,
            )  # fmt: skip
            fine[n] = reached >= 0
            if reached < 0:
                at = before
                rest[n, 0] = rest[n, 1] = at
            ranked[n + 1] = reached if reached >= 0 else so_far
            n += 1
        line += 1
        p = end + 1
    return n
