"""Contexts of a log as they were handed in: dictionaries, action sets of them, or JSON texts of either.

They are kept as they are, since every learner reads them in its own way; texts are parsed when they are read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from o2pl.contexts.frames import as_mapping
from o2pl.contexts.sets import is_set, split_set
from o2pl.errors import InvalidInput
from o2pl.protocols import Array, Ints


def parser() -> Callable[[Any], Any]:
    """Of JSON; msgspec's where it is installed, twice as fast as Python's."""
    try:
        from msgspec.json import Decoder
    except ModuleNotFoundError:
        return json.loads
    decode: Callable[[Any], Any] = Decoder().decode
    return decode


@dataclass(frozen=True, eq=False)
class Records:
    """One context per row. `records[:10]` and `records[rows]` are some of them, `records[3]` is one, parsed."""

    values: Array  # mappings, action sets of mappings, or JSON texts as bytes, [n] objects
    sizes: Ints | None = None  # of action sets, [n]; None: contexts are dictionaries

    @classmethod
    def of(cls, contexts: Sequence[Any]) -> Records:
        """Of dictionaries, or of action sets of dictionaries."""
        values = np.empty(len(contexts), object)
        values[:] = [as_mapping(one) or one for one in contexts]
        if not is_set(contexts[0]):
            return cls(values)
        sizes = np.zeros(len(contexts), np.int64)
        for row, one in enumerate(contexts):
            try:
                sizes[row] = len(split_set(one)[1])
            except InvalidInput as error:
                raise InvalidInput(f"action set {row}{error}") from None
        return cls(values, sizes)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, int | np.integer):
            one = self.values[rows]
            return parser()(one) if isinstance(one, bytes) else one
        return Records(self.values[rows], None if self.sizes is None else self.sizes[rows])

    def __iter__(self) -> Iterator[Any]:
        parse = parser()
        return (parse(one) if isinstance(one, bytes) else one for one in self.values)


def are_records(contexts: Any) -> bool:
    """Whether these are dictionaries or action sets of dictionaries."""
    if isinstance(contexts, Records):
        return True
    sequence = isinstance(contexts, list | tuple) or (isinstance(contexts, np.ndarray) and contexts.dtype == object)
    return bool(sequence and len(contexts) and (as_mapping(contexts[0]) is not None or is_set(contexts[0])))
