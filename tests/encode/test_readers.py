"""Readers of rows and of action sets: what passes, in which form, and what is refused, and where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl import InvalidInput, Offer, _core
from o2pl.data.contexts import ActionSets
from o2pl.data.offers import offer_codes_of
from o2pl.encode.dictionaries import DictionaryReader
from o2pl.encode.readers import DenseReader, OfferReader, SetsReader, plain_for_reader

USER, ITEMS = np.array([1.0, 2.0]), np.arange(12.0).reshape(4, 3)

ROW = [1.0, -2.0, 3.5]


def test_rows_of_any_kind_are_read_alike() -> None:
    reader = DenseReader(3)
    wide = np.zeros(6)
    wide[::2] = ROW
    for row in (ROW, tuple(ROW), np.array(ROW), np.array(ROW, np.float32), wide[::2]):
        np.testing.assert_array_equal(reader.row(row), [ROW])
        np.testing.assert_array_equal(reader.rows([row, row]), [ROW, ROW])
        np.testing.assert_array_equal(reader.entry(row), ROW)
    assert reader.row(ROW).dtype == np.float32
    kept = np.array(ROW, np.float32)
    assert reader.entry(kept) is kept  # the log copies it
    assert DenseReader().row([1.0] * 7).shape == (1, 7)  # of any width before the first


@pytest.mark.parametrize("reads", ["row", "entry", "rows"])
@pytest.mark.parametrize(
    ("row", "said"),
    [
        ([1.0, np.nan, 2.0], "context, row 0, feature 1: found nan"),
        (np.array([1.0, 2.0, np.inf]), "feature 2: found inf"),
        (np.array([1e39, 2.0, 3.0]), "below 3e38"),
        ([1.0, 2.0], "found shape"),
        (np.ones(4, np.float32), "found shape"),
        (["a", "b", "c"], "expected numbers"),
    ],
)
def test_a_bad_row_is_refused(row: Any, said: str, reads: str) -> None:
    with np.errstate(over="ignore"), pytest.raises(InvalidInput, match=said):
        getattr(DenseReader(3), reads)([row] if reads == "rows" else row)


@pytest.mark.parametrize("reads", ["row", "entry"])
def test_numbers_of_contexts_are_those_that_are_known(reads: str) -> None:
    reader = DenseReader(1, numbered=4)
    for fine in ([0.0], [3], np.array([2.0], np.float32)):
        assert getattr(reader, reads)(fine).shape[-1] == 1
    for bad in ([4.0], [-1.0], [0.5]):
        with pytest.raises(InvalidInput, match=r"row 0: found .* expected an integer from 0 to 3"):
            getattr(reader, reads)(bad)
    with pytest.raises(InvalidInput, match=r"row 1: found 0.5"):
        reader.rows([[1.0], [0.5]])


def test_action_sets_of_rows() -> None:
    reader = SetsReader(DenseReader(2))
    sets = [np.ones((3, 2), np.float32), np.zeros((1, 2)), [[1.0, 2.0], [3.0, 4.0]]]
    found = reader.rows(sets)
    assert found.offsets.tolist() == [0, 3, 4, 6]
    assert reader.rows(found) is found
    assert len(reader.rows([])) == 0
    with pytest.raises(InvalidInput, match="action sets: found none"):
        SetsReader(DenseReader()).rows([])
    for one in sets:
        entry = reader.entry(one)
        np.testing.assert_array_equal(entry.values, one)
        assert entry.offsets.tolist() == reader.row(one).offsets.tolist() == [0, len(one)]
    for bad, said in (
        (np.ones((2, 3), np.float32), "found 3 features, expected 2"),
        (np.ones((0, 2), np.float32), "found shape"),
        (np.array([[1.0, 2.0], [np.nan, 1.0]], np.float32), "action set 0, action 1"),
        (np.ones(2, np.float32), "found shape"),
    ):
        for reads in (reader.row, reader.entry):
            with pytest.raises(InvalidInput, match=said):
                reads(bad)


def test_action_sets_of_dictionaries() -> None:
    reader = SetsReader(DictionaryReader(8))
    assert reader.width == 256
    sets = [[{"a": "x"}, {"b": 2.0, "c": "y"}], [{}]]
    found = reader.rows(sets)
    assert found.offsets.tolist() == [0, 2, 3]
    assert found.values.offsets.tolist() == [0, 1, 3, 3]
    np.testing.assert_array_equal(found.values.dense(), DictionaryReader(8).rows([{"a": "x"}, sets[0][1], {}]).dense())
    np.testing.assert_array_equal(reader.rows(found).values.dense(), found.values.dense())
    assert reader.entry(sets[0]).offsets.tolist() == [0, 2]
    for bad, said in (
        ({"a": "x"}, "action set 0: found dict, expected a list of dictionaries"),
        ([], "action set 0: found list"),
        ("text", "action set 0: found str"),
        ([{"a": np.inf}], "a: found inf"),
        ([3], "found 3"),
    ):
        with pytest.raises(InvalidInput, match=said):
            reader.row(bad)
    with pytest.raises(InvalidInput, match="expected dictionaries"):
        reader.rows(ActionSets.of([np.ones((2, 256))]))


def test_what_kernels_take_as_it_is() -> None:
    row = np.ones(3, np.float32)
    assert plain_for_reader(row, 1)
    assert plain_for_reader(row.astype(np.float64), 1)
    for other in (row.tolist(), row.astype(np.int64), row[None], row[::2], row.astype(np.float16)):
        assert not plain_for_reader(other, 1)
    assert plain_for_reader(np.ones((2, 3)), 2)
    assert not plain_for_reader(np.ones((2, 3)).T, 2)
    with np.errstate(over="ignore"):
        assert [_core.all_finite(np.array([1.0, x])) for x in (2.0, np.nan, np.inf, 1e39)] == [
            True,
            False,
            False,
            False,
        ]


def test_offers() -> None:
    reader = OfferReader()
    sets = reader.rows([(USER, ITEMS), Offer(USER + 1, ITEMS[:2], ids=["a", "b"], exclude=["a"], slot=2)])
    assert sets.offsets.tolist() == [0, 4, 5]
    np.testing.assert_array_equal(sets.values[4], ITEMS[1])
    np.testing.assert_array_equal(sets.shared, [USER, USER + 1])
    assert sets.item_ids is not None
    assert sets.item_ids.tolist() == [-1] * 4 + offer_codes_of(["b"]).tolist()
    assert sets.slots is not None
    assert sets.slots.tolist() == [0, 2]
    np.testing.assert_array_equal(sets.inputs[4], [2, *(USER + 1), *ITEMS[1]])
    np.testing.assert_array_equal(sets.played(np.array([1, 0])), sets.inputs[[1, 4]])
    given = ITEMS.astype(np.float32)
    entry = reader.entry((USER, given))
    given[:] = 0
    np.testing.assert_array_equal(entry.values, ITEMS)  # its own copy


def test_users_with_names() -> None:
    users = [{"city": city, "age": age} for city, age in (("Rome", 3), ("Oslo", 4), ("Rome", 5))]
    reader = OfferReader()
    sets = reader.rows([(user, ITEMS) for user in users])
    assert sets.shared is not None
    assert sets.shared.shape[0] == 3
    np.testing.assert_array_equal(reader.entry((users[1], ITEMS)).shared[0], sets.shared[1])
    assert [field.name for field in reader.schema.fields] == ["city", "age"]
