"""`smaller` and `larger` beside `min` and `max` in kernels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numba import njit

from o2pl.compiled import make_kernels
from o2pl.compiled.comparing import larger, smaller

make_kernels()

NUMBERS = (-1.5, -0.0, 0.0, 2.0, np.inf, -np.inf, np.nan)


@njit
def ours(a, b):  # type: ignore[no-untyped-def]
    return smaller(a, b), larger(a, b)


@njit
def numbas(a, b):  # type: ignore[no-untyped-def]
    return min(a, b), max(a, b)


@pytest.mark.parametrize("kinds", [(np.float64, np.float64), (np.float32, np.float64), (np.float32, np.float32)])
def test_they_are_min_and_max_with_nan_and_signed_zeros(kinds: tuple[type, type]) -> None:
    for a, b in itertools.product(NUMBERS, NUMBERS):
        pair = kinds[0](a), kinds[1](b)
        assert np.array(ours(*pair)).tobytes() == np.array(numbas(*pair)).tobytes()


def test_integers_stay_integers() -> None:
    assert ours(3, -2) == (-2, 3)
    assert all(isinstance(number, int) for number in ours(3, -2))
