from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl.data.contexts import ActionSets
from o2pl.encode.dictionaries import DictionaryReader
from o2pl.encode.names import name_hash
from o2pl.errors import InvalidInput

CONTEXT: dict[str, Any] = {
    "user": {"id": "u17", "age": 31, "vip": True, "email": None},
    "tags": ["a", "b", "a"],
    "hour": 7,
    "embedding": [0.5, -2.0],
}


def test_sparse_rows_slice_and_densify() -> None:
    rows = DictionaryReader(bits=6).rows([CONTEXT, {}, {"tags": ["a", "a"]}, {"hour": 3}])
    dense = rows.dense()
    assert dense.shape == (4, 64)
    assert dense[2, name_hash("tags=a") % 64] == 2
    for cut in (slice(1, 3), slice(0, 0), slice(3, 1), slice(-1, None), slice(None)):
        np.testing.assert_array_equal(rows[cut].dense(), dense[cut])


def test_action_sets_of_unlike_width_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"action set 1: found shape \(2, 3\), expected \(number of actions, 2\)"):
        ActionSets.of([np.zeros((4, 2)), np.zeros((2, 3))])


def test_action_sets_of_other_things_are_refused_by_name() -> None:
    for given, said in (
        ([{"a": 1.0}], 'action set 0: found a dictionary, expected a matrix, .* policy="hashed actionwise"'),
        ([np.ones((2, 2)), {"a": 1.0}], "action set 1: found a dictionary"),
        ([3.0], r"action set 0: found shape \(\), expected \(number of actions, features\)"),
    ):
        with pytest.raises(InvalidInput, match=said):
            ActionSets.of(given)
