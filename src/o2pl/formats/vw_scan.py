"""Events of a block of Vowpal Wabbit's text: their labels and their hashed features."""

from __future__ import annotations

from typing import NamedTuple

from o2pl import _core
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


def scan_vw_events(block: bytes) -> Events:
    """Scan a block, whose events are separated by empty lines."""
    return Events(*_core.scan_vw_text(block))
