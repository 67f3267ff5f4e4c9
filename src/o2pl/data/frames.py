"""Named columns: `Frame`, made from pandas, polars or Arrow tables, or from dictionaries.

A column has one kind: number, bool, word (strings), time (seconds since 1970, UTC), nested (lists and dictionaries, for
hashed features) or empty (only missing values). pandas, polars and other sources of Arrow streams are converted by
PyArrow; without PyArrow, value by value.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.protocols import Array, Ints

KINDS = {
    "number": "numbers",
    "bool": "booleans",
    "word": "strings",
    "time": "dates or times",
    "nested": "lists or dictionaries",
    "empty": "only missing values",
}


class FrameColumn(NamedTuple):
    """A column. values [n]: float64 with NaN for missing; codes of strings, -1 for missing; objects if nested."""

    kind: str
    values: Array
    words: tuple[str, ...] = ()  # the strings that the codes stand for

    def missing(self) -> Array:
        """Return where values are missing, [n]."""
        if self.kind == "word":
            return np.asarray(self.values < 0)
        if self.kind == "nested":
            return np.array([one is None for one in self.values], bool)
        return np.isnan(self.values)

    def objects(self) -> list[Any]:
        """Return Python values, None for missing."""
        if self.kind == "word":
            named = (*self.words, None)  # code -1: the last entry
            return [named[code] for code in self.values.tolist()]
        if self.kind == "nested":
            return list(self.values)
        made: Any = {"bool": bool, "time": lambda seconds: datetime.fromtimestamp(seconds, UTC)}.get(self.kind, float)
        return [None if value != value else made(value) for value in self.values.tolist()]


@dataclass(frozen=True, eq=False)
class Frame:
    """Named columns of equal length. `frame[:10]` and `frame[rows]` select rows, `frame["age"]` a column.

    `frame[0]` is a row as a dictionary, and iteration goes over these.
    """

    columns: dict[str, FrameColumn]
    n: int

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, str):
            column = self.columns[rows]
            return np.array(column.objects(), object) if column.kind in ("word", "nested") else column.values
        if isinstance(rows, int | np.integer):
            return next(iter(self[range(self.n)[rows] :]))
        kept = {name: FrameColumn(kind, values[rows], words) for name, (kind, values, words) in self.columns.items()}
        return Frame(kept, len(np.arange(self.n)[rows]))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        columns = [column.objects() for column in self.columns.values()]
        for row in range(self.n):
            yield {name: values[row] for name, values in zip(self.columns, columns, strict=True)}

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        """Return the matrix of a frame with only numbers."""
        matrix = self.numbers()
        if matrix is None:
            raise TypeError(f"{self!r} has strings, times or missing values")
        return matrix.astype(np.float32 if dtype is None else dtype)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, len(self.columns)

    def __repr__(self) -> str:
        named = ", ".join(f"{name} ({one.kind})" for name, one in self.columns.items())
        return f"Frame of {self.n} rows: {named or 'no columns'}"

    def numbers(self) -> Array | None:
        """The matrix [n, d] if all columns are numbers or booleans without missing values, else None."""
        if any(column.kind not in ("number", "bool") for column in self.columns.values()):
            return None
        if not self.columns:
            return np.empty((self.n, 0))
        matrix = np.column_stack([column.values for column in self.columns.values()])
        return None if np.isnan(matrix).any() else matrix

    def dictionaries(self, missing: str | None = None) -> list[dict[str, Any]]:
        """Return the rows for hashed features: times as strings and a number; missing values are replaced by `missing`.

        missing: None: missing values are dropped.
        """
        columns = {}
        for name, column in self.columns.items():
            if column.kind != "empty":
                values = column.objects()
                if column.kind == "time":
                    values = [None if moment is None else calendar_in_frame(moment) for moment in values]
                columns[name] = [missing if value is None else value for value in values]
        if not columns:
            return [{} for _ in range(self.n)]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def calendar_in_frame(moment: datetime) -> dict[str, Any]:
    """Return a time for hashed features: the day as a number, hour and weekday as strings."""
    return {"day": moment.timestamp() / 86400, "hour": f"{moment.hour}", "weekday": f"{moment.weekday()}"}


# -- kinds of arguments


def is_frame(given: object) -> bool:
    if isinstance(given, np.ndarray | list | tuple | dict):
        return False
    named = hasattr(given, "columns") or hasattr(given, "column_names")
    return isinstance(given, Frame) or (
        named and not isinstance(given, type) and (hasattr(given, "__arrow_c_stream__") or hasattr(given, "iloc"))
    )


def as_mapping(row: object) -> Mapping[Any, Any] | None:
    """Return a named row (dictionary, pandas Series, named tuple) as a mapping; None if it has no names."""
    if isinstance(row, Mapping):
        return row
    if hasattr(row, "_asdict"):
        named: Mapping[Any, Any] = row._asdict()
        return named
    if hasattr(row, "to_dict") and hasattr(row, "index") and not is_frame(row):
        of_series: Mapping[Any, Any] = row.to_dict()
        return of_series
    return None


def check_is_row(context: object, name: str = "context") -> None:
    """Reject a data frame where one context is expected."""
    if is_frame(context):
        raise InvalidInput(
            f"{name}: found a data frame of {len(as_frame(context))} rows, expected one context: a row of it, such"
            " as `frame.iloc[0]`, or a dictionary; `act_many`, `predict` and `predict_proba` take the frame"
        )


def is_frame_or_records(contexts: Any) -> bool:
    """Return whether contexts are a data frame, or a sequence of named rows."""
    if is_frame(contexts):
        return True
    sequence = isinstance(contexts, list | tuple) or (isinstance(contexts, np.ndarray) and contexts.dtype == object)
    return bool(sequence and len(contexts) and as_mapping(contexts[0]) is not None)


def as_frame(contexts: Any) -> Frame:
    """Convert a data frame of any library, or a sequence of dictionaries."""
    if isinstance(contexts, Frame):
        return contexts
    if not is_frame(contexts):
        return frame_of_rows(contexts)
    if importlib.util.find_spec("pyarrow") is not None:
        return _frame_from_arrow(arrow_table_of_frame(contexts))
    columns = {str(name): frame_column_of(list(contexts[name]), str(name)) for name in contexts.columns}
    return Frame(columns, len(contexts))


# -- from Python values


def frame_of_rows(rows: Sequence[object]) -> Frame:
    """Convert dictionaries; keys that a row does not have are missing values."""
    mappings = []
    for place, row in enumerate(rows):
        mapping = as_mapping(row)
        if mapping is None:
            raise InvalidInput(f"context, row {place}: found {type(row).__name__}, expected a dictionary as before")
        mappings.append(mapping)
    names = dict.fromkeys(name for mapping in mappings for name in mapping)
    for name in names:
        if not isinstance(name, str):
            raise InvalidInput(
                f"context: found the key {name!r} of type {type(name).__name__}, expected strings as keys"
            )
    return Frame({name: frame_column_of([row.get(name) for row in mappings], name) for name in names}, len(mappings))


def frame_column_of(values: Sequence[object], name: str) -> FrameColumn:
    """Convert values of one kind to a column."""
    kind, first, codes, out = "empty", 0, dict[str, int](), list[Any]()
    for row, value in enumerate(values):
        if type(value) is float or type(value) is int:  # the common case
            own, made = ("number", value) if value == value else ("empty", None)
        else:
            own, made = kind_of_value(value)
        if own == "unknown":
            raise InvalidInput(
                f"column {name!r}, row {row}: found {value!r} of type {type(value).__name__}, expected a number,"
                " a string, a boolean, a date or time, or a missing value"
            )
        if own not in (kind, "empty"):
            if kind == "empty":
                kind, first = own, row
            elif {kind, own} == {"number", "bool"}:
                kind = "number"
            else:
                raise InvalidInput(
                    f"column {name!r}, row {row}: found {value!r} of type {type(value).__name__}, expected"
                    f" {KINDS[kind]} as in row {first}"
                )
        out.append(made)
    if kind == "word":
        numbers = np.array([-1 if word is None else codes.setdefault(word, len(codes)) for word in out], np.int64)
        return FrameColumn(kind, numbers, tuple(codes))
    if kind == "nested":
        column = np.empty(len(out), object)
        column[:] = out
        return FrameColumn(kind, column)
    return FrameColumn(kind, np.array([math.nan if value is None else value for value in out], np.float64))


def kind_of_value(value: object) -> tuple[str, Any]:
    """Return the kind of a value (see KINDS; "unknown" for all else), and its stored form: None for missing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return "empty", None
    if isinstance(value, str):
        return "word", value
    if isinstance(value, bool | np.bool_):
        return "bool", float(value)
    if isinstance(value, int | float | np.integer | np.floating | Decimal):
        return ("number", float(value)) if value == value else ("empty", None)
    if isinstance(value, np.datetime64):
        return (
            ("empty", None)
            if np.isnat(value)
            else ("time", float(value.astype("datetime64[us]").astype(np.int64) / 1e6))
        )
    if isinstance(value, datetime):
        return "time", (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, date):
        return "time", datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp()
    if isinstance(value, timedelta):
        return "number", value.total_seconds()
    if isinstance(value, time):
        return "number", value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    return ("nested", value) if isinstance(value, Mapping | list | tuple | set | np.ndarray) else ("unknown", None)


