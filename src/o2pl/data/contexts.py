"""Contexts as rows: dense matrices, sparse rows, and action sets with one row per action."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from o2pl import _core
from o2pl.errors import InvalidInput
from o2pl.protocols import Array, Floats, Ints
from o2pl.validation import check_column, check_contexts


@dataclass(frozen=True)
class ActionSets:
    """Contexts with a varying number of actions: one feature row per (context, action), stored consecutively.

    Set s is `values[offsets[s]:offsets[s + 1]]`, one row per action. Sparse rows include the shared features.
    """

    values: Any  # [total, d], or SparseRows of length total
    offsets: Ints  # [n + 1]
    shared: Floats | None = None  # features shared by all actions of a set, such as the user's: [n, d_user]
    item_ids: Ints | None = None  # item codes, -1 for items without an id: [total]
    slots: Ints | None = None  # list slot of each set, from 0: [n]

    @classmethod
    def of(cls, sets: Sequence[Any]) -> ActionSets:
        """Build action sets from a sequence of [K_s, d] matrices."""
        matrices = [_matrix(row, one) for row, one in enumerate(sets)]
        if not matrices:
            raise InvalidInput("action sets: found none, expected at least one, to determine the number of features")
        for row, one in enumerate(matrices):
            if one.ndim != 2 or 0 in one.shape or one.shape[1] != matrices[0].shape[1]:
                raise InvalidInput(
                    f"action set {row}: found shape {one.shape}, expected (number of actions, {_width(matrices[0])})"
                )
        return cls(np.concatenate(matrices), np.cumsum([0] + [len(one) for one in matrices]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice | Ints) -> ActionSets:
        own, offsets = entries_at(self.offsets, rows)
        shared: Any = None if self.shared is None else self.shared[rows]
        slots: Any = None if self.slots is None else self.slots[rows]
        item_ids = None if self.item_ids is None else self.item_ids[own]
        return ActionSets(self.values[own], offsets, shared, item_ids, slots)

    def with_values(self, values: Any) -> ActionSets:
        """Return the same sets with other feature rows, which replace own and shared features."""
        return replace(self, values=values, shared=None)

    @property
    def inputs(self) -> Any:
        """The inputs of the feature map, one row per action: own features, or (slot, shared, own)."""
        return self.values if self.shared is None else self._joined(self.values, self.owner)

    def played(self, actions: Ints) -> Any:
        """Return the inputs of the played action of each set."""
        values = self.values[self.offsets[:-1] + actions]
        return values if self.shared is None else self._joined(values, slice(None))

    def alone(self, actions: Ints) -> ActionSets:
        """Return sets of the played action only."""
        values = self.values[self.offsets[:-1] + actions]
        return ActionSets(values, np.arange(len(self) + 1), self.shared, None, self.slots)

    def _joined(self, values: Floats, owner: Any) -> Floats:
        assert self.shared is not None
        out = np.zeros((len(values), 1 + self.shared.shape[1] + values.shape[1]), np.float32)
        if self.slots is not None:
            out[:, 0] = self.slots[owner]
        out[:, 1 : 1 + self.shared.shape[1]] = self.shared[owner]
        out[:, 1 + self.shared.shape[1] :] = values
        return out

    @property
    def sizes(self) -> Ints:
        return np.diff(self.offsets)

    @property
    def owner(self) -> Ints:
        """Return the index of the set that each value row belongs to."""
        return np.repeat(np.arange(len(self)), self.sizes)


@dataclass(frozen=True)
class SparseRows:
    """Contexts with few non-zero features. Values of an index that occurs twice in a row are added.

    Row s has `values[offsets[s]:offsets[s + 1]]` at the features `indices[offsets[s]:offsets[s + 1]]`.
    """

    indices: Ints  # int32, below `width`, [total]
    values: Floats  # float32, [total]
    offsets: Ints  # [n + 1]
    width: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice | Ints) -> SparseRows:
        own, offsets = entries_at(self.offsets, rows)
        return SparseRows(self.indices[own], self.values[own], offsets, self.width)

    def dense(self) -> Floats:
        """Return a dense matrix [n, width]; for few rows of small width."""
        out = np.zeros((len(self), self.width), np.float32)
        np.add.at(out, (np.repeat(np.arange(len(self)), np.diff(self.offsets)), self.indices), self.values)
        return out


def entries_at(offsets: Ints, rows: slice | Ints) -> tuple[slice | Ints, Ints]:
    """Return the positions of these rows' entries, and the rows' offsets among them. A slice copies no entries."""
    if isinstance(rows, slice) and rows.step in (None, 1):
        start, stop, _ = rows.indices(len(offsets) - 1)
        ends = offsets[start : max(start, stop) + 1]
        return slice(ends[0], ends[-1]), ends - ends[0]
    places = np.arange(len(offsets) - 1)[rows]
    sizes = np.diff(offsets)[places]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    return np.arange(ends[-1]) + np.repeat(offsets[places] - ends[:-1], sizes), ends


def own_offsets(offsets: Ints, rows: slice | Ints) -> Ints:
    """Return the offsets of the selected rows, starting at 0."""
    return entries_at(offsets, rows)[1]


def _width(matrix: Floats) -> Any:
    return matrix.shape[-1] if matrix.ndim == 2 else "features"


def _matrix(row: int, given: Any) -> Floats:
    try:
        return np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError):
        kind = "a dictionary" if isinstance(given, dict) else f"a {type(given).__name__}"
        raise InvalidInput(
            f"action set {row}: found {kind}, expected a matrix, one numeric row per action; for strings:"
            ' policy="hashed actionwise" and a list of dictionaries, one per action'
        ) from None


# Features: hash and value [n, 2]; segments and pairs of namespaces, index mask, signed: see `write_row`.
Row = tuple[Array, Ints, Ints, int, bool]
Contexts = Floats | ActionSets | SparseRows
_ENCODED = frozenset((ActionSets, SparseRows))


def is_encoded(context: Any) -> bool:
    """Return whether a context is rows already: given so, or restored from a file."""
    return type(context) in _ENCODED


def alone(context: Any) -> Any:
    """Return one context as a batch of one."""
    return context if is_encoded(context) else [context]


def n_inputs(contexts: Any) -> int:
    """Return the number of inputs of a row."""
    rows = contexts.values if isinstance(contexts, ActionSets) else contexts
    if isinstance(contexts, ActionSets) and contexts.shared is not None:
        return int(1 + contexts.shared.shape[1] + rows.shape[1])  # as in `ActionSets.inputs`
    return int(rows.width if isinstance(rows, SparseRows) else rows.shape[1])


# -- checks


def check_action_sets(sets: Any, width: int | None = None) -> ActionSets:
    checked = sets if isinstance(sets, ActionSets) else ActionSets.of(sets)
    for name, column, size in (
        ("shared", checked.shared, len(checked)),
        ("slots", checked.slots, len(checked)),
        ("item_ids", checked.item_ids, len(checked.values)),
    ):
        if column is not None and len(column) != size:
            raise InvalidInput(f"{name} of action sets: found {len(column)} rows, expected {size}")
    if checked.shared is not None:
        check_contexts(checked.shared.reshape(len(checked), -1) if checked.shared.size else np.zeros((1, 1)))
    if isinstance(checked.values, SparseRows):
        _check_offsets("action sets", checked.offsets, len(checked.values), least=1)
        return replace(checked, values=check_sparse_rows(checked.values, width))
    if width is not None and checked.values.shape[1] != width:
        raise InvalidInput(f"action sets: found {checked.values.shape[1]} features, expected {width}")
    _check_offsets("action sets", checked.offsets, len(checked.values), least=1)
    bad = np.flatnonzero(~np.isfinite(checked.values).all(axis=1))
    if bad.size:
        row = int(checked.owner[bad[0]])
        action = int(bad[0] - checked.offsets[row])
        raise InvalidInput(
            f"action set {row}, action {action}: found {checked.values[bad[0]]}, expected finite numbers"
        )
    return checked


def check_sparse_rows(rows: SparseRows, width: int | None = None) -> SparseRows:
    if width is not None and rows.width != width:
        raise InvalidInput(f"contexts: found sparse rows of width {rows.width}, expected {width}")
    if _core.sparse_rows_fit(rows.indices, rows.values, rows.offsets, rows.width):
        return rows
    if len(rows.indices) != len(rows.values):
        raise InvalidInput(f"sparse rows: found {len(rows.indices)} indices and {len(rows.values)} values")
    _check_offsets("sparse rows", rows.offsets, len(rows.values), least=0)
    fine = np.isfinite(rows.values) & (rows.indices >= 0) & (rows.indices < rows.width)
    if not fine.all():
        at = int(np.argmin(fine))
        row = int(np.searchsorted(rows.offsets, at, "right")) - 1
        raise InvalidInput(
            f"context, row {row}: found the value {rows.values[at]} at feature {rows.indices[at]}, expected finite"
            f" values at features from 0 to {rows.width - 1}"
        )
    return rows


def _check_offsets(name: str, offsets: Any, total: int, least: int) -> None:
    """Check offsets of rows with at least `least` entries each and `total` entries in all."""
    ends = check_column(f"offsets of {name}", offsets)
    if len(ends) == 0 or ends[0] != 0 or ends[-1] != total:
        found = f"{ends[0]} to {ends[-1]}" if len(ends) else "none"
        raise InvalidInput(f"offsets of {name}: found {found}, expected 0 to {total}")
    sizes = np.diff(ends)
    if (sizes < least).any():
        row = int(np.argmax(sizes < least))
        raise InvalidInput(f"offsets of {name}, row {row}: found {sizes[row]} entries, expected at least {least}")
