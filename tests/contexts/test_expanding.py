"""Features and their products as indices and values; readers call these functions: see test_dictionaries."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from o2pl import _core
from o2pl.contexts import DictionaryReader
from o2pl.contexts.names import name_hash

CONTEXT = {"user": {"id": "u17", "age": 31, "vip": True}, "tags": ["a", "b", "a"], "hour": 7, "embedding": [0.5, -2.0]}
LARGEST = np.finfo(np.float32).max


def test_a_row_is_written_where_there_is_room_and_nowhere_else() -> None:
    entry = DictionaryReader(18).entry(CONTEXT)
    for room, rows in ((8, 3), (9, 1)):
        offsets, indices, values = np.zeros(rows, np.int64), np.full(room, -1, np.int32), np.zeros(room, np.float32)
        assert not _core.write_row(*entry, 0, offsets, indices, values)
        assert (indices == -1).all()
    offsets, indices, values = np.zeros(2, np.int64), np.empty(9, np.int32), np.empty(9, np.float32)
    assert _core.write_row(*entry, 0, offsets, indices, values)
    assert offsets.tolist() == [0, 9]


def test_the_hash_of_a_product_depends_on_the_order_and_its_value_is_finite() -> None:
    numbers = [name_hash(name) for name in "abcde"]
    assert len({_core.crossed_hash(a, b) for a, b in itertools.permutations(numbers, 2)}) == 20
    reader = DictionaryReader(18, interactions=(("a", "b"),))
    assert reader.row({"a": 2.0, "b": -3.0}).values[-1] == -6
    assert reader.row({"a": 1e30, "b": -1e30}).values[-1] == -LARGEST


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        (1, [[0, 10]]),  # a segment beyond the features
        (1, [[-1, 2]]),
        (1, [[3, 2]]),
        (2, [[0, 1]]),  # a pair of an unknown namespace
        (2, [[-1, 0]]),
        (0, np.zeros((3, 3), np.uint32)),
        (5, -1),
    ],
)
def test_what_would_be_read_beyond_an_array_is_refused(place: int, wrong: Any) -> None:
    entry: list[Any] = [*DictionaryReader(18).entry(CONTEXT), 0]
    entry[place] = np.array(wrong, np.int64) if isinstance(wrong, list) else wrong
    with pytest.raises(ValueError, match=r"expected|found"):
        _core.write_row(*entry, np.zeros(2, np.int64), np.empty(9, np.int32), np.empty(9, np.float32))


def test_offsets_beyond_the_features_are_refused() -> None:
    features, segments, pairs = np.zeros((4, 2), np.uint32), np.zeros((2, 1, 2), np.int64), np.empty((0, 2), np.int64)
    assert _core.expanded_rows(features, np.array([0, 1, 4]), segments, pairs, 7, False)[2].tolist() == [0, 1, 4]
    for ends in ([0, 1, 5], [-1, 0, 4], [0, 3, 2]):
        with pytest.raises(ValueError, match="offsets"):
            _core.expanded_rows(features, np.array(ends), segments, pairs, 7, False)
    with pytest.raises(ValueError, match="segments"):
        _core.expanded_rows(features, np.array([0, 4]), segments, pairs, 7, False)
