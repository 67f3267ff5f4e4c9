"""Contexts as rows: dense or sparse, of the context, or of each of its actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from o2pl import _core
from o2pl.errors import InvalidInput
from o2pl.protocols import Array, Floats, Ints
from o2pl.validation import check_column, check_contexts


@dataclass(frozen=True, eq=False)
class Contexts:
    """Contexts as rows: the one type of what is encoded. Whether `items` is None says which kind they are.

    A fixed number of actions: one row per context, `shared`. Otherwise `items` has one row per (context, action), one
    after the other, those of context s at `offsets[s]:offsets[s + 1]`, and `shared` what all actions of a context have
    in common, such as the user; sparse items include it.
    """

    shared: Any  # rows [n, d], or None
    items: Any = None  # rows [total, d], or None
    offsets: Any = None  # [n + 1], with items
    item_ids: Ints | None = None  # item codes, -1 for items without an id: [total]
    slots: Ints | None = None  # list slot of each context, from 0: [n]

    def __len__(self) -> int:
        return len(self.shared) if self.items is None else len(self.offsets) - 1

    def __getitem__(self, rows: slice | Ints) -> Contexts:
        return Contexts(self.shared[rows])

    @property
    def kind(self) -> str:
        """The kind of rows: "dense", "sparse", "sets" or "sparse sets"; "raw": not encoded yet."""
        if self.items is None:
            return (
                "sparse"
                if are_sparse_contexts(self.shared)
                else "dense"
                if isinstance(self.shared, np.ndarray)
                else "raw"
            )
        return "sparse sets" if are_sparse_contexts(self.items) else "sets"

    @property
    def own(self) -> Any:
        """The rows without what actions share: one per context, or one per action."""
        return self.shared if self.items is None else self.items

    @property
    def inputs(self) -> Any:
        """The inputs of the feature map, one row per context, or per action: own features, or (slot, shared, own)."""
        if self.items is None:
            return self.shared
        return self.items if self.shared is None else self._joined(self.items, self.owner)

    @property
    def n_inputs(self) -> int:
        """The number of inputs of a row."""
        own = self.own
        more = 0 if self.items is None or self.shared is None else 1 + self.shared.shape[1]  # as in `inputs`
        return int(own.width if are_sparse_contexts(own) else own.shape[1] + more)

    def with_features(self, rows: object) -> Any:
        """Return features made of `inputs`, as policies take them: `ActionSets`, or the bare rows."""
        return rows

    # -- tables of all actions: [n, K], flat [total] with items

    @property
    def sizes(self) -> Ints:
        """The number of items of each context, [n]."""
        sizes: Ints = np.diff(self.offsets)
        return sizes

    def counts(self, n_actions: int | None) -> Ints:
        """Return the number of actions of each context, [n]; n_actions: if it is fixed."""
        return np.full(len(self), int(n_actions or 1)) if self.items is None else self.sizes

    @property
    def owner(self) -> Ints:
        """Return the index of the context that each item belongs to."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def places(self, actions: Ints) -> Any:
        """Return where a table has these actions of each context."""
        return (np.arange(len(actions)), actions) if self.items is None else self.offsets[:-1] + actions

    def spread(self, column: Floats) -> Floats:
        """Return a column of one number per context in the shape of a table."""
        return column[:, None] if self.items is None else column[self.owner]

    def sums(self, table: Floats) -> Floats:
        """Return the sum over the actions of each context, [n]."""
        return np.asarray(table.sum(axis=1) if self.items is None else np.add.reduceat(table, self.offsets[:-1]))

    def part(self, table: Any, rows: slice | Ints) -> Any:
        """Return the part of a table for these contexts."""
        return table[rows] if self.items is None else table[context_entries_at(self.offsets, rows)[0]]

    def likeliest(self, table: Floats) -> Ints:
        """Return the action with the highest number of each context, [n]."""
        if self.items is None:
            return np.asarray(table.argmax(axis=1))
        return np.array([int(np.argmax(one)) for one in np.split(table, self.offsets[1:-1])], np.int64)

    def table(self, flat: Floats) -> Floats:
        """Return a flat table of all actions in its shape."""
        return flat.reshape(len(self), -1) if self.items is None else flat

    def ends(self, total: int) -> Ints:
        """Return where the actions of each context begin and end in a flat table of this size, [n + 1]."""
        return offsets_of_equal_contexts(len(self), total // max(len(self), 1)) if self.items is None else self.offsets

    # -- the played action

    def played(self, actions: Ints) -> Any:
        """Return the inputs of the played action of each context."""
        if self.items is None:
            return self.shared
        items = self.items[self.places(actions)]
        return items if self.shared is None else self._joined(items, slice(None))

    def alone(self, actions: Ints) -> Contexts:
        """Return contexts of the played action only; those of a fixed number of actions stay."""
        if self.items is None:
            return self
        return ActionSets(self.items[self.places(actions)], np.arange(len(self) + 1), self.shared, None, self.slots)

    def _joined(self, values: Floats, owner: Any) -> Floats:
        out = np.zeros((len(values), 1 + self.shared.shape[1] + values.shape[1]), np.float32)
        if self.slots is not None:
            out[:, 0] = self.slots[owner]
        out[:, 1 : 1 + self.shared.shape[1]] = self.shared[owner]
        out[:, 1 + self.shared.shape[1] :] = values
        return out


class ActionSets(Contexts):
    """Contexts with a varying number of actions: one feature row per (context, action), stored consecutively.

    Set s is `values[offsets[s]:offsets[s + 1]]`, one row per action. Sparse rows include the shared features.
    """

    def __init__(
        self,
        values: Any,  # [total, d], or SparseRows of length total
        offsets: Ints,  # [n + 1]
        shared: Floats | None = None,  # features shared by all actions of a set, such as the user's: [n, d_user]
        item_ids: Ints | None = None,  # item codes, -1 for items without an id: [total]
        slots: Ints | None = None,  # list slot of each set, from 0: [n]
    ) -> None:
        self.__dict__.update(shared=shared, items=values, offsets=offsets, item_ids=item_ids, slots=slots)

    @classmethod
    def of(cls, sets: Sequence[object]) -> ActionSets:
        """Build action sets from a sequence of [K_s, d] matrices."""
        matrices = [_context_matrix(row, one) for row, one in enumerate(sets)]
        if not matrices:
            raise InvalidInput("action sets: found none, expected at least one, to determine the number of features")
        for row, one in enumerate(matrices):
            if one.ndim != 2 or 0 in one.shape or one.shape[1] != matrices[0].shape[1]:
                raise InvalidInput(
                    f"action set {row}: found shape {one.shape}, expected (number of actions,"
                    f" {_context_width(matrices[0])})"
                )
        return cls(np.concatenate(matrices), np.cumsum([0] + [len(one) for one in matrices]))

    @classmethod
    def in_bytes(cls, content: bytes, n_actions: int, width: int) -> ActionSets:
        """Return a set of sparse rows from what the compiled core keeps of a decision: `Words` in native/python."""
        ends = np.frombuffer(content, np.int64, n_actions + 1)
        indices = np.frombuffer(content, np.int32, ends[-1], ends.nbytes)
        values = np.frombuffer(content, np.float32, ends[-1], ends.nbytes + indices.nbytes)
        return cls(check_sparse_rows(SparseRows(indices, values, ends, width)), np.array([0, n_actions]))

    @property
    def values(self) -> Any:
        """The feature rows of all actions."""
        return self.items

    def __getitem__(self, rows: slice | Ints) -> ActionSets:
        own, offsets = context_entries_at(self.offsets, rows)
        shared: Any = None if self.shared is None else self.shared[rows]
        slots: Any = None if self.slots is None else self.slots[rows]
        item_ids = None if self.item_ids is None else self.item_ids[own]
        return ActionSets(self.items[own], offsets, shared, item_ids, slots)

    def with_features(self, rows: object) -> ActionSets:
        return ActionSets(rows, self.offsets, None, self.item_ids, self.slots)

    def with_items(self, rows: object) -> ActionSets:
        """Return the same sets with other rows of the actions."""
        return ActionSets(rows, self.offsets, self.shared, self.item_ids, self.slots)


@dataclass(frozen=True)
class SparseRows:
    """Rows with few non-zero features. Values of an index that occurs twice in a row are added.

    Row s has `values[offsets[s]:offsets[s + 1]]` at the features `indices[offsets[s]:offsets[s + 1]]`.
    """

    indices: Ints  # int32, below `width`, [total]
    values: Floats  # float32, [total]
    offsets: Ints  # [n + 1]
    width: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice | Ints) -> SparseRows:
        known = self.indices.dtype == np.int32 and self.values.dtype == np.float32 and self.offsets.dtype == np.int64
        if not isinstance(rows, slice) and known:
            places = np.atleast_1d(np.arange(len(self))[rows])
            return SparseRows(*_core.rows_at(self.indices, self.values, self.offsets, places), self.width)
        own, offsets = context_entries_at(self.offsets, rows)
        return SparseRows(self.indices[own], self.values[own], offsets, self.width)

    def dense(self) -> Floats:
        """Return a dense matrix [n, width]; for few rows of small width."""
        out = np.zeros((len(self), self.width), np.float32)
        np.add.at(out, (np.repeat(np.arange(len(self)), np.diff(self.offsets)), self.indices), self.values)
        return out


