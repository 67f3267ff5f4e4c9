"""The append-only log: columns in growing buffers, in memory or in memory-mapped files."""

from __future__ import annotations

import math
import os
from copy import copy
from operator import is_not
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from o2pl import _core
from o2pl._core import next_number
from o2pl.data.action_names import Names
from o2pl.data.contexts import ActionSets, Row, SparseRows
from o2pl.data.decisions import decision_numbers_for
from o2pl.data.interactions import Interactions, losses_of, total_loss_of_interactions
from o2pl.protocols import Array, Floats, Ints
from o2pl.validation import RewardRange

_FIRST = 16  # initial capacity of a buffer, in rows


class Buffers:
    """Growable arrays: in memory or, with a folder, as memory-mapped files, one per name.

    `rows`: number of existing rows in the folder; they are opened read-only.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, rows: int | None = None) -> None:
        self.folder, self.rows = None if folder is None else Path(folder), rows
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    def make(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        if self.folder is None:
            return np.empty(shape, dtype)
        path = self.folder / f"{name}.bin"
        if self.rows is not None:
            return np.memmap(path, dtype, "r", shape=(self.rows, *shape[1:]))
        return self._mapped(path, shape, dtype, "w+")

    def grown(self, name: str, array: Array, size: int) -> Array:
        """Return the array with room for `size` rows. Capacity at least doubles, so n appends cost O(n)."""
        if size <= len(array):
            return array
        shape = (max(size, 2 * len(array)), *array.shape[1:])
        if self.folder is not None:
            return self._mapped(self.folder / f"{name}.bin", shape, array.dtype, "r+")  # extends the file
        wider = np.empty(shape, array.dtype)
        wider[: len(array)] = array
        return wider

    @staticmethod
    def _mapped(path: Path, shape: tuple[int, ...], dtype: Any, mode: Any) -> Array:
        """Reserve the disk space, so that a full disk is an error now and not a crash when rows are written."""
        if hasattr(os, "posix_fallocate"):
            with path.open("wb" if mode == "w+" else "r+b") as file:
                os.posix_fallocate(file.fileno(), 0, max(1, math.prod(shape) * np.dtype(dtype).itemsize))
        return np.memmap(path, dtype, "r+" if hasattr(os, "posix_fallocate") else mode, shape=shape)


class DenseColumn:
    """Numeric rows of `width` columns."""

    def __init__(self, width: int, buffers: Buffers, name: str = "values") -> None:
        self._buffers, self._name = buffers, name
        self.values: Floats = buffers.make(name, (_FIRST, width), np.float32)

    def extend(self, n: int, rows: Floats, copy: bool = True) -> None:
        self.values = self._buffers.grown(self._name, self.values, n + len(rows))
        self.values[n : n + len(rows)] = rows

    def reserve(self, rows: int) -> None:
        self.values = self._buffers.grown(self._name, self.values, rows)

    @property
    def buffers(self) -> tuple[Array, ...]:
        return (self.values,)

    def append(self, n: int, entry: Floats) -> None:
        if n == len(self.values):
            self.values = self._buffers.grown(self._name, self.values, n + 1)
        self.values[n] = entry

    def view(self, n: int) -> Floats:
        return self.values[:n]

    def arrays(self, n: int) -> dict[str, Array]:
        return {"values": self.view(n)}

    def rows_of(self, arrays: dict[str, Array]) -> Floats:
        return arrays["values"]


class SparseColumn:
    """Growable `SparseRows`."""

    def __init__(self, width: int, buffers: Buffers) -> None:
        self.width, self._buffers = width, buffers
        self.indices: Array = buffers.make("indices", (_FIRST * _FIRST,), np.int32)
        self.values: Floats = buffers.make("values", (_FIRST * _FIRST,), np.float32)
        self.offsets: Ints = np.zeros(_FIRST + 1, np.int64)

    def append(self, n: int, entry: Row) -> None:
        """Append row n, from `DictionaryReader.entry`."""
        while not _core.write_row(*entry, n, self.offsets, self.indices, self.values):
            self.make_room(n + 1, len(self.values) + 1)  # which doubles them

    def extend(self, n: int, rows: SparseRows, copy: bool = True) -> None:
        if not copy and n == 0 and self._buffers.folder is None:  # full: the next row moves them to larger buffers
            self.indices, self.values, self.offsets = rows.indices, rows.values, rows.offsets
            return
        end = n + len(rows)
        first, last = int(self.offsets[n]), int(self.offsets[n]) + len(rows.indices)
        self.make_room(end, last)
        self.offsets[n + 1 : end + 1] = first + rows.offsets[1:]
        self.indices[first:last], self.values[first:last] = rows.indices, rows.values

    def reserve(self, rows: int) -> None:
        self.make_room(rows, 0)

    @property
    def buffers(self) -> tuple[Array, ...]:
        return self.indices, self.values, self.offsets

    def make_room(self, rows: int, entries: int) -> None:
        """Make room for this total number of rows and entries."""
        if rows >= len(self.offsets):
            self.offsets = Buffers().grown("", self.offsets, rows + 1)
        self.indices = self._buffers.grown("indices", self.indices, entries)
        self.values = self._buffers.grown("values", self.values, entries)

    def view(self, n: int) -> SparseRows:
        filled = self.offsets[n]
        return SparseRows(self.indices[:filled], self.values[:filled], self.offsets[: n + 1], self.width)

    def arrays(self, n: int) -> dict[str, Array]:
        rows = self.view(n)
        return {"indices": rows.indices, "values": rows.values, "offsets": rows.offsets}

    def rows_of(self, arrays: dict[str, Array]) -> SparseRows:
        return SparseRows(arrays["indices"], arrays["values"], arrays["offsets"], self.width)


class SetsColumn:
    """Growable `ActionSets`. Item ids and list slots are stored from their first occurrence on."""

    def __init__(self, inner: DenseColumn | SparseColumn, shared: DenseColumn | None = None) -> None:
        self.inner, self.shared, self.sets = inner, shared, np.zeros(_FIRST + 1, np.int64)
        self.item_ids: Ints | None = None
        self.slots: Ints | None = None

    def append(self, n: int, entry: ActionSets) -> None:
        self.extend(n, entry)

    def reserve(self, rows: int) -> None:
        """Make room for this number of sets; how many actions they have is not known."""
        self.sets = Buffers().grown("", self.sets, rows + 1)

    @property
    def buffers(self) -> tuple[Array, ...]:
        return *self.inner.buffers, self.sets

    @property
    def of_rows_only(self) -> bool:
        """Whether sets have nothing but the rows of their actions."""
        return self.shared is None and self.item_ids is None and self.slots is None

    def extend(self, n: int, rows: ActionSets, copy: bool = True) -> None:
        total = int(self.sets[n])
        self.sets = Buffers().grown("", self.sets, n + len(rows) + 1)
        self.inner.extend(total, rows.values, copy)
        if self.shared is not None and rows.shared is not None:
            self.shared.extend(n, rows.shared)
        if self.item_ids is not None or rows.item_ids is not None:
            self.item_ids = _extended_log_column(self.item_ids, total, rows.item_ids, len(rows.values), _NO_ID)
        if self.slots is not None or rows.slots is not None:
            self.slots = _extended_log_column(self.slots, n, rows.slots, len(rows), 0)
        self.sets[n + 1 : n + len(rows) + 1] = total + rows.offsets[1:]

    def view(self, n: int) -> ActionSets:
        total = int(self.sets[n])
        return ActionSets(
            self.inner.view(total),
            self.sets[: n + 1],
            None if self.shared is None else self.shared.view(n),
            None if self.item_ids is None else self.item_ids[:total],
            None if self.slots is None else self.slots[:n],
        )

    def arrays(self, n: int) -> dict[str, Array]:
        sets = self.view(n)
        more = {name: getattr(sets, name) for name in _OF_SETS if getattr(sets, name) is not None}
        return {"sets": sets.offsets, **more, **self.inner.arrays(int(self.sets[n]))}

    def rows_of(self, arrays: dict[str, Array]) -> ActionSets:
        return ActionSets(self.inner.rows_of(arrays), arrays["sets"], *(arrays.get(name) for name in _OF_SETS))


_OF_SETS = ("shared", "item_ids", "slots")
_NO_ID = -1


def _extended_log_column(column: Any, n: int, more: Array | None, size: int, fill: int) -> Array:
    """Return the column with `size` more values from index n on; `fill` where values are missing."""
    grown = np.full(max(n + size, _FIRST), fill) if column is None else Buffers().grown("", column, n + size)
    grown[n : n + size] = fill if more is None else more
    return grown


class Tally(NamedTuple):
    """Plays of each action, and the sum of their rewards as fractions of the reward range."""

    plays: Ints  # [K]
    rewards: Floats  # [K]

    @classmethod
    def nothing(cls, n_actions: int) -> Tally:
        return cls(np.zeros(n_actions, np.int64), np.zeros(n_actions))

    def with_rows(self, actions: Ints, losses: Floats) -> Tally:
        """Return the tally including these rows. Sums are the same to the last bit however rows are divided."""
        rewards = self.rewards.copy()
        np.subtract.at(rewards, actions, losses)
        return Tally(self.plays + np.bincount(actions, minlength=len(self.plays)), rewards)

    def since(self, before: Tally | None) -> Tally:
        """Return the tally without an earlier one of the same log."""
        return self if before is None else Tally(self.plays - before.plays, self.rewards - before.rewards)


class Log:
    """The interactions so far. Rows are appended and never changed; views of the columns copy nothing.

    `shared`: for action sets, the number of context features shared by all actions; None: none. `folder`: folder of the
    memory-mapped buffers, for logs larger than memory; None: in memory. `rows`: number of existing numeric rows in the
    folder.
    """

    def __init__(
        self,
        width: int,
        *,
        action_sets: bool = False,
        sparse: bool = False,
        continuous: bool = False,
        n_actions: int | None = None,
        reward_range: RewardRange | None = (0.0, 1.0),
        action_names: Names = (),
        shared: int | None = None,
        folder: str | os.PathLike[str] | None = None,
        rows: int | None = None,
    ) -> None:
        self.action_names = action_names
        self.width, self.continuous, self.n_actions, self.reward_range = width, continuous, n_actions, reward_range
        self.action_sets, self.sparse, self.shared = action_sets, sparse, shared
        self._buffers = Buffers(folder, rows)
        own = width if shared is None else width - 1 - shared  # see `ActionSets.inputs`
        of_rows = (SparseColumn if sparse else DenseColumn)(own, self._buffers)
        of_user = None if shared is None else DenseColumn(shared, self._buffers, "shared")
        self.contexts: Any = SetsColumn(of_rows, of_user) if action_sets else of_rows
        self._actions = self._buffers.make("actions", (_FIRST,), np.float64 if continuous else np.int64)
        self._rewards = self._buffers.make("rewards", (_FIRST,), np.float64)
        self._propensities = self._buffers.make("propensities", (_FIRST,), np.float64)
        self._ids = self._buffers.make("ids", (_FIRST,), np.int64)
        self._row_weights: Floats | None = None  # from the first rows that have them; None: one each
        self._columns = _core.LogColumns()
        self.n = rows or 0
        self._opened = rows is not None
        self._attach()
        self._tally = Tally.nothing(n_actions or 0)
        self._counted = 0  # rows counted in `_tally`

    def __len__(self) -> int:
        return self.n

    @property
    def n(self) -> int:
        """The number of rows."""
        return self._columns.n

    @n.setter
    def n(self, rows: int) -> None:
        self._columns.n = rows

    @property
    def columns_in_place(self) -> _core.LogColumns | None:
        """What appends rows in one call; None: rows are of another kind."""
        return self._columns if self._plain else None

    @property
    def _plain(self) -> bool:
        """Whether `LogColumns` can append to the contexts."""
        return not isinstance(self.contexts, SetsColumn) or self.contexts.of_rows_only

    def _attach(self) -> None:
        """Let rows be appended in one call, to the current buffers."""
        if self._plain and self._row_weights is None and not self._opened:
            contexts, columns = self.contexts.buffers, (self._actions, self._rewards, self._propensities, self._ids)
            if all(each.flags.writeable for each in (*contexts, *columns)):  # columns of another process are read-only
                of_rows, sets = (contexts[:-1], contexts[-1]) if self.action_sets else (contexts, None)
                self._columns.attach(of_rows, sets, *columns)
                return
        self._columns.detach()

    def __getstate__(self) -> dict[str, Any]:
        return {**{name: value for name, value in self.__dict__.items() if name != "_columns"}, "n": self.n}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._columns = _core.LogColumns()
        for name, value in state.items():
            setattr(self, name, value)
        self._attach()

    def empty(self, folder: str | os.PathLike[str] | None = None, rows: int | None = None) -> Log:
        """Return an empty log of the same kind, in memory or in a folder; or the folder's first `rows` rows."""
        return Log(
            self.width, action_sets=self.action_sets, sparse=self.sparse, continuous=self.continuous,
            n_actions=self.n_actions, reward_range=self.reward_range, action_names=self.action_names,
            shared=self.shared, folder=folder, rows=rows,
        )  # fmt: skip

    def reserve(self, more: int) -> None:
        """Reserve room for `more` rows: growing step by step may leave buffers half empty."""
        need = self.n + more
        self.contexts.reserve(need)
        if need > len(self._actions):
            self._actions = self._buffers.grown("actions", self._actions, need)
            self._rewards = self._buffers.grown("rewards", self._rewards, need)
            self._propensities = self._buffers.grown("propensities", self._propensities, need)
            self._ids = self._buffers.grown("ids", self._ids, need)
        self._attach()

    @property
    def folder(self) -> Path | None:
        """The folder of the columns; None: in memory."""
        return self._buffers.folder

    def shortened(self, rows: int) -> Log:
        """Return a log of the first `rows` rows that shares the columns."""
        made = copy(self)
        made._columns.detach()
        made.n = rows
        return made

    def append(self, entry: Any, action: Any, reward: float, propensity: float, number: int | None = None) -> None:
        """Append one checked row; its context comes from the reader's `entry`. number: the decision's number."""
        n = self.n
        if n == len(self._actions):
            self.reserve(1)
        before = self.contexts.buffers
        self.contexts.append(n, entry)
        if any(map(is_not, before, self.contexts.buffers)):  # they have moved to larger buffers
            self._attach()
        self._actions[n], self._rewards[n], self._propensities[n] = action, reward, propensity
        self._ids[n] = next_number() if number is None else number
        if self._row_weights is not None:
            self._row_weights = _extended_log_column(self._row_weights, n, None, 1, 1)
        self.n = n + 1  # last, so that readers in other threads see complete rows only

    def extend(self, rows: Interactions, copy: bool = True) -> None:
        """Append checked rows. copy: False if nobody else changes them; a log in memory may keep the first ones."""
        columns = (rows.contexts, rows.actions, rows.rewards, rows.propensities)
        self.extend_columns(*columns, rows.ids, rows.row_weights, copy)

    def extend_columns(
        self, contexts: object, actions: Array, rewards: Floats, propensities: Floats, ids: Ints | None = None,
        row_weights: Floats | None = None, copy: bool = True,
    ) -> None:  # fmt: skip
        """Append checked columns. ids: None draws new ones. copy: see `extend`."""
        n, end = self.n, self.n + len(actions)
        self.reserve(len(actions))
        self.contexts.extend(n, contexts, copy)
        self._attach()  # entries of sparse rows may have moved
        self._actions[n:end], self._rewards[n:end], self._propensities[n:end] = actions, rewards, propensities
        self._ids[n:end] = decision_numbers_for(len(actions)) if ids is None else ids
        if self._row_weights is not None or row_weights is not None:
            known = np.ones(n) if self._row_weights is None else self._row_weights
            self._row_weights = _extended_log_column(known, n, row_weights, len(actions), 1)
            self._attach()
        self.n = end

    def count_in(self, reward_range: RewardRange) -> None:
        """Count rewards as fractions of another range; what is beyond it counts as its ends."""
        self.reward_range = reward_range
        self._tally, self._counted = Tally.nothing(self.n_actions or 0), 0

    def tally(self, rows: int) -> Tally:
        """Return plays and rewards of each action in the first `rows` rows; empty without a fixed K."""
        if self.n_actions is None:
            return self._tally
        if rows < self._counted:
            self._tally, self._counted = Tally.nothing(self.n_actions), 0
        if rows > self._counted:
            new = slice(self._counted, rows)
            self._tally = self._tally.with_rows(self._actions[new], losses_of(self._rewards[new], self.reward_range))
            self._counted = rows
        return self._tally

    @property
    def rewards(self) -> Floats:
        """The rewards, as they came. [n]"""
        return self._rewards[: self.n]

    @property
    def columns(self) -> Interactions:
        return self[: self.n]

    def __getitem__(self, rows: slice) -> Interactions:
        first, last, step = rows.indices(self.n)
        if step != 1 or last < first:
            return self.columns[rows]
        contexts = self.contexts.view(last)
        return Interactions.trusted(
            contexts[first:] if first else contexts, self._actions[first:last], self._rewards[first:last],
            self._propensities[first:last], self.reward_range, self.n_actions, self.continuous, self._ids[first:last],
            self.action_names, None if self._row_weights is None else self._row_weights[first:last],
        )  # fmt: skip

    def total_loss(self, first: int, last: int) -> float:
        """Return the sum of the losses of these rows."""
        return total_loss_of_interactions(self._rewards[first:last], self.reward_range)

    def state(self) -> dict[str, Array]:
        """Return the arrays from which `restore` rebuilds the log."""
        rows = self.columns
        arrays = {"actions": rows.actions, "rewards": rows.rewards, "propensities": rows.propensities, "ids": rows.ids}
        arrays |= {} if rows.row_weights is None else {"row_weights": rows.row_weights}
        return {f"log.{name}": array for name, array in (arrays | self.contexts.arrays(self.n)).items()}

    def restore(self, state: dict[str, Array]) -> None:
        """Fill an empty log from saved arrays. Older files have no ids: they are derived from the columns."""
        arrays = {name.removeprefix("log."): array for name, array in state.items() if name.startswith("log.")}
        rows = arrays["actions"], arrays["rewards"], arrays["propensities"]
        ids = arrays.get("ids")
        if ids is None:
            ids = decision_numbers_for(
                len(rows[0]), b"".join(np.ascontiguousarray(column).tobytes() for column in rows)
            )
        self.extend_columns(self.contexts.rows_of(arrays), *rows, ids, arrays.get("row_weights"))
