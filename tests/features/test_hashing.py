"""Hashed features: settings, slots in the order of appearance, and the scale of what a slot has held."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from o2pl import InvalidInput
from o2pl.data.contexts import SparseRows
from o2pl.encode.dictionaries import DictionaryReader
from o2pl.features import Hashed
from o2pl.storage import decode_from_storage, encode_for_storage


@pytest.mark.parametrize(
    "settings",
    [{"bits": 0}, {"bits": 27}, {"bits": 3.5}, {"bits": True}, {"interactions": "ab"}, {"interactions": (("a",),)}],
)
def test_bad_settings(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="expected"):
        Hashed(**settings)


def test_settings_can_be_stored() -> None:
    features = Hashed(bits=10, signed=True, interactions=[("a", "b")])  # lists will do
    assert decode_from_storage(encode_for_storage(features)) == features
    assert features.interactions == (("a", "b"),)


def rows_of(*rows: dict[int, float]) -> SparseRows:
    """Of {index: value}."""
    indices = np.array([i for row in rows for i in row], np.int32)
    values = np.array([v for row in rows for v in row.values()], np.float32)
    return SparseRows(indices, values, np.cumsum([0] + [len(row) for row in rows]), 16)


def as_dicts(rows: SparseRows) -> list[dict[int, float]]:
    ends = rows.offsets
    return [dict(zip(rows.indices[a:b].tolist(), rows.values[a:b].tolist(), strict=True)) for a, b in pairwise(ends)]


def test_features_get_slots_as_they_appear_and_keep_them() -> None:
    features = Hashed(bits=4)
    empty = features.init(16)
    assert features.width(16) == features.width(16, empty) == 1
    first = features.observe(empty, rows_of({9: 1.0, 3: 1.0}, {3: 1.0}))
    second = features.observe(first, rows_of({5: 1.0, 9: 1.0}))
    assert (features.width(16, first), features.width(16, second)) == (3, 4)
    assert second["feature"].tolist() == [0, 9, 3, 5]
    batch = rows_of({5: 1.0, 3: 1.0, 7: 1.0}, {})
    assert as_dicts(features.transform(second, batch)) == [{0: 1.0, 3: 1.0, 2: 1.0}, {0: 1.0}]
    assert as_dicts(features.transform(first, batch)) == [{0: 1.0, 2: 1.0}, {0: 1.0}]  # the old state stays
    assert as_dicts(features.transform(empty, batch)) == [{0: 1.0}, {0: 1.0}]
    assert features.transform(second, batch).width == 4


def test_numbers_are_standardised_over_the_rows_that_have_them_and_words_are_left_alone() -> None:
    features = Hashed(bits=4)
    numbers = [2.0, 4.0, 9.0]
    seen = features.init(16)
    for value in numbers:  # one by one, as in one batch
        seen = features.observe(seen, rows_of({1: value, 2: 1.0}, {2: -1.0}))
    at_once = features.observe(features.init(16), rows_of(*[r for v in numbers for r in ({1: v, 2: 1.0}, {2: -1.0})]))
    for name in ("feature", "count", "plain"):
        np.testing.assert_array_equal(seen[name], at_once[name])
    np.testing.assert_allclose(seen["scale"], at_once["scale"], rtol=1e-6)
    mean, deviation = np.mean(numbers), np.std(numbers)
    (found,) = as_dicts(features.transform(seen, rows_of({1: 7.0, 2: 1.0})))
    assert found[1] == pytest.approx((7 - mean) / deviation, rel=1e-5)
    assert found[2] == 1.0
    (far,) = as_dicts(features.transform(seen, rows_of({1: 1e6})))
    assert far[1] == 5.0


def test_a_state_from_a_file_lacks_the_table_and_makes_it_again() -> None:
    features = Hashed(bits=8)
    rows = DictionaryReader(8).rows([{"a": f"w{i}", "x": float(i)} for i in range(30)])
    seen = features.observe(features.init(256), rows)
    kept = {name: array for name, array in seen.items() if not name.startswith("_")}
    np.testing.assert_array_equal(features.slot_of(kept), features.slot_of(seen))
    np.testing.assert_array_equal(features.transform(kept, rows).dense(), features.transform(seen, rows).dense())


def test_indices_beyond_the_table_are_refused() -> None:
    features = Hashed(bits=4)
    seen = features.observe(features.init(16), rows_of({3: 1.0}))
    for index in (16, -1, 2**30):
        for use in (features.observe, features.transform):
            with pytest.raises(ValueError, match="beyond the table"):
                use(seen, rows_of({index: 1.0}))
    old = features.init(16)
    features.observe(old, rows_of({1: 1.0, 2: 1.0}))
    with pytest.raises(ValueError, match="without moments"):  # the table has a later state's slot
        features.observe(old, rows_of({2: 1.0}))
