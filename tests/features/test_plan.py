from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl.features import Chain, Fourier, Intercept, Quadratic, Standardise
from o2pl.features.plan import feature_plan, planned_features

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

UNKNOWN = ("not one of the known", "in an order of its own")


@pytest.mark.parametrize("d", [1, 3, 4, 6])
@pytest.mark.parametrize("name", MAPS)
def test_planned_features_are_those_that_the_map_makes(name: str, d: int) -> None:
    generator, features = np.random.default_rng(0), MAPS[name]
    x = generator.normal(2, 3, size=(29, d)).astype(np.float32)
    x[:, 0] = x[:, 0] > 2  # a column of zeros and ones
    seen = features.observe(features.init(d), x[:20])
    expected, plan = features.transform(seen, x), feature_plan(features, seen, d)
    if name in UNKNOWN:
        assert plan is None
        return
    assert plan is not None
    assert plan.width == expected.shape[1] == features.width(d)
    found = planned_features(plan, x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    for rows in (slice(3, 11), slice(28, 29), generator.integers(29, size=9)):  # a row's features are its own alone
        np.testing.assert_array_equal(planned_features(plan, x[rows]), found[rows])
    assert planned_features(plan, x[:0]).shape == (0, plan.width)
