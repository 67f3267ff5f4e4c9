"""Schema of data frames: names and kinds of columns, and their encoding. Later data frames are checked against it.

| kind   | encoding                                                                                     |
|--------|----------------------------------------------------------------------------------------------|
| number | unchanged                                                                                    |
| bool   | 0 or 1                                                                                       |
| word   | one 0/1 column per common string, and shared columns for all other strings                   |
| time   | days since the first batch's mean; sine and cosine of the time of day and of the day of the week |

Missing values become the first batch's mean (no string, for strings). A column with missing values in the first batch
also gets an indicator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np

from o2pl import _core
from o2pl.data.frames import (
    KINDS,
    Frame,
    FrameColumn,
    as_frame,
    as_mapping,
    frame_column_of,
    is_frame,
    is_frame_or_records,
    kind_of_value,
    word_codes,
)
from o2pl.data.records import Records
from o2pl.encode.name_hash import name_hash
from o2pl.errors import InvalidInput
from o2pl.protocols import Array, Floats
from o2pl.storage import storable

COMMON = 32  # largest number of strings of a column with their own 0/1 columns
SHARED = 16  # columns shared by rarer strings, by hash, if there are more, or too few rows to know
ENOUGH = 100  # number of rows that is enough to know the strings
DAY = 86400.0
_LARGEST = float(np.finfo(np.float32).max)
MISSING = "(missing)"  # missing values as a string of hashed features


@storable
@dataclass(frozen=True)
class Field:
    """One column of the first batch."""

    name: str
    kind: str
    missing: bool = False  # whether values were missing: adds an indicator
    mean: float = 0.0  # of numbers, booleans and times: replaces missing values
    words: tuple[str, ...] = ()  # strings with their own columns
    shared: int = 0  # shared columns for all other strings
    again: int = (
        0  # shared columns for them by other bits of the hash, so that hardly two strings have the same columns
    )
    clock: bool = False  # times: not all at midnight

    @classmethod
    def learn(cls, name: str, column: FrameColumn) -> Field:
        gone = column.missing()
        missing = bool(gone.any()) and not gone.all()
        if gone.all() and column.kind != "word":
            return cls(name, "empty")
        if column.kind == "word":
            counts = np.bincount(column.values[~gone], minlength=len(column.words))
            order = sorted(range(len(column.words)), key=lambda at: (-counts[at], column.words[at]))
            words = tuple(sorted(column.words[at] for at in order[:COMMON]))
            unsure = len(column.words) > COMMON or len(column.values) < ENOUGH
            again = SHARED if len(column.values) < ENOUGH else 0
            return cls(name, "word", missing, words=words, shared=SHARED if unsure else 1, again=again)
        if column.kind == "nested":
            return cls(name, "nested", missing)
        mean = float(column.values[~gone].mean())
        clock = column.kind == "time" and bool((column.values[~gone] % DAY).any())
        return cls(name, column.kind, missing, mean if math.isfinite(mean) else 0.0, clock=clock)

    def names(self) -> list[str]:
        """Return the names of the encoded columns."""
        if self.kind == "word":
            others = range(self.shared + self.again)
            rest = [f"{self.name}=other {k}" if len(others) > 1 else f"{self.name}=other" for k in others]
            own = [*(f"{self.name}={word}" for word in self.words), *rest]
        elif self.kind == "time":
            cycles = ["hour", "weekday"] if self.clock else ["weekday"]
            own = [f"{self.name}.day", *(f"{self.name}.{c} {f}" for c in cycles for f in ("sine", "cosine"))]
        else:
            own = [self.name] if self.kind in ("number", "bool") else []
        return own + [f"{self.name} is missing"] * self.missing

    def shown(self, numbers: Floats) -> str:
        """Return the original value of one row, formatted. numbers [width]"""
        if self.kind in ("empty", "nested"):
            return ""
        if self.missing and numbers[-1]:
            return "missing"
        if self.kind == "word":
            place = int(np.argmax(numbers)) if numbers.any() else -1
            return "missing" if place < 0 else self.words[place] if place < len(self.words) else "another string"
        if self.kind == "bool":
            return "true" if numbers[0] == 1 else "false" if numbers[0] == 0 else f"{numbers[0]:.4g}"
        if self.kind == "time":
            minutes = round((float(numbers[0]) * DAY + self.mean) / 60)
            moment = datetime.fromtimestamp(60 * minutes, UTC)
            return f"{moment:%Y-%m-%d %H:%M}" if self.clock else f"{moment:%Y-%m-%d}"
        return f"{numbers[0]:.4g}"

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    def _other(self, word: str) -> int:
        return len(self.words) + name_hash(word) % self.shared

    def _again(self, word: str) -> int:
        return len(self.words) + self.shared + (name_hash(word) >> 8) % self.again

    def write(self, column: FrameColumn, out: Floats) -> None:
        """Write the encoded column into zeros. out [n, width]"""
        gone = column.missing()
        if self.kind == "word":
            places = word_codes(column, self._places, self._other)
            rows = np.flatnonzero(places >= 0)
            out[rows, places[rows]] = 1
            if self.again:
                places = word_codes(column, dict.fromkeys(self.words, -1), self._again)
                rows = np.flatnonzero(places >= 0)
                out[rows, places[rows]] = 1
        elif self.kind != "empty":
            values = np.where(gone, self.mean, column.values)
            if not (np.abs(values) <= _LARGEST).all():
                row = int(np.argmin(np.abs(values) <= _LARGEST))
                raise InvalidInput(
                    f"column {self.name!r}, row {row}: found {values[row]:g}, expected a finite number"
                    " (of magnitude below 3e38, the range of float32)"
                )
            if self.kind == "time":
                self._write_time(values, out)
            else:
                out[:, 0] = values
        if self.missing:
            out[:, -1] = gone

    def _write_time(self, seconds: Array, out: Floats) -> None:
        out[:, 0] = (seconds - self.mean) / DAY
        turns = [seconds / DAY] if self.clock else []
        turns += [(np.floor(seconds / DAY) + 4) / 7]  # 1 January 1970 was a Thursday: 0 is a Sunday
        for place, turn in enumerate(turns):
            out[:, 1 + 2 * place], out[:, 2 + 2 * place] = np.sin(2 * np.pi * turn), np.cos(2 * np.pi * turn)


@storable
@dataclass(frozen=True)
class Schema:
    """The columns of the first batch."""

    fields: tuple[Field, ...]

    @classmethod
    def learn(cls, frame: Frame) -> Schema:
        if not len(frame):
            raise InvalidInput("frame: found no rows, expected at least one, to determine its columns")
        return cls(tuple(Field.learn(name, column) for name, column in frame.columns.items()))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the encoded columns."""
        return tuple(name for field in self.fields for name in field.names())

    @property
    def width(self) -> int:
        return len(self.names)

    def check(self, frame: Frame, rows: bool = False) -> None:
        """Reject a frame with other columns or kinds. With `rows`, absent columns are missing values."""
        known = {field.name: field for field in self.fields}
        for name in frame.columns:
            if name not in known:
                close = get_close_matches(str(name), [each for each in known if each not in frame.columns], 1)
                meant = f"; did you mean {close[0]!r}?" if close else "; leave it out, or begin a learner with it"
                raise InvalidInput(
                    f"column {name!r}: found, expected only those of the first batch:"
                    f" {_named_schema_fields(known)}{meant}"
                )
        for name, field in known.items():
            if name not in frame.columns:
                if rows:
                    continue
                raise InvalidInput(f"column {name!r}: found none, expected {KINDS[field.kind]} as in the first batch")
            kind = frame.columns[name].kind
            numeric = {kind, field.kind} <= {"number", "bool"}
            if kind != field.kind and not numeric and "empty" not in (kind, field.kind):
                raise InvalidInput(
                    f"column {name!r}: found {KINDS[kind]}, expected {KINDS[field.kind]} as in the first batch"
                )

    def numbers(self, frame: Frame, rows: bool = False) -> Floats:
        """Encode a frame as numbers, [n, width]; columns are matched by name, in any order."""
        self.check(frame, rows)
        for field in self.fields:
            if field.kind == "nested":
                raise InvalidInput(
                    f"column {field.name!r}: found lists or dictionaries, which need policy='hashed';"
                    " expected numbers, strings, booleans or times"
                )
        if not self.width:
            raise InvalidInput("frame: found no column with values, expected at least one")
        out, at = np.zeros((len(frame), self.width), np.float32), 0
        for field in self.fields:
            width = len(field.names())
            field.write(self._column(frame, field), out[:, at : at + width])
            at += width
        return out

    @cached_property
    def _layout(self) -> tuple[tuple[Field, int, int], ...]:
        """Return the fields, and start and end of their columns."""
        ends = np.cumsum([0] + [len(field.names()) for field in self.fields]).tolist()
        return tuple(zip(self.fields, ends, ends[1:], strict=False))

    def row(self, mapping: Mapping[Any, Any]) -> Floats | None:
        """Encode one row of plain values, [width], without a frame; None if it needs the slow path."""
        out, found = np.zeros(self.width, np.float32), 0
        for field, begin, end in self._layout:
            value = mapping.get(field.name, mapping)
            if value is mapping:
                value = None
            else:
                found += 1
            kind = type(value)
            gone = value is None or (kind is float and value != value)
            if field.kind == "word":
                if kind is str:
                    place = field._places.get(value)
                    out[begin + (field._other(value) if place is None else place)] = 1
                    if place is None and field.again:
                        out[begin + field._again(value)] = 1
                elif not gone:
                    return None
            elif field.kind in ("number", "bool"):
                if not gone and not (kind in (float, int, bool) and -_LARGEST <= value <= _LARGEST):
                    return None
                out[begin] = field.mean if gone else value
            elif field.kind == "time":
                column = frame_column_of([value], field.name)
                if column.kind not in ("time", "empty"):
                    return None
                field.write(FrameColumn("time", column.values), out[None, begin:end])
            elif field.kind == "nested":
                return None
            if gone and field.missing:
                out[end - 1] = 1
        return out if found == len(mapping) and self.width else None

    def dictionaries(self, frame: Frame, rows: bool = False) -> list[dict[str, Any]]:
        """Return the rows for hashed features; a missing value is a separate string."""
        self.check(frame, rows)
        kept = {field.name: self._column(frame, field) for field in self.fields if field.kind != "empty"}
        return Frame(kept, len(frame)).dictionaries(MISSING)

    def _column(self, frame: Frame, field: Field) -> FrameColumn:
        """Return the column of a field; only missing values if it is absent."""
        column = frame.columns.get(field.name)
        if column is not None and column.kind != "empty":
            return column if field.kind in ("word", "nested", "empty") else FrameColumn(field.kind, column.values)
        if field.kind == "word":
            return FrameColumn("word", np.full(len(frame), -1))
        if field.kind == "nested":
            return FrameColumn("nested", np.full(len(frame), None, object))
        return FrameColumn(field.kind, np.full(len(frame), math.nan))

    def frame_of(self, row: object) -> Frame:
        """Return a frame of one named row."""
        mapping = as_mapping(row)
        if mapping is None:
            raise InvalidInput(
                f"context: found {type(row).__name__}, expected a row with the columns of the first batch:"
                f" {_named_schema_fields({field.name: field for field in self.fields})}"
            )
        return Frame({str(name): frame_column_of([value], str(name)) for name, value in mapping.items()}, 1)


