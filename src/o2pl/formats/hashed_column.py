"""Hashed features of action sets as a column of a log table: a list of shared features, and a list per action."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from o2pl.data.hashed_sets import HashedSets
from o2pl.data.records import Texts
from o2pl.encode.json_sets import json_sets
from o2pl.protocols import Array, Floats, Ints
from o2pl.threads import ahead_in_threads

HASHED = "hashed"  # name of the column, beside `context`


def has_hashes(table: Any) -> bool:
    """Return whether a table has this column, and not one of the same name."""
    import pyarrow as pa

    kind = pa.list_(pa.list_(pa.struct([("hash", pa.uint32()), ("value", pa.float32())])))
    return HASHED in table.column_names and table.schema.field(HASHED).type == kind


class Scanned(Protocol):
    """What a scanner found: a shared list of features and one per action, for each context that it hashed."""

    @property
    def sets(self) -> Ints: ...  # offsets of the contexts' lists, [n + 1]
    @property
    def lists(self) -> Ints: ...  # end of each list among the features
    @property
    def hashes(self) -> Array: ...
    @property
    def values(self) -> Floats: ...


def hashed_column(pa: Any, found: Scanned) -> Any:
    """Return lists of lists of hashes and values; null for contexts that were not hashed. Nothing is copied."""
    features = pa.StructArray.from_arrays([pa.array(found.hashes), pa.array(found.values)], ["hash", "value"])
    ends = np.concatenate([np.zeros(1, np.int32), found.lists])
    lists, none = pa.ListArray.from_arrays(pa.array(ends), features), np.diff(found.sets) == 0
    return pa.ListArray.from_arrays(pa.array(found.sets), lists, mask=pa.array(none) if none.any() else None)


def hashed_sets(column: Any, contexts: Texts) -> HashedSets | None:
    """Return the features of a column. Those that are null are found in the contexts, JSON; None if that fails."""
    parts = list(ahead_in_threads(_hashed_column_of_chunk, column.chunks))
    given = np.asarray(column.is_valid())
    if not given.all():
        others = json_sets([contexts[row] for row in np.flatnonzero(~given).tolist()])
        if others is None:
            return None
        parts.append(others)
    found = HashedSets.joined(parts)
    if given.all():
        return found
    return found[np.argsort(np.concatenate([np.flatnonzero(given), np.flatnonzero(~given)]))]


def _hashed_column_of_chunk(chunk: Any) -> HashedSets:
    chunk = chunk.drop_null()
    lists = chunk.flatten()
    features = lists.flatten()
    ends = np.concatenate([[0], np.cumsum(lists.value_lengths())])
    places = np.column_stack([ends[:-1], ends[1:]])
    offsets = np.concatenate([[0], np.cumsum(chunk.value_lengths())])  # of sets among the lists; the first is shared
    own = np.ones(len(places), bool)
    own[offsets[:-1]] = False
    return HashedSets(
        features.field("hash").to_numpy(),
        features.field("value").to_numpy(),
        places[offsets[:-1]],
        places[own],
        offsets - np.arange(len(offsets)),
    )
