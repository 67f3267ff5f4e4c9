"""Frames of every make hold the same columns, and what cannot be a column is named."""

from __future__ import annotations

from collections import namedtuple
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from o2pl import InvalidInput
from o2pl.data.frames import (
    Frame,
    FrameColumn,
    as_frame,
    as_mapping,
    frame_column_of,
    frame_of_rows,
    is_frame,
    is_frame_or_records,
)

VALUES: dict[str, list[Any]] = {
    "age": [30.5, None, 22.0],
    "visits": [3, 4, 5],
    "city": ["Rome", None, "Oslo"],
    "member": [True, False, None],
    "seen": [datetime(2024, 5, 1, 12, 30), None, datetime(1969, 12, 31)],
    "born": [date(1970, 1, 2), date(2000, 1, 1), None],
    "nothing": [None, None, None],
}
EXPECTED: dict[str, tuple[str, list[Any]]] = {
    "age": ("number", [30.5, np.nan, 22.0]),
    "visits": ("number", [3, 4, 5]),
    "city": ("word", ["Rome", None, "Oslo"]),
    "member": ("bool", [1, 0, np.nan]),
    "seen": ("time", [datetime(2024, 5, 1, 12, 30, tzinfo=UTC).timestamp(), np.nan, -86400.0]),
    "born": ("time", [86400.0, datetime(2000, 1, 1, tzinfo=UTC).timestamp(), np.nan]),
    "nothing": ("empty", [np.nan] * 3),
}


def rows() -> list[dict[str, Any]]:
    return [{name: values[row] for name, values in VALUES.items()} for row in range(3)]


def pandas_frame() -> Any:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(VALUES, index=[7, 3, 5])
    frame["city"] = frame["city"].astype("category")
    frame["seen"] = pd.to_datetime(frame["seen"]).dt.tz_localize("UTC")
    frame["visits"] = frame["visits"].astype("Int64")
    return frame


MAKES: dict[str, Any] = {
    "arrow": lambda: pa.table(VALUES),
    "record batch": lambda: pa.record_batch(VALUES),
    "chunks": lambda: pa.concat_tables([pa.table(VALUES)[:1], pa.table(VALUES)[1:]]),
    "pandas": pandas_frame,
    "polars": lambda: pytest.importorskip("polars").DataFrame(VALUES),
    "dictionaries": rows,
}


@pytest.mark.parametrize("make", MAKES)
def test_every_make_holds_the_same(make: str) -> None:
    given = MAKES[make]()
    assert is_frame_or_records(given)
    assert is_frame(given) == (make != "dictionaries")
    frame = as_frame(given)
    assert len(frame) == 3
    assert list(frame.columns) == list(EXPECTED)
    for name, (kind, values) in EXPECTED.items():
        assert frame.columns[name].kind == kind, name
        if kind == "word":
            assert frame[name].tolist() == values
        else:
            np.testing.assert_array_equal(frame[name], values)
    assert as_frame(frame) is frame
    part = frame[np.array([2, 0])]
    assert part["city"].tolist() == ["Oslo", "Rome"]
    assert (len(part), len(frame[1:])) == (2, 2)


def test_pandas_without_pyarrow_is_read_value_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    given = pandas_frame()
    with monkeypatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda name: None)
        slow = as_frame(given)
    fast = as_frame(given)
    for name, column in fast.columns.items():
        assert slow.columns[name].kind == column.kind
        assert slow.columns[name].objects() == column.objects()


def test_rows_with_names() -> None:
    row = namedtuple("row", ["age", "city"])(3, "Rome")  # as pandas' itertuples makes them
    assert as_mapping(row) == {"age": 3, "city": "Rome"}
    assert as_mapping([1, 2]) is None
    assert as_mapping(np.ones(2)) is None
    assert dict(as_mapping(pandas_frame().iloc[0]) or {})["age"] == 30.5
    assert frame_of_rows([{"a": 1}, {"b": "x"}])["a"].tolist()[0] == 1  # a key that is not there is missing
    with pytest.raises(InvalidInput, match="row 1: found list, expected a dictionary"):
        frame_of_rows([{"a": 1}, [1]])
    with pytest.raises(InvalidInput, match="found the key 3 of type int"):
        frame_of_rows([{3: 1}])


def test_kinds_of_single_values() -> None:
    assert frame_column_of([Decimal("1.5"), np.float32(2), np.nan], "x").objects() == [1.5, 2.0, None]
    assert frame_column_of([timedelta(minutes=1), None], "x").objects() == [60.0, None]
    assert frame_column_of([np.datetime64("1970-01-02"), np.datetime64("NaT")], "x").values.tolist()[0] == 86400
    assert frame_column_of([True, 2], "x").kind == "number"
    assert frame_column_of([{"a": 1}, None, [2]], "x").kind == "nested"
    for values, said in (
        ([1, "a"], "column 'x', row 1: found 'a' of type str, expected numbers as in row 0"),
        ([None, "a", 2.5], "column 'x', row 2: found 2.5 of type float, expected strings as in row 1"),
        ([object()], "column 'x', row 0: found <object"),
    ):
        with pytest.raises(InvalidInput, match=said):
            frame_column_of(values, "x")


def test_mixed_kinds_in_a_pandas_column_are_named() -> None:
    pd = pytest.importorskip("pandas")
    with pytest.raises(InvalidInput, match="column 'x', row 1: found 'a' of type str, expected numbers as in row 0"):
        as_frame(pd.DataFrame({"y": [1, 2], "x": pd.Series([1, "a"], dtype=object)}))
    with pytest.raises(InvalidInput, match="column 'a': found twice"):
        as_frame(pa.table([[1], [2]], names=["a", "a"]))


def test_rows_for_hashed_features() -> None:
    frame = as_frame(pa.table({k: VALUES[k] for k in ("age", "city", "member", "seen", "nothing")}))
    first, second, _ = frame.dictionaries("(missing)")
    assert first["age"] == 30.5
    assert first["member"] is True
    assert first["seen"] == {"day": pytest.approx(19844.52, abs=0.01), "hour": "12", "weekday": "2"}
    assert second == {"age": "(missing)", "city": "(missing)", "member": False, "seen": "(missing)"}
    assert frame.dictionaries()[1]["age"] is None  # which readers leave out


def test_a_matrix_of_frames_that_are_numbers() -> None:
    np.testing.assert_array_equal(as_frame(pa.table({"a": [1, 2], "b": [True, False]})).numbers(), [[1, 1], [2, 0]])
    assert as_frame(pa.table({"a": [1, None]})).numbers() is None
    assert as_frame(pa.table({"a": ["x"]})).numbers() is None
    assert repr(Frame({"a": FrameColumn("number", np.ones(2))}, 2)) == "Frame of 2 rows: a (number)"