def schema_has_new_words(contexts: object) -> bool:
    """Return whether columns cannot be made of these first contexts: of their strings only some are known.

    That is so for fewer than `ENOUGH` rows with strings, for lists, dictionaries and texts, and for rows without any
    feature. Hashed features have a place for every string and for the words of every text, whenever they come.
    """
    few = len(contexts) < ENOUGH if hasattr(contexts, "__len__") else True
    if is_frame(contexts):
        kinds = {column.kind for column in as_frame(contexts).columns.values()}
    else:
        rows = _first_rows_of_schema(contexts)
        if rows and not any(rows):
            return True
        kinds = {kind_of_value(value)[0] for row in rows for value in row.values()}
    return "nested" in kinds or (few and "word" in kinds) or schema_has_texts(contexts)


def schema_has_texts(contexts: Any) -> bool:
    """Return whether a column has texts, which are no categories: hardly any comes twice.

    In a few rows any text counts; else a column is texts if most of its strings are, and more than have columns.
    """
    if is_frame(contexts):
        columns = {name: column.words for name, column in as_frame(contexts).columns.items() if column.kind == "word"}
    else:
        found: dict[str, set[str]] = {}
        for row in _first_rows_of_schema(contexts):
            for name, value in row.items():
                if type(value) is str:
                    found.setdefault(name, set()).add(value)
        columns = {name: tuple(values) for name, values in found.items()}
    least = 0 if not columns or len(contexts) < ENOUGH else COMMON
    return any(
        len(words) > least and _schema_mostly_texts(words[:_LOOKED_AT], len(contexts)) for words in columns.values()
    )


def _first_rows_of_schema(contexts: Any) -> list[Mapping[Any, Any]]:
    """Return the first named rows; none if contexts are of another kind."""
    if not (is_frame_or_records(contexts) or isinstance(contexts, Records)):
        return []
    return [as_mapping(row) or {} for row in contexts[:_LOOKED_AT]]


def _schema_mostly_texts(words: Sequence[str], rows: int) -> bool:
    texts = sum(map(_core.is_text, words))
    return texts > (0 if rows < ENOUGH else len(words) / 2)


_LOOKED_AT = 1000  # rows, or strings of a column, that tell what they are


def _named_schema_fields(fields: Mapping[str, Field]) -> str:
    return ", ".join(list(fields)[:12]) + (", …" if len(fields) > 12 else "")


@storable
@dataclass(frozen=True)
class OfferSchema:
    """The schemas of users and of items, if they have names."""

    user: Schema | None = None
    items: Schema | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(field for schema in (self.user, self.items) if schema is not None for field in schema.fields)
