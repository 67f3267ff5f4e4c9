"""Compiled scanner of a block of Vowpal Wabbit's text: its events, their labels, and their features, hashed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from o2pl.compiled import compiled_apart, compiled_for_threads
from o2pl.contexts.vw_scan import SPACES, is_blank, scan_event
from o2pl.protocols import Array, Floats, Ints


class Events(NamedTuple):
    """The scanned events."""

    places: Ints  # start and end of each event, [n, 2]
    numbered: Ints  # its first line, from 0 in the block, [n]
    usual: Array  # False: use the slow path
    action: Ints  # -1: no label, [n]
    label: Floats  # cost and probability, [n, 2]
    tag: Ints  # start and end; -1: none, [n, 2]
    sets: Ints  # start of each event in `lists`, [n + 1]
    lists: Ints  # end of the features of each list: shared features and those of each action; unusual events have none
    hashes: Array
    values: Floats


def scan_events(block: bytes, lines: int) -> Events:
    """Scan a block of this many lines, the last without a newline; events are separated by empty lines."""
    data, n = np.frombuffer(block, np.uint8), lines // 2 + 1
    room = len(data) // 2 + 1  # a feature takes at least two bytes, with the blank before it
    found = Events(
        np.zeros((n, 2), np.int64), np.zeros(n, np.int64), np.zeros(n, np.bool_), np.full(n, -1, np.int64),
        np.full((n, 2), np.nan), np.full((n, 2), -1, np.int64), np.zeros(n + 1, np.int32),
        np.empty(lines + n, np.int32), np.empty(room, np.uint32), np.empty(room, np.float32),
    )  # fmt: skip
    events = _scan(data, *found)
    lists = found.lists[: found.sets[events]]
    features = int(lists[-1]) if len(lists) else 0
    return Events(
        found.places[:events], found.numbered[:events], found.usual[:events], found.action[:events],
        found.label[:events], found.tag[:events], found.sets[: events + 1], lists, found.hashes[:features],
        found.values[:features],
    )  # fmt: skip


@compiled_apart
def _event_end(data: Array, p: int) -> tuple[int, int]:
    """Return the end of an event for the slow path, and its number of lines."""
    last, lines, end = p, 0, len(data)
    while p < end:
        stop, filled = p, False
        while stop < end and data[stop] != 10:
            filled = filled or not is_blank(data[stop])
            stop += 1
        if not filled:
            break
        last, lines, p = stop, lines + 1, stop + 1
    return last, lines


@compiled_for_threads
def _scan(
    data: Array, places: Ints, numbered: Ints, usual: Array, action: Ints, label: Floats, tag: Ints, sets: Ints,
    lists: Ints, hashes: Array, values: Floats,
) -> int:  # fmt: skip
    """Scan a block. Returns the number of events."""
    spaces = np.empty((SPACES, 2), np.int64)
    p, s, line, n = 0, 0, 0, 0
    while p < len(data):
        if data[p] == 10:
            line += 1
            p += 1
            continue
        if is_blank(data[p]):
            p += 1
            continue
        action[s], reached, sets[s + 1], last, lines = scan_event(
            data, p, len(data), label[s], tag[s], hashes, values, n, lists, sets[s], spaces
        )
        usual[s] = sets[s + 1] > sets[s]
        if usual[s]:
            n = reached
        else:
            last, lines = _event_end(data, p)
        places[s, 0], places[s, 1], numbered[s] = p, last, line
        p, line = last + 1, line + lines
        s += 1
    return s
