"""Scans lines of dsjson, and converts them to the columns of a log table.

Unusual lines (slots, real-valued actions, escaped keys, errors) are left to `dsjson`, which reads them or reports what
is wrong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from o2pl import _core
from o2pl.formats.hashed_column import HASHED, hashed_column
from o2pl.protocols import Array, Floats, Ints

Texts = tuple[Array, Ints, Array]  # bytes; offsets, [n + 1]; which are missing, [n]


class Lines(NamedTuple):
    """The scanned lines; empty lines are omitted. NaN or -1: missing. Lines that are not fine have only a place."""

    places: Ints  # start and end of each line, [2 n]
    numbered: Ints  # number of each line, from 0 in the block, [n]
    fine: Array  # False: use the slow path
    action: Ints
    reward: Floats
    propensity: Floats
    drop_probability: Floats
    skip: Ints
    context: Texts
    event_id: Texts
    time: Texts
    rest: Texts
    ranked: Ints  # offsets of the lines' rankings, [n + 1]
    ranking: Ints
    probabilities: Floats
    sets: Ints  # offsets of the contexts' lists of features, [n + 1]; contexts that were not hashed have none
    lists: Ints  # end of the features of each list: shared features and those of each action
    hashes: Array
    values: Floats


def scan_dsjson_for_table(block: bytes, hashed: bool = False) -> Lines:
    """Scan complete lines. hashed: hash the features of contexts with `_multi` too."""
    return Lines(*_core.scan_dsjson(block, hashed))


def fast_dsjson_table(pa: Any, found: Lines, schema: dict[str, Any], hashed: bool) -> Any:
    """Return a row per line; those that are not fine have no content. hashed: add the column of hashed features."""
    n, none = len(found.fine), pa.array(np.diff(found.ranked) == 0)
    lists = {"ranking": found.ranking, "probabilities": found.probabilities}
    columns = {
        "action": pa.array(found.action, pa.int64(), mask=found.action < 0).cast(schema["action"]),
        **{name: pa.array(getattr(found, name), pa.float64(), from_pandas=True) for name in _NUMBERS},
        **{name: pa.ListArray.from_arrays(found.ranked, pa.array(each), mask=none) for name, each in lists.items()},
        **{name: _dsjson_table_texts(pa, *getattr(found, name)) for name in ("context", "event_id", "time", "rest")},
        "slot": pa.nulls(n, schema["slot"]),
        "skip_learn": pa.array(found.skip == 1, pa.bool_(), mask=found.skip < 0),
        "slot_rest": pa.nulls(n, schema["slot_rest"]),
    }
    made = {name: columns[name] for name in schema}
    return pa.table(made | {HASHED: hashed_column(pa, found)} if hashed else made)


_NUMBERS = ("reward", "propensity", "drop_probability")


def _dsjson_table_texts(pa: Any, data: Array, offsets: Ints, missing: Array) -> Any:
    """Return an Arrow column; nothing is copied."""
    mask = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None
    return pa.StringArray.from_buffers(len(missing), pa.py_buffer(offsets), pa.py_buffer(data), mask)
