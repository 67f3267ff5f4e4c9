"""Contexts as rows: dense matrices, sparse rows, and sets of rows, one row per action."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.protocols import Floats, Ints


@dataclass(frozen=True)
class ActionSets:
    """Contexts whose number of actions varies: one feature row per (context, action), set after set.

    Set s is `values[offsets[s]:offsets[s + 1]]`, one row per action.
    """

    values: Any  # [total, d], or SparseRows of length total
    offsets: Ints  # [n + 1]

    @classmethod
    def of(cls, sets: Sequence[Any]) -> ActionSets:
        """From a sequence of [K_s, d] matrices."""
        matrices = [np.asarray(one, dtype=np.float32) for one in sets]
        if not matrices:
            raise InvalidInput("action sets: found none, expected at least one, to see how many features there are")
        for row, one in enumerate(matrices):
            if one.ndim != 2 or 0 in one.shape or one.shape[1] != matrices[0].shape[1]:
                raise InvalidInput(
                    f"action set {row}: found shape {one.shape}, expected (number of actions, {matrices[0].shape[-1]})"
                )
        return cls(np.concatenate(matrices), np.cumsum([0] + [len(one) for one in matrices]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice | Ints) -> ActionSets:
        own, offsets = _entries(self.offsets, rows)
        return ActionSets(self.values[own], offsets)

    @property
    def sizes(self) -> Ints:
        return np.diff(self.offsets)

    @property
    def owner(self) -> Ints:
        """Of each value row, the set it belongs to."""
        return np.repeat(np.arange(len(self)), self.sizes)


@dataclass(frozen=True)
class SparseRows:
    """Contexts of which few features are not zero. What stands twice in a row counts twice.

    Row s has `values[offsets[s]:offsets[s + 1]]` at the features `indices[offsets[s]:offsets[s + 1]]`.
    """

    indices: Ints  # int32, below `width`, [total]
    values: Floats  # float32, [total]
    offsets: Ints  # [n + 1]
    width: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice | Ints) -> SparseRows:
        own, offsets = _entries(self.offsets, rows)
        return SparseRows(self.indices[own], self.values[own], offsets, self.width)

    def dense(self) -> Floats:
        """[n, width], for few rows of small width."""
        out = np.zeros((len(self), self.width), np.float32)
        np.add.at(out, (np.repeat(np.arange(len(self)), np.diff(self.offsets)), self.indices), self.values)
        return out


def _entries(offsets: Ints, rows: slice | Ints) -> tuple[slice | Ints, Ints]:
    """Where the entries of these rows are, and the offsets of the rows among them; a plain slice copies no entries."""
    if isinstance(rows, slice) and rows.step in (None, 1):
        start, stop, _ = rows.indices(len(offsets) - 1)
        ends = offsets[start : max(start, stop) + 1]
        return slice(ends[0], ends[-1]), ends - ends[0]
    places = np.arange(len(offsets) - 1)[rows]
    sizes = np.diff(offsets)[places]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    return np.arange(ends[-1]) + np.repeat(offsets[places] - ends[:-1], sizes), ends


Contexts = Floats | ActionSets | SparseRows
