"""Raw contexts of a log: dictionaries, action sets of them, or JSON texts of either.

They are stored unchanged, since each learner encodes them itself; texts are parsed when they are read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from o2pl.data.frames import as_mapping, is_frame
from o2pl.data.hashed_sets import HashedSets
from o2pl.data.kinds import DICTIONARIES, ROW, as_offer, kind_of_context, split_set
from o2pl.data.vw_events import is_vw_event, vw_event_json
from o2pl.data.vw_json import as_json
from o2pl.errors import InvalidInput
from o2pl.protocols import Array, Ints


def record_parser() -> Callable[[Any], Any]:
    """Return a JSON parser: msgspec if it is installed (twice as fast), else Python's."""
    try:
        from msgspec.json import Decoder
    except ModuleNotFoundError:
        return json.loads
    decode: Callable[[Any], Any] = Decoder().decode
    return decode


class Texts:
    """Texts of an Arrow column as bytes, which are made when they are asked for. `texts[rows]` copies none."""

    def __init__(self, column: Any, rows: Ints | None = None) -> None:
        self._column, self._rows = column, rows  # None: all

    def __len__(self) -> int:
        return len(self._column if self._rows is None else self._rows)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, int | np.integer):
            return self._column[int(rows if self._rows is None else self._rows[rows])].as_py()
        return Texts(self._column, (np.arange(len(self)) if self._rows is None else self._rows)[rows])

    def __iter__(self) -> Iterator[bytes]:
        if self._rows is None:
            return (text for chunk in self._column.chunks for text in chunk.to_pylist())
        return iter(self._column.take(self._rows).to_pylist())


@dataclass(frozen=True, eq=False)
class Records:
    """One context per row. `records[:10]` and `records[rows]` select rows; `records[3]` is one parsed context."""

    values: Array | Texts  # mappings, action sets of mappings, or JSON texts as bytes, [n] objects
    sizes: Ints | None = None  # of action sets, [n]; None: contexts are dictionaries
    slots: Ints | None = None  # list slot of each action set, from 0, [n]
    hashed: HashedSets | None = None  # features of action sets; then values may also be events of VW's text, as bytes

    @classmethod
    def of(cls, contexts: Sequence[object]) -> Records:
        """Build records from dictionaries, or from action sets of dictionaries."""
        values = np.empty(len(contexts), object)
        for row, one in enumerate(contexts):
            values[row] = as_mapping(one) or one
        if kind_of_context(contexts[0]) == ROW:
            return cls(values)
        sizes, slots, listed = np.zeros(len(contexts), np.int64), np.zeros(len(contexts), np.int64), False
        for row, one in enumerate(contexts):
            offer = as_offer(one)
            try:
                sizes[row] = len(split_set(one)[1] if offer is None else offer)
            except InvalidInput as error:
                raise InvalidInput(f"action set {row}{error}") from None
            if offer is not None and offer.slot is not None:
                slots[row], listed = offer.slot, True
        return cls(values, sizes, slots if listed else None)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, int | np.integer):
            one = self.values[rows]
            if not isinstance(one, bytes):
                return one
            return record_parser()(vw_event_json(one) if self.hashed is not None and is_vw_event(one) else one)
        columns: Any = (None if column is None else column[rows] for column in (self.sizes, self.slots, self.hashed))
        return Records(self.values[rows], *columns)

    def __iter__(self) -> Iterator[Any]:
        parse = record_parser()
        if self.hashed is not None:
            return map(parse, as_json(self.values))
        return (parse(one) if isinstance(one, bytes) else one for one in self.values)


def are_records(contexts: Any) -> bool:
    """Return whether contexts are dictionaries, action sets of dictionaries, or offers of users with names."""
    if isinstance(contexts, Records):
        return True
    sequence = isinstance(contexts, list | tuple) or (isinstance(contexts, np.ndarray) and contexts.dtype == object)
    if not sequence or not len(contexts):
        return False
    if as_mapping(contexts[0]) is not None or kind_of_context(contexts[0]) == DICTIONARIES:
        return True
    offer = as_offer(contexts[0])
    return offer is not None and (as_mapping(offer.user) is not None or is_frame(offer.items))


class SetRow(tuple[Any, Any]):
    """A row of a log of action sets, for functions: the pair (user, items); `row["age"]` is the user's age.

    `row["_multi"]`, and other keys of the original event, are found too.
    """

    event: Any = None

    @classmethod
    def of(cls, context: object) -> SetRow:
        made = cls(split_set(context))
        made.event = context
        return made

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        event: Any = self.event
        return event[key] if isinstance(event, Mapping) and key in event else super().__getitem__(0)[key]


def records_by_name(contexts: Any) -> Any:
    """Return contexts for a function that reads them by name: action sets as `SetRow`, others as they are."""
    sets = isinstance(contexts, Records) and contexts.sizes is not None
    return [SetRow.of(context) for context in contexts] if sets else contexts
