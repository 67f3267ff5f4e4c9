"""Hashes the features of action sets in JSON (as in Vowpal Wabbit's dsjson), without dictionaries.

One pass over the text gives the same features as `dictionary_sets` on parsed dictionaries. Unusual text (numbers
beyond float32, lists in lists, malformed text) is left to the slow path, which reads it or reports what is wrong. A
repeated key counts twice, as in VW.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from o2pl import _core
from o2pl.compiled import compiled, compiled_apart, compiled_for_threads
from o2pl.contexts.hashed_sets import HashedSets
from o2pl.contexts.json_scan import NO_NAME, crc, scan_key, scan_value, skip_value
from o2pl.contexts.json_syntax import DEEPEST, after_space
from o2pl.protocols import Array, Floats, Ints


def json_sets(texts: Sequence[bytes]) -> HashedSets | None:
    """Hash the features of contexts with `_multi`; None if one of them needs the slow path."""
    found = _core.json_sets(texts)
    return None if found is None else HashedSets(*found)


# -- sets


@compiled_apart
def _action(
    data: Array, p: int, end: int, hashes: Array, values: Floats, n: int, states: Array, places: Ints
) -> tuple[int, int]:
    """Scan the features of one action, an object; keys that start with _ are reserved by VW."""
    p += 1
    while True:
        p = after_space(data, p, end)
        if p >= end:
            return -1, n
        if data[p] == 125:
            return p + 1, n
        if data[p] == 44:
            p += 1
            continue
        if data[p] != 34 or p + 1 >= end:
            return -1, n
        hidden, before = data[p + 1] == 95, n
        p, state = scan_key(data, p, end, np.uint32(NO_NAME))
        if p < 0:
            return -1, n
        p, n = scan_value(data, p, end, state, hashes, values, n, states, places)
        if p < 0:
            return -1, n
        if hidden:
            n = before


@compiled
def _is_multi(data: Array, p: int, end: int) -> bool:
    """Return whether the key at this position is "_multi"."""
    return (
        p + 8 <= end and data[p + 1] == 95 and data[p + 2] == 109 and data[p + 3] == 117 and data[p + 4] == 108
        and data[p + 5] == 116 and data[p + 6] == 105 and data[p + 7] == 34
    )  # fmt: skip


@compiled_for_threads
def scan_sets(
    data: Array, ends: Ints, hashes: Array, values: Floats, shared: Ints, rows: Ints, sizes: Ints
) -> bool:  # fmt: skip
    """Scan the features of all contexts. Those shared by set s are shared[s, 0] … shared[s, 1], those of action k are
    rows[2 k] … rows[2 k + 1]. sizes[s + 1]: number of actions of set s. Returns False if one needs the slow path.
    """
    prefix = np.uint32(NO_NAME)
    for byte in (115, 104, 97, 114, 101, 100):  # "shared"
        prefix = crc(prefix, byte)
    prefix = crc(prefix, 46)
    states, places = np.empty(DEEPEST, np.uint32), np.empty(DEEPEST, np.int64)
    n, k = 0, 0
    for s in range(len(ends) - 1):
        p, end = after_space(data, ends[s], ends[s + 1]), ends[s + 1]
        if p >= end or data[p] != 123:
            return False
        # Shared features are contiguous. If some come after `_multi`, they are scanned again at the end.
        at, found, late = p + 1, False, False
        shared[s, 0] = shared[s, 1] = n
        for again in (False, True):
            if again:
                if not late:
                    break
                at, shared[s, 0] = p + 1, n
            while True:
                at = after_space(data, at, end)
                if at >= end:
                    return False
                if data[at] == 125:
                    break
                if data[at] == 44:
                    at += 1
                    continue
                if data[at] != 34 or at + 1 >= end:
                    return False
                multi, hidden = _is_multi(data, at, end), data[at + 1] == 95
                at, state = scan_key(data, at, end, prefix)
                if at < 0:
                    return False
                if multi and not again:
                    if data[at] != 91 or found:
                        return False
                    found = True
                    at, n, k = _actions(data, at + 1, end, hashes, values, n, rows, k, sizes, s, states, places)
                elif hidden or (found and not again):
                    late = late or not hidden
                    at = skip_value(data, at, end)
                else:
                    at, n = scan_value(data, at, end, state, hashes, values, n, states, places)
                    shared[s, 1] = n
                if at < 0:
                    return False
        if sizes[s + 1] == 0:
            return False
    return True


@compiled_apart
def _actions(
    data: Array, at: int, end: int, hashes: Array, values: Floats, n: int, rows: Ints, k: int, sizes: Ints, s: int,
    states: Array, places: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """Scan the features of all actions of set s, from after the bracket on."""
    while True:
        at = after_space(data, at, end)
        if at >= end:
            return -1, n, k
        if data[at] == 93:
            return at + 1, n, k
        if data[at] == 44:
            at += 1
            continue
        if data[at] != 123:
            return -1, n, k
        rows[2 * k] = n
        at, n = _action(data, at, end, hashes, values, n, states, places)
        if at < 0:
            return -1, n, k
        rows[2 * k + 1] = n
        k += 1
        sizes[s + 1] += 1
