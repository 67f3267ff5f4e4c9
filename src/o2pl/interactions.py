"""What was decided and what came of it: `Decision`, `Interactions` (columns) and the append-only `Log`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from o2pl.protocols import Array, Floats, Ints


class InvalidInput(ValueError):
    """Input that cannot be used; the message says where, what was found and what was expected."""


class Decision(NamedTuple):
    """An action and the probability (density, for continuous actions) with which it was drawn."""

    action: Any
    propensity: float


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


Contexts = Floats | ActionSets


@dataclass(frozen=True)
class Interactions:
    """Columns of a bandit log. Losses lie in [-1, 0]: -1 is the best reward of the range, 0 the worst."""

    contexts: Any  # [n, d], or ActionSets of length n
    actions: Array  # [n]
    losses: Floats  # [n]
    propensities: Floats  # [n]

    def __len__(self) -> int:
        return len(self.actions)

    def __getitem__(self, rows: slice) -> Interactions:
        return Interactions(self.contexts[rows], self.actions[rows], self.losses[rows], self.propensities[rows])


class _Column:
    """An array that grows at its end: appending n rows one by one costs O(n)."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.data: Array = np.empty((16, *shape), dtype)
        self.size = 0

    def reserve(self, more: int) -> Array:
        if self.size + more > len(self.data):
            grown = np.empty((max(2 * len(self.data), self.size + more), *self.data.shape[1:]), self.data.dtype)
            grown[: self.size] = self.data[: self.size]
            self.data = grown
        return self.data

    def extend(self, values: Array) -> None:
        self.reserve(len(values))[self.size : self.size + len(values)] = values
        self.size += len(values)

    @property
    def view(self) -> Array:
        return self.data[: self.size]


class Log:
    """An append-only log of interactions in doubling buffers; a view of its columns copies nothing."""

    def __init__(self, width: int, action_dtype: Any = np.int64, action_sets: bool = False) -> None:
        self.width = width
        self.action_sets = action_sets
        self._values = _Column((width,), np.float32)  # context rows; with action sets, one row per (context, action)
        self._actions = _Column((), action_dtype)
        self._losses = _Column((), np.float64)
        self._propensities = _Column((), np.float64)
        self._offsets = _Column((), np.int64)  # used with action sets only
        self._offsets.extend(np.zeros(1, np.int64))

    def __len__(self) -> int:
        return self._actions.size

    def extend(self, rows: Interactions) -> None:
        """Many interactions, already checked."""
        if self.action_sets:
            self._offsets.extend(self._values.size + rows.contexts.offsets[1:])
            self._values.extend(rows.contexts.values)
        else:
            self._values.extend(rows.contexts)
        self._actions.extend(rows.actions)
        self._losses.extend(rows.losses)
        self._propensities.extend(rows.propensities)

    def buffers(self, more: int) -> tuple[Array, Array, Array, Array]:
        """The buffers of a log without action sets, with room for `more` rows, for a kernel that appends by itself.

        `advance` then tells the log how many rows were written.
        """
        columns = (self._values, self._actions, self._losses, self._propensities)
        return columns[0].reserve(more), columns[1].reserve(more), columns[2].reserve(more), columns[3].reserve(more)

    def advance(self, rows: int) -> None:
        for column in (self._values, self._actions, self._losses, self._propensities):
            column.size += rows

    @property
    def columns(self) -> Interactions:
        values = self._values.view
        contexts = ActionSets(values, self._offsets.view) if self.action_sets else values
        return Interactions(contexts, self._actions.view, self._losses.view, self._propensities.view)

    def __getitem__(self, rows: slice) -> Interactions:
        return self.columns[rows]

    def state(self) -> dict[str, Array]:
        rows = self.columns
        state = {
            "log.values": self._values.view,
            "log.actions": rows.actions,
            "log.losses": rows.losses,
            "log.propensities": rows.propensities,
        }
        return state | ({"log.offsets": self._offsets.view} if self.action_sets else {})

    def restore(self, state: dict[str, Array]) -> None:
        """Into an empty log."""
        contexts: Any = state["log.values"]
        if self.action_sets:
            contexts = ActionSets(contexts, state["log.offsets"])
        self.extend(Interactions(contexts, state["log.actions"], state["log.losses"], state["log.propensities"]))
