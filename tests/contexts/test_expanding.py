"""Features and their products as indices and values; readers call these kernels: see test_dictionaries."""

from __future__ import annotations

import itertools

import numpy as np

from o2pl.contexts import DictionaryReader
from o2pl.contexts.expanding import LARGEST, crossed_hash, crossed_value, write_row
from o2pl.contexts.names import name_hash

CONTEXT = {"user": {"id": "u17", "age": 31, "vip": True}, "tags": ["a", "b", "a"], "hour": 7, "embedding": [0.5, -2.0]}


def test_a_row_is_written_where_there_is_room_and_nowhere_else() -> None:
    entry = DictionaryReader(18).entry(CONTEXT)
    for room, rows in ((8, 3), (9, 1)):
        offsets, indices, values = np.zeros(rows, np.int64), np.full(room, -1, np.int32), np.zeros(room, np.float32)
        assert not write_row(*entry, 0, offsets, indices, values)
        assert (indices == -1).all()
    offsets, indices, values = np.zeros(2, np.int64), np.empty(9, np.int32), np.empty(9, np.float32)
    assert write_row(*entry, 0, offsets, indices, values)
    assert offsets.tolist() == [0, 9]


def test_the_hash_of_a_product_depends_on_the_order_and_its_value_is_finite() -> None:
    numbers = [np.uint32(name_hash(name)) for name in "abcde"]
    found = {crossed_hash(a, b) for a, b in itertools.permutations(numbers, 2)}
    assert len(found) == 20
    assert crossed_value(np.float32(2), np.float32(-3)) == -6
    assert crossed_value(np.float32(1e30), np.float32(-1e30)) == -np.float32(LARGEST)
