"""Action sets as hashed features, and their encoding as rows: own features, shared features, and products of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from o2pl.compiled import compiled_for_threads
from o2pl.compiled.threads import side_by_side
from o2pl.contexts.expanding import expand, expanded_size
from o2pl.errors import InvalidInput
from o2pl.protocols import Array, Floats, Ints
from o2pl.rows import ActionSets, SparseRows, entries_at

_PART = 2**13  # sets that one thread encodes at a time


@dataclass(frozen=True, eq=False)
class HashedSets:
    """Features of action sets by `name_hash`, with all of its bits: each learner takes as many as it needs.

    `sets[:10]` and `sets[rows]` select sets; the features are not copied.
    """

    hashes: Array  # uint32, [total]
    values: Floats  # float32, [total]
    shared: Ints  # start and end of the features that the actions of each set share, [n, 2]
    rows: Ints  # start and end of the features of each action, [sum of K, 2]
    offsets: Ints  # start of each set in `rows`, [n + 1]

    @classmethod
    def joined(cls, parts: Sequence[HashedSets]) -> HashedSets:
        """Return the sets of several parts as one."""
        if len(parts) == 1:
            return parts[0]
        starts = np.cumsum([0] + [len(part.hashes) for part in parts])
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])
        return cls(
            np.concatenate([part.hashes for part in parts]),
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.shared + start for part, start in zip(parts, starts, strict=False)]),
            np.concatenate([part.rows + start for part, start in zip(parts, starts, strict=False)]),
            np.concatenate([[0], np.cumsum(sizes)]),
        )

    def __len__(self) -> int:
        return len(self.shared)

    def __getitem__(self, sets: slice | Ints) -> HashedSets:
        own, offsets = entries_at(self.offsets, sets)
        shared = np.ascontiguousarray(self.shared[sets])
        return replace(self, shared=shared, rows=self.rows[own], offsets=offsets)

    def encoded(self, mask: int, signed: bool, played: Ints | None = None) -> ActionSets:
        """Return rows with the features of an action, then the shared ones, then the products of both.

        played: index of one action per set, to encode only that one; None: all.
        """
        rows, offsets = self.rows, self.offsets
        if played is not None:
            if not ((played >= 0) & (played < np.diff(offsets))).all():
                raise InvalidInput("action: found an index beyond the actions of its context")
            rows, offsets = rows[offsets[:-1] + played], np.arange(len(offsets))
        out_offsets = np.zeros(len(rows) + 1, np.int64)
        longest = _sizes(self.shared, rows, offsets, out_offsets)
        indices, out_values = np.empty(out_offsets[-1], np.int32), np.empty(out_offsets[-1], np.float32)

        def fill(part: int) -> None:
            both = np.empty((max(longest, 1), 2), np.uint32)
            _fill(
                self.hashes, self.values, self.shared, rows, offsets, both, both.view(np.float32), np.uint32(mask),
                signed, part * _PART, min((part + 1) * _PART, len(self)), out_offsets, indices, out_values,
            )  # fmt: skip

        if len(self) > _PART:
            side_by_side(fill, -(-len(self) // _PART))
        elif len(self):
            fill(0)  # perhaps by one of several threads
        return ActionSets(SparseRows(indices, out_values, out_offsets, mask + 1), offsets)


@compiled_for_threads
def _sizes(shared: Ints, rows: Ints, offsets: Ints, out_offsets: Ints) -> int:
    """Compute the offsets of the rows' entries. Returns the largest number of features of a row without products."""
    longest, segments, pairs = 0, np.zeros((2, 2), np.int64), np.array([[1, 0]])
    for s in range(len(shared)):
        common = shared[s, 1] - shared[s, 0]
        for k in range(offsets[s], offsets[s + 1]):
            own = rows[k, 1] - rows[k, 0]
            segments[0, 1], segments[1, 0], segments[1, 1] = own, own, own + common
            out_offsets[k + 1] = out_offsets[k] + expanded_size(own + common, segments, pairs)
            longest = max(longest, own + common)
    return longest


@compiled_for_threads
def _fill(
    hashes: Array, values: Floats, shared: Ints, rows: Ints, offsets: Ints, both: Array, both_values: Floats,
    mask: Any, signed: bool, begin: int, end: int, out_offsets: Ints, indices: Ints, out_values: Floats,
) -> None:  # fmt: skip
    """Fill the rows of sets `begin` to `end`.

    `both` [longest, 2] holds a row's features for `expand`; both_values views the same memory.
    """
    at, segments, pairs = out_offsets[offsets[begin]], np.zeros((2, 2), np.int64), np.array([[1, 0]])
    for s in range(begin, end):
        common = shared[s, 1] - shared[s, 0]
        for k in range(offsets[s], offsets[s + 1]):
            first, own = rows[k, 0], rows[k, 1] - rows[k, 0]
            for i in range(own):
                both[i, 0], both_values[i, 1] = hashes[first + i], values[first + i]
            for i in range(common):
                both[own + i, 0], both_values[own + i, 1] = hashes[shared[s, 0] + i], values[shared[s, 0] + i]
            segments[0, 1], segments[1, 0], segments[1, 1] = own, own, own + common
            at = expand(both, both_values, own + common, segments, pairs, mask, signed, at, indices, out_values)
