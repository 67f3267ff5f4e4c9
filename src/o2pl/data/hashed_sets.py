"""Action sets as hashed features, and their encoding as rows: own features, shared features, and products of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from o2pl import _core
from o2pl.data.contexts import ActionSets, SparseRows, context_entries_at
from o2pl.errors import InvalidInput
from o2pl.protocols import Array, Floats, Ints
from o2pl.threads import in_threads

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
        features, sets, rows = (
            np.cumsum([0] + [len(each) for each in column])
            for column in zip(*((part.hashes, part.shared, part.rows) for part in parts), strict=True)
        )
        made = cls(
            np.empty(features[-1], np.uint32), np.empty(features[-1], np.float32), np.empty((sets[-1], 2), np.int64),
            np.empty((rows[-1], 2), np.int64), np.zeros(sets[-1] + 1, np.int64),
        )  # fmt: skip

        def fill(number: int) -> None:
            part, first = parts[number], features[number]
            made.hashes[first : features[number + 1]] = part.hashes
            made.values[first : features[number + 1]] = part.values
            np.add(part.shared, first, out=made.shared[sets[number] : sets[number + 1]])
            np.add(part.rows, first, out=made.rows[rows[number] : rows[number + 1]])
            np.add(part.offsets[1:], rows[number], out=made.offsets[sets[number] + 1 : sets[number + 1] + 1])

        in_threads(fill, len(parts))
        return made

    def __len__(self) -> int:
        return len(self.shared)

    def __getitem__(self, sets: slice | Ints) -> HashedSets:
        own, offsets = context_entries_at(self.offsets, sets)
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
        out_offsets = _core.set_offsets(self.shared, rows, offsets)
        if not signed and self.values.flags.writeable and _core.follow_each_other(self.shared, rows, len(self.values)):
            indices = np.bitwise_and(self.hashes, np.uint32(mask)).view(np.int32)  # all features, in their order
            return ActionSets(SparseRows(indices, self.values, out_offsets, mask + 1), offsets)
        indices, out_values = np.empty(out_offsets[-1], np.int32), np.empty(out_offsets[-1], np.float32)

        def fill(part: int) -> None:
            own = part * _PART, min((part + 1) * _PART, len(self))
            _core.fill_sets(
                self.hashes, self.values, self.shared, rows, offsets, mask, signed, *own, out_offsets, indices,
                out_values,
            )  # fmt: skip

        if len(self) > _PART:
            in_threads(fill, -(-len(self) // _PART))
        elif len(self):
            fill(0)  # perhaps by one of several threads
        return ActionSets(SparseRows(indices, out_values, out_offsets, mask + 1), offsets)
