"""Arrays in fewer bytes are the same arrays again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl.engine.shortening import GRID, restored_from_shortened, shortened


@pytest.mark.parametrize(
    ("name", "array", "kind"),
    [
        ("member0.params", np.array([1.0, -3.0, 0.0, 100.0]) / GRID, np.int8),
        ("member0.params", np.array([1.0, -30000.0, 0.0]) / GRID, np.int16),
        ("member0.params", np.array([0.1, 0.2]), np.float64),  # not on the grid
        ("member0.params", np.array([1e9, 0.25]), np.float64),  # too large
        ("member0.params", np.array([np.nan, 0.25]), np.float64),
        ("member0.seen.feature", np.array([0, 3, 4, 90, 260000], np.int32), np.int32),
        ("member0.seen.feature", np.array([7, 3, 40, 90], np.int32), np.int8),  # the first one is the constant's
        ("member0.seen.feature", np.array([0, 3, 2], np.int32), np.int32),  # not ascending
        ("member0.seen.scale", np.array([[0, 1]], np.float32), np.float32),
    ],
)
def test_arrays_come_back_as_they_were(name: str, array: Any, kind: Any) -> None:
    header, short = shortened({"class": "Decider"}, {name: array})
    assert short[name].dtype == kind
    again = restored_from_shortened(header, short)[name]
    assert again.dtype == array.dtype
    assert np.array_equal(again, array, equal_nan=array.dtype.kind == "f")


def test_what_is_not_shortened_stays() -> None:
    header, short = shortened({}, {"acting": np.ones(3)})
    assert "short" not in header
    assert restored_from_shortened(header, short)["acting"].tolist() == [1.0, 1.0, 1.0]