def context_entries_at(offsets: Ints, rows: slice | Ints) -> tuple[slice | Ints, Ints]:
    """Return the positions of these rows' entries, and the rows' offsets among them. A slice copies no entries."""
    if isinstance(rows, slice) and rows.step in (None, 1):
        start, stop, _ = rows.indices(len(offsets) - 1)
        ends = offsets[start : max(start, stop) + 1]
        return slice(ends[0], ends[-1]), ends - ends[0]
    places = np.arange(len(offsets) - 1)[rows]
    sizes = np.diff(offsets)[places]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    return np.arange(ends[-1]) + np.repeat(offsets[places] - ends[:-1], sizes), ends


def offsets_of_equal_contexts(n: int, k: int) -> Ints:
    """Return the offsets of n sets of size k."""
    return np.arange(0, n * k + 1, k)


def own_context_offsets(offsets: Ints, rows: slice | Ints) -> Ints:
    """Return the offsets of the selected rows, starting at 0."""
    return context_entries_at(offsets, rows)[1]


def _context_width(matrix: Floats) -> Any:
    return matrix.shape[-1] if matrix.ndim == 2 else "features"


def _context_matrix(row: int, given: object) -> Floats:
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
Encoded = Floats | SparseRows | ActionSets  # as logs keep contexts: rows of a fixed number of actions are bare
_ENCODED = frozenset((ActionSets, SparseRows))


