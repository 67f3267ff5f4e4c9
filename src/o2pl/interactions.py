"""What was decided and what came of it: `Decision`, `Interactions` (columns) and the append-only `Log`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from o2pl.protocols import Array, Floats
from o2pl.rows import ActionSets, SparseRows


class Decision(NamedTuple):
    """An action and the probability (density, for continuous actions) with which it was drawn."""

    action: Any
    propensity: float


@dataclass(frozen=True)
class Interactions:
    """Columns of a bandit log. Losses lie in [-1, 0]: -1 is the best reward of the range, 0 the worst."""

    contexts: Any  # [n, d], or ActionSets or SparseRows of length n
    actions: Array  # [n]
    losses: Floats  # [n]
    propensities: Floats  # [n]

    def __len__(self) -> int:
        return len(self.actions)

    def __getitem__(self, rows: slice) -> Interactions:
        return Interactions(self.contexts[rows], self.actions[rows], self.losses[rows], self.propensities[rows])


class Log:
    """An append-only log of interactions in doubling buffers; a view of its columns copies nothing."""

    def __init__(
        self, width: int, action_dtype: Any = np.int64, action_sets: bool = False, sparse: bool = False
    ) -> None:
        self.width = width
        self.action_sets = action_sets
        self.sparse = sparse
        self.n = 0
        self._values: Array = np.empty((16, width), np.float32)  # contexts; of action sets, a row per action
        self._actions: Array = np.empty(16, action_dtype)
        self._losses: Array = np.empty(16)
        self._propensities: Array = np.empty(16)
        if sparse:
            self._values = np.empty(256, np.float32)
        self._indices: Array = np.empty(256 if sparse else 0, np.int32)
        self._offsets: Array = np.zeros(17, np.int64)  # used with action sets and sparse rows only
        self.capacity = 16

    def __len__(self) -> int:
        return self.n

    def buffers(self, more: int = 0) -> tuple[Array, Array, Array, Array]:
        """Contexts, actions, losses, propensities with room for `more` rows after the first n.

        A kernel may write rows by itself; raising `n` then makes them part of the log. Not with action sets.
        """
        need = self.n + more
        if need > self.capacity:
            self.capacity = max(2 * self.capacity, need)  # doubling: n appends cost O(n)
            self._actions = _grown(self._actions, self.capacity)
            self._losses = _grown(self._losses, self.capacity)
            self._propensities = _grown(self._propensities, self.capacity)
            if self.action_sets or self.sparse:
                self._offsets = _grown(self._offsets, self.capacity + 1)
            else:
                self._values = _grown(self._values, self.capacity)
        return self._values, self._actions, self._losses, self._propensities

    def sparse_buffers(self, more: int = 0, entries: int = 0) -> tuple[Array, Array, Array, Array, Array, Array]:
        """Indices, values, offsets, actions, losses, propensities; with room for `entries` more entries in all."""
        self.buffers(more)
        need = int(self._offsets[self.n]) + entries
        if need > len(self._values):
            size = max(2 * len(self._values), need)
            self._values, self._indices = _grown(self._values, size), _grown(self._indices, size)
        return self._indices, self._values, self._offsets, self._actions, self._losses, self._propensities

    def extend(self, rows: Interactions) -> None:
        """Rows that have been checked."""
        n, end = self.n, self.n + len(rows)
        self.buffers(len(rows))
        if self.action_sets:
            total = self._offsets[n]
            self._offsets[n + 1 : end + 1] = total + rows.contexts.offsets[1:]
            if self._offsets[end] > len(self._values):
                self._values = _grown(self._values, max(2 * len(self._values), int(self._offsets[end])))
            self._values[total : self._offsets[end]] = rows.contexts.values
        elif self.sparse:
            self.sparse_buffers(0, len(rows.contexts.values))
            total = self._offsets[n]
            self._offsets[n + 1 : end + 1] = total + rows.contexts.offsets[1:]
            self._indices[total : self._offsets[end]] = rows.contexts.indices
            self._values[total : self._offsets[end]] = rows.contexts.values
        else:
            self._values[n:end] = rows.contexts
        self._actions[n:end] = rows.actions
        self._losses[n:end] = rows.losses
        self._propensities[n:end] = rows.propensities
        self.n = end

    def append(self, values: Floats, action: Any, loss: float, propensity: float) -> None:
        """One row that has been checked; values: its context [d], or its action set [K, d]."""
        n = self.n
        if n == self.capacity:
            self.buffers(1)
        if self.action_sets:
            total = int(self._offsets[n])
            end = total + len(values)
            if end > len(self._values):
                self._values = _grown(self._values, max(2 * len(self._values), end))
            self._values[total:end] = values
            self._offsets[n + 1] = end
        else:
            self._values[n] = values
        self._actions[n], self._losses[n], self._propensities[n] = action, loss, propensity
        self.n = n + 1

    @property
    def columns(self) -> Interactions:
        n = self.n
        contexts: Any = self._values[:n]
        if self.action_sets:
            contexts = ActionSets(self._values[: self._offsets[n]], self._offsets[: n + 1])
        if self.sparse:
            filled = self._offsets[n]
            contexts = SparseRows(self._indices[:filled], self._values[:filled], self._offsets[: n + 1], self.width)
        return Interactions(contexts, self._actions[:n], self._losses[:n], self._propensities[:n])

    def __getitem__(self, rows: slice) -> Interactions:
        return self.columns[rows]

    def state(self) -> dict[str, Array]:
        """Arrays that `restore` makes the same log of."""
        rows = self.columns
        state = {"log.actions": rows.actions, "log.losses": rows.losses, "log.propensities": rows.propensities}
        if self.action_sets:
            return state | {"log.values": rows.contexts.values, "log.offsets": rows.contexts.offsets}
        if self.sparse:
            state |= {"log.indices": rows.contexts.indices, "log.offsets": rows.contexts.offsets}
            return state | {"log.values": rows.contexts.values}
        return state | {"log.values": rows.contexts}

    def restore(self, state: dict[str, Array]) -> None:
        """Into an empty log."""
        contexts: Any = state["log.values"]
        if self.action_sets:
            contexts = ActionSets(contexts, state["log.offsets"])
        if self.sparse:
            contexts = SparseRows(state["log.indices"], contexts, state["log.offsets"], self.width)
        self.extend(Interactions(contexts, state["log.actions"], state["log.losses"], state["log.propensities"]))


def _grown(column: Array, size: int) -> Array:
    grown = np.empty((size, *column.shape[1:]), column.dtype)
    grown[: len(column)] = column
    return grown
