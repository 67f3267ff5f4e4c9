"""Readers of rows of numbers and of action sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from o2pl.compiled import compiled_in_order
from o2pl.contexts.dictionaries import DictionaryReader
from o2pl.errors import InvalidInput
from o2pl.protocols import Floats
from o2pl.rows import ActionSets, Contexts, SparseRows
from o2pl.validation import check_action_sets, check_context, check_contexts


class ContextReader(Protocol):
    """Raw contexts to checked rows."""

    @property
    def width(self) -> int | None: ...  # numbers of a row; None: as many as the first has
    def rows(self, contexts: Any) -> Contexts: ...  # of many contexts
    def row(self, context: Any) -> Contexts: ...  # of one
    def entry(self, context: Any) -> Any: ...  # of one, in the form that the log's column takes


class DenseReader:
    """Rows of numbers. `numbered`: the first entry is the number of one of so many contexts, counted from 0."""

    def __init__(self, width: int | None = None, numbered: int | None = None) -> None:
        self.width, self.numbered = width, numbered

    def rows(self, contexts: Any) -> Floats:
        return self._known(check_contexts(contexts, self.width))

    def row(self, context: Any) -> Floats:
        return self._known(check_context(context, self.width)[None])

    def entry(self, context: Any) -> Floats:
        usable = self.numbered is None and plain(context, 1) and len(context) == self.width
        if usable and all_finite(context):
            row: Floats = context
            return row
        return np.asarray(self.row(context)[0])

    def _known(self, rows: Floats) -> Floats:
        if self.numbered is not None:
            bad = np.flatnonzero(~np.isin(rows[:, 0], np.arange(self.numbered)))
            if bad.size:
                raise InvalidInput(
                    f"context, row {bad[0]}: found {rows[bad[0], 0]:g},"
                    f" expected a whole number from 0 to {self.numbered - 1}, a context of the finite class"
                )
        return rows


class SetsReader:
    """Action sets: a matrix or a sequence of dictionaries for each context, one row per action."""

    def __init__(self, inner: DenseReader | DictionaryReader) -> None:
        self.inner = inner

    @property
    def width(self) -> int | None:
        return self.inner.width

    def rows(self, contexts: Any) -> ActionSets:
        if isinstance(self.inner, DenseReader):
            if self.width is not None and not len(contexts):
                return ActionSets(np.empty((0, self.width), np.float32), np.zeros(1, np.int64))
            return check_action_sets(contexts, self.width)
        if isinstance(contexts, ActionSets):
            if not isinstance(contexts.values, SparseRows):
                raise InvalidInput("action sets: found rows of numbers, expected dictionaries, one per action")
            return ActionSets(self.inner.rows(contexts.values), contexts.offsets)
        for row, one in enumerate(contexts):
            if not isinstance(one, Sequence) or isinstance(one, str) or not len(one):
                raise InvalidInput(
                    f"action set {row}: found {type(one).__name__}, expected a list of dictionaries, one per action"
                )
        flat = [action for one in contexts for action in one]
        return ActionSets(self.inner.rows(flat), np.cumsum([0] + [len(one) for one in contexts]))

    def row(self, context: Any) -> ActionSets:
        return self.rows([context])

    def entry(self, context: Any) -> ActionSets:
        usable = isinstance(self.inner, DenseReader) and plain(context, 2) and context.shape[1] == self.width
        if usable and len(context) and all_finite(context.reshape(-1)):
            return ActionSets(context, np.array([0, len(context)]))
        return self.row(context)


def make_reader(
    width: int | None,
    action_sets: bool = False,
    dictionaries: tuple[int, bool, Sequence[tuple[str, str]]] | None = None,
    numbered: int | None = None,
) -> ContextReader:
    """For rows of numbers or, with the settings of a `DictionaryReader`, for dictionaries; or for sets of them.

    numbered: the first number of a row is that of a context, of so many that are known.
    """
    rows = DenseReader(width, numbered) if dictionaries is None else DictionaryReader(*dictionaries)
    return SetsReader(rows) if action_sets else rows


def plain(context: Any, dimensions: int) -> bool:
    """Whether a context is an array that kernels take as it is: others would be compiled for."""
    usable = type(context) is np.ndarray and context.dtype.char in "fd" and context.ndim == dimensions
    return usable and context.flags.c_contiguous


@compiled_in_order
def all_finite(row: Floats) -> bool:
    total = np.float32(0)
    for i in range(len(row)):
        total += np.float32(row[i]) * np.float32(0)  # 0 unless an entry is NaN, infinite or too large for float32
    return total == 0  # type: ignore[no-any-return]  # numpy's bool here, a plain one when compiled
