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

    values: Floats  # [total, d]
    offsets: Ints  # [n + 1]

    @classmethod
    def of(cls, sets: Sequence[Any]) -> ActionSets:
        """From a sequence of [K_s, d] matrices."""
        matrices = [np.asarray(one, dtype=np.float32) for one in sets]
        for row, one in enumerate(matrices):
            if one.ndim != 2 or 0 in one.shape or one.shape[1] != matrices[0].shape[1]:
                raise InvalidInput(
                    f"action set {row}: found shape {one.shape}, expected (number of actions, {matrices[0].shape[-1]})"
                )
        return cls(np.concatenate(matrices), np.cumsum([0] + [len(one) for one in matrices]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice) -> ActionSets:
        start, stop, _ = rows.indices(len(self))
        offsets = self.offsets[start : max(start, stop) + 1]
        return ActionSets(self.values[offsets[0] : offsets[-1]], offsets - offsets[0])

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

    def __getitem__(self, rows: slice) -> SparseRows:
        start, stop, _ = rows.indices(len(self))
        offsets = self.offsets[start : max(start, stop) + 1]
        own = slice(offsets[0], offsets[-1])
        return SparseRows(self.indices[own], self.values[own], offsets - offsets[0], self.width)

    def dense(self) -> Floats:
        """[n, width], for few rows of small width."""
        out = np.zeros((len(self), self.width), np.float32)
        np.add.at(out, (np.repeat(np.arange(len(self)), np.diff(self.offsets)), self.indices), self.values)
        return out


Contexts = Floats | ActionSets | SparseRows