# -- from Arrow


def arrow_table_of_frame(given: Any) -> Any:
    """Convert a data frame of any library to a PyArrow table, without the pandas index."""
    import pyarrow as pa

    if isinstance(given, pa.Table):
        return given
    try:
        if type(given).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(given, preserve_index=False)
        return pa.table(given)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        for name in getattr(given, "columns", ()):  # raises with the row and column that differ
            frame_column_of(list(given[name]), str(name))
        raise InvalidInput(f"frame: {error}") from None


def _frame_from_arrow(table: Any) -> Frame:
    columns: dict[str, FrameColumn] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in columns:
            raise InvalidInput(f"column {name!r}: found twice, expected unique names")
        columns[name] = _frame_column_from_arrow(column)
    return Frame(columns, table.num_rows)


def _frame_column_from_arrow(column: Any) -> FrameColumn:
    import pyarrow as pa
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        if not _is_text_in_frame(kind.value_type):
            return _frame_column_from_arrow(column.cast(kind.value_type))
        return _frame_words_from_arrow(column.unify_dictionaries() if hasattr(column, "unify_dictionaries") else column)
    if _is_text_in_frame(kind):
        return _frame_words_from_arrow(column.cast(pa.large_string()).dictionary_encode())
    if types.is_null(kind):
        return FrameColumn("empty", np.full(len(column), math.nan))
    if types.is_boolean(kind):
        return FrameColumn("bool", _floats_in_frame(column.cast(pa.int8())))
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return FrameColumn("number", _floats_in_frame(column))
    if types.is_date(kind) or types.is_timestamp(kind):
        moments = column.cast(pa.timestamp("us", tz=getattr(kind, "tz", None)), safe=False)
        return FrameColumn("time", _floats_in_frame(moments.cast(pa.int64())) / 1e6)
    if types.is_duration(kind):
        return FrameColumn(
            "number", _floats_in_frame(column.cast(pa.duration("us"), safe=False).cast(pa.int64())) / 1e6
        )
    if types.is_time(kind):
        return FrameColumn("number", _floats_in_frame(column.cast(pa.time64("us"), safe=False).cast(pa.int64())) / 1e6)
    values = np.empty(len(column), object)
    values[:] = column.to_pylist()
    return FrameColumn("nested", values)


def _is_text_in_frame(kind: object) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _floats_in_frame(column: Any) -> Array:
    import pyarrow as pa

    values = column.cast(pa.float64(), safe=False)
    return np.array(values.to_numpy() if isinstance(values, pa.ChunkedArray) else values.to_numpy(zero_copy_only=False))


def _frame_words_from_arrow(column: Any) -> FrameColumn:
    """Convert a dictionary-encoded column; all chunks get one dictionary."""
    import pyarrow as pa

    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if not chunks:
        return FrameColumn("word", np.empty(0, np.int64))
    codes = [chunk.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False) for chunk in chunks]
    words: Iterable[str] = chunks[-1].dictionary.to_pylist()
    return FrameColumn("word", np.concatenate(codes), tuple(words))


def word_codes(column: FrameColumn, vocabulary: Mapping[str, int], other: Any) -> Ints:
    """Return the code of each row's string in a vocabulary; `other(string)` for unknown ones; -1: missing."""
    numbers = [vocabulary[word] if word in vocabulary else other(word) for word in column.words]
    return np.array([*numbers, -1], np.int64)[column.values]
