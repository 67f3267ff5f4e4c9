"""Readers of rows of numbers and of named columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from o2pl.compiled import compiled_in_order
from o2pl.contexts.dictionaries import DictionaryReader
from o2pl.contexts.frames import as_frame, as_mapping, has_names, is_frame
from o2pl.contexts.records import Records
from o2pl.contexts.schema import Schema
from o2pl.contexts.sets import dictionary_sets
from o2pl.errors import InvalidInput
from o2pl.protocols import Floats
from o2pl.rows import ActionSets, Contexts
from o2pl.validation import check_action_sets, check_context, check_contexts


class ContextReader(Protocol):
    """Raw contexts to checked rows."""

    schema: Schema | None  # of the columns, where contexts have names

    @property
    def width(self) -> int | None: ...  # numbers of a row; None: as many as the first has
    def rows(self, contexts: Any) -> Contexts: ...  # of many contexts
    def row(self, context: Any) -> Contexts: ...  # of one
    def entry(self, context: Any) -> Any: ...  # of one, in the form that the log's column takes


class DenseReader:
    """Rows of numbers. `numbered`: the first entry is the number of one of so many contexts, counted from 0.

    Frames and dictionaries become rows of numbers by their schema, which the first batch gives.
    """

    schema: Schema | None = None

    def __init__(self, width: int | None = None, numbered: int | None = None) -> None:
        self.width, self.numbered = width, numbered

    def rows(self, contexts: Any) -> Floats:
        if has_names(contexts) or isinstance(contexts, Records):
            return self._known(self._named(contexts))
        return self._known(check_contexts(contexts, self.width))

    def row(self, context: Any) -> Floats:
        mapping = as_mapping(context)
        if mapping is not None:
            row = None if self.schema is None else self.schema.row(mapping)
            return self._known(self._named([mapping]) if row is None else row[None])
        return self._known(check_context(context, self.width)[None])

    def entry(self, context: Any) -> Floats:
        usable = self.numbered is None and plain(context, 1) and len(context) == self.width
        if usable and all_finite(context):
            row: Floats = context
            return row
        return np.asarray(self.row(context)[0])

    def _named(self, contexts: Any) -> Floats:
        """Of a frame, or of rows with names: by the schema, which the first of them gives."""
        frame = as_frame(contexts)
        if self.schema is None and self.width is not None:  # it began with rows without names
            numbers = frame.numbers()
            if numbers is None or numbers.shape[1] != self.width:
                raise InvalidInput(
                    f"contexts: found {frame!r}, expected rows of {self.width} numbers, with which this learner began"
                )
            return check_contexts(numbers, self.width)
        if self.schema is None:
            self.schema = Schema.learn(frame)
        return self.schema.numbers(frame, rows=not is_frame(contexts))

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
    """Action sets: a matrix for each context, a frame, or a list of dictionaries, one row per action.

    Sets of dictionaries may have shared features: see `contexts.sets`.
    """

    def __init__(self, inner: DenseReader | DictionaryReader) -> None:
        self.inner = inner

    @property
    def width(self) -> int | None:
        return self.inner.width

    @property
    def schema(self) -> Schema | None:
        return self.inner.schema

    @schema.setter
    def schema(self, schema: Schema | None) -> None:
        self.inner.schema = schema

    def rows(self, contexts: Any) -> ActionSets:
        if isinstance(self.inner, DictionaryReader):
            return dictionary_sets(self.inner, contexts)
        if self.width is not None and not len(contexts):
            return ActionSets(np.empty((0, self.width), np.float32), np.zeros(1, np.int64))
        if not isinstance(contexts, ActionSets) and len(contexts) and has_names(contexts[0]):
            made = []
            for row, one in enumerate(contexts):
                try:
                    made.append(self.inner.rows(one))
                except InvalidInput as error:
                    raise InvalidInput(f"action set {row}: {error}") from None
            return check_action_sets(made, self.width)
        return check_action_sets(contexts, self.width)

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
    schema: Schema | None = None,
) -> ContextReader:
    """For rows of numbers or, with the settings of a `DictionaryReader`, for dictionaries; or for sets of them.

    numbered: the first number of a row is that of a context, of so many that are known. schema: of frames.
    """
    rows = DenseReader(width, numbered) if dictionaries is None else DictionaryReader(*dictionaries)
    rows.schema = schema
    if isinstance(rows, DictionaryReader):
        rows.fresh = width is None
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
