"""How columns become numbers, and what later batches are held to."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from o2pl import InvalidInput
from o2pl.data.frames import as_frame
from o2pl.encode import Schema
from o2pl.encode.name_hash import name_hash
from o2pl.encode.schema import COMMON, SHARED
from o2pl.storage import decode_from_storage, encode_for_storage

FIRST = {
    "age": [30.0, None, 20.0, 40.0] * 25,
    "city": ["Rome", "Oslo", None, "Rome"] * 25,
    "member": [True, False, True, True] * 25,
    "seen": [datetime(2024, 5, day, 6) for day in (1, 2, 3, 4)] * 25,
}


def learned() -> Schema:
    return Schema.learn(as_frame(pa.table(FIRST)))


def test_numbers_words_booleans_and_times() -> None:
    schema = learned()
    assert schema.names == (
        "age", "age is missing", "city=Oslo", "city=Rome", "city=other", "city is missing", "member",
        "seen.day", "seen.hour sine", "seen.hour cosine", "seen.weekday sine", "seen.weekday cosine",
    )  # fmt: skip
    found = schema.numbers(as_frame(pa.table(FIRST)))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found[:4, :2], [[30, 0], [30, 1], [20, 0], [40, 0]])  # 30 is the mean
    np.testing.assert_array_equal(found[:4, 2:6], [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]])
    np.testing.assert_array_equal(found[:4, 6], [1, 0, 1, 1])
    np.testing.assert_allclose(found[:4, 7], [-1.5, -0.5, 0.5, 1.5], atol=1e-6)
    np.testing.assert_allclose(found[:4, 8:10], [[1, 0]] * 4, atol=1e-4)  # six in the morning: a quarter turn
    turn = 2 * np.pi * np.array([3, 4, 5, 6]) / 7  # the first of May 2024 was a Wednesday
    np.testing.assert_allclose(found[:4, 10:], np.stack([np.sin(turn), np.cos(turn)], axis=1), atol=1e-4)


def test_a_file_brings_the_schema_back() -> None:
    assert decode_from_storage(encode_for_storage(learned())) == learned()


def test_order_of_columns_does_not_matter_and_rows_may_leave_some_out() -> None:
    schema, frame = learned(), as_frame(pa.table(FIRST))
    turned = as_frame(pa.table(dict(reversed(FIRST.items()))))
    np.testing.assert_array_equal(schema.numbers(turned), schema.numbers(frame))
    row = schema.numbers(schema.frame_of({"city": "Rome"}), rows=True)
    np.testing.assert_array_equal(row[0, :7], [30, 1, 0, 1, 0, 0, 0.75])  # member never missed: at its mean
    one = {name: values[2] for name, values in FIRST.items()}
    np.testing.assert_array_equal(schema.numbers(schema.frame_of(one)), schema.numbers(frame)[2:3])


def test_one_row_is_read_as_in_a_frame() -> None:
    schema = learned()
    moment = datetime(2024, 7, 9, 15, 30)
    values: dict[str, list[Any]] = {
        "age": [3, 2.5, None, float("nan"), True], "city": ["Rome", "Bern", "", None, float("nan")],
        "member": [True, 0, None, 0.5], "seen": [moment, moment.date(), None],
    }  # fmt: skip
    for age in values["age"]:
        for city in values["city"]:
            for member in values["member"]:
                for seen in values["seen"]:
                    row = {"age": age, "city": city, "member": member, "seen": seen}
                    found = schema.row(row)
                    assert found is not None
                    np.testing.assert_array_equal(found, schema.numbers(schema.frame_of(row), rows=True)[0])
    left_out = schema.row({"city": "Rome"})
    np.testing.assert_array_equal(left_out, schema.numbers(schema.frame_of({"city": "Rome"}), rows=True)[0])
    odd: list[dict[str, Any]] = [
        {"town": "Rome"},
        {"age": "x"},
        {"age": 1e39},
        {"city": 3},
        {"seen": 3},
        {"age": np.float64(3)},
    ]
    for row in odd:  # for the frame's own path, which reads it or says what is wrong
        assert schema.row(row) is None


def test_words_that_the_first_batch_did_not_have() -> None:
    schema = learned()
    np.testing.assert_array_equal(schema.numbers(schema.frame_of({"city": "Bern"}), rows=True)[0, 2:6], [0, 0, 1, 0])
    few = Schema.learn(as_frame([{"city": "Rome"}]))  # one row does not show which words there are
    assert few.width == len(set(few.names)) == 1 + 2 * SHARED
    row = few.numbers(few.frame_of({"city": "Bern"}))[0]
    hashed = name_hash("Bern")
    assert np.flatnonzero(row).tolist() == [1 + hashed % SHARED, 1 + SHARED + (hashed >> 8) % SHARED]
    np.testing.assert_array_equal(few.row({"city": "Bern"}), row)
    np.testing.assert_array_equal(few.row({"city": "Rome"}), np.eye(few.width)[0])
    rows = few.numbers(as_frame([{"city": f"w{k}"} for k in range(300)]))
    assert (rows @ rows.T == 2).sum() - 300 < 300 * 299 / 256 * 1.5  # pairs of words with the same columns
    many = Schema.learn(as_frame(pa.table({"w": [f"w{k % 40:02d}" for k in range(200)] + ["w39"] * 5})))
    assert many.width == COMMON + SHARED
    assert "w=w39" in many.names  # the commonest
    categories = pa.array(["a", "b"] * 60).dictionary_encode()
    known = Schema.learn(as_frame(pa.table({"c": pa.DictionaryArray.from_arrays(categories.indices, ["a", "b", "z"])})))
    assert known.names == ("c=a", "c=b", "c=z", "c=other")  # categories that did not occur are known


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"age": None}, "column 'age': found none, expected numbers as in the first batch"),
        (
            {"extra": [1]},
            "column 'extra': found, expected only those of the first batch: age, city, member, seen; leave",
        ),
        ({"city": None, "cities": ["x"]}, "column 'cities': found, .*; did you mean 'city'?"),
        ({"city": [1.0]}, "column 'city': found numbers, expected strings as in the first batch"),
        ({"age": ["x"]}, "column 'age': found strings, expected numbers as in the first batch"),
        ({"seen": [3]}, "column 'seen': found numbers, expected dates or times"),
        ({"age": [float("inf")]}, "column 'age', row 0: found inf, expected a finite number"),
        ({"age": [1e39]}, "below 3e38"),
    ],
)
def test_what_a_later_frame_may_not_have(changes: dict[str, Any], said: str) -> None:
    one = {name: values[:1] for name, values in FIRST.items()}
    frame = pa.table({name: values for name, values in (one | changes).items() if values is not None})
    with pytest.raises(InvalidInput, match=said):
        learned().numbers(as_frame(frame))


def test_numbers_and_booleans_stand_for_each_other() -> None:
    schema = learned()
    assert schema.numbers(schema.frame_of({"member": 1, "age": True}), rows=True)[0, [0, 6]].tolist() == [1, 1]
    (row,) = schema.dictionaries(schema.frame_of({"member": 1, "age": True}), rows=True)
    assert (row["member"], row["age"], row["city"]) == (True, 1.0, "(missing)")
    assert not isinstance(row["age"], bool)


def test_columns_without_values_say_nothing_ever() -> None:
    schema = Schema.learn(as_frame([{"a": None, "b": 1}]))
    assert schema.names == ("b",)
    assert schema.numbers(schema.frame_of({"a": "now", "b": 2})).tolist() == [[2]]
    assert schema.dictionaries(schema.frame_of({"a": "now", "b": 2})) == [{"b": 2.0}]
    for first, said in (
        ([{"a": None}], "found no column with values"),
        ([{"a": [1, 2]}], "which need policy='hashed'"),
    ):
        bad = Schema.learn(as_frame(first))
        with pytest.raises(InvalidInput, match=said):
            bad.numbers(as_frame(first))
    with pytest.raises(InvalidInput, match="found no rows"):
        Schema.learn(as_frame(pa.table({"a": pa.array([], pa.int64())})))
    with pytest.raises(InvalidInput, match="context: found ndarray, expected a row with the columns"):
        schema.frame_of(np.ones(1))