def is_encoded_context(context: object) -> bool:
    """Return whether a context is rows already: given so, or restored from a file."""
    return type(context) in _ENCODED


def context_alone(context: object) -> Any:
    """Return one context as a batch of one."""
    return context if is_encoded_context(context) else [context]


def as_contexts(encoded: object) -> Contexts:
    """Return rows of a fixed number of actions, or features of any kind, as `Contexts`."""
    if isinstance(encoded, Contexts):
        return encoded
    made = Contexts.__new__(Contexts)  # for every decision: the constructor would take half a microsecond
    made.__dict__["shared"] = encoded
    return made


def are_sparse_contexts(rows: object) -> bool:
    """Return whether rows are `SparseRows`, not a matrix."""
    return type(rows) is SparseRows


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
    if are_sparse_contexts(checked.values):
        _check_context_offsets("action sets", checked.offsets, len(checked.values), least=1)
        return checked.with_items(check_sparse_rows(checked.values, width))
    if width is not None and checked.values.shape[1] != width:
        raise InvalidInput(f"action sets: found {checked.values.shape[1]} features, expected {width}")
    _check_context_offsets("action sets", checked.offsets, len(checked.values), least=1)
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
    _check_context_offsets("sparse rows", rows.offsets, len(rows.values), least=0)
    fine = np.isfinite(rows.values) & (rows.indices >= 0) & (rows.indices < rows.width)
    if not fine.all():
        at = int(np.argmin(fine))
        row = int(np.searchsorted(rows.offsets, at, "right")) - 1
        raise InvalidInput(
            f"context, row {row}: found the value {rows.values[at]} at feature {rows.indices[at]}, expected finite"
            f" values at features from 0 to {rows.width - 1}"
        )
    return rows


def _check_context_offsets(name: str, offsets: object, total: int, least: int) -> None:
    """Check offsets of rows with at least `least` entries each and `total` entries in all."""
    ends = check_column(f"offsets of {name}", offsets)
    if len(ends) == 0 or ends[0] != 0 or ends[-1] != total:
        found = f"{ends[0]} to {ends[-1]}" if len(ends) else "none"
        raise InvalidInput(f"offsets of {name}: found {found}, expected 0 to {total}")
    sizes = np.diff(ends)
    if (sizes < least).any():
        row = int(np.argmax(sizes < least))
        raise InvalidInput(f"offsets of {name}, row {row}: found {sizes[row]} entries, expected at least {least}")
