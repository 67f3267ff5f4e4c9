from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl.features import Chain, Fourier, Intercept, Quadratic, Standardise
from o2pl.features.blocks import fill, pick, recipe

MAPS: dict[str, Any] = {
    "nothing": Chain(()),
    "intercept": Intercept(),
    "standardised": Standardise(clip=1.5),
    "linear": Chain((Standardise(), Intercept())),
    "quadratic": Chain((Standardise(), Quadratic(), Intercept())),
    "products of raw contexts": Quadratic(),
    "products of directions": Chain((Standardise(), Quadratic(most=3, projected=2), Intercept())),
    "not one of the known": Chain((Fourier(5), Standardise())),
    "in an order of its own": Chain((Intercept(), Standardise())),
}


@pytest.mark.parametrize("d", [1, 3, 4, 6])
@pytest.mark.parametrize("name", MAPS)
def test_blocks_hold_the_features_that_the_map_makes(name: str, d: int) -> None:
    generator, features = np.random.default_rng(0), MAPS[name]
    x = generator.normal(2, 3, size=(29, d)).astype(np.float32)
    x[:, 0] = x[:, 0] > 2  # a column of zeros and ones
    seen = features.observe(features.init(d), x[:20])
    expected, made = features.transform(seen, x), recipe(features, seen, x)
    assert made.width == expected.shape[1] == features.width(d)
    for start, rows, room in ((0, 29, 29), (3, 8, 8), (5, 7, 12), (28, 1, 4), (2, 3, 3)):
        block = np.full((made.width, room), np.nan, np.float32)
        fill(made, start, rows, block)
        np.testing.assert_allclose(block[:, :rows].T, expected[start : start + rows], rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(block[:, rows:], 0)
    places = generator.integers(29, size=9)
    block = np.empty((made.width, 9), np.float32)
    pick(made, places, block)
    np.testing.assert_allclose(block.T, expected[places], rtol=1e-5, atol=1e-5)
