from __future__ import annotations

import numpy as np
from tests.features.cases import rows

from o2pl.data.interactions import Interactions
from o2pl.engine.member import FeatureState
from o2pl.engine.schedules import Geometric
from o2pl.features import Chain, Intercept, Settled, Standardise
from o2pl.features.plan import feature_plan, planned_features

MAP = Chain((Standardise(), Intercept()))


def test_it_is_the_map_inside() -> None:
    settled, x = Settled(MAP), rows()
    state, inner = settled.observe(settled.init(4), x), MAP.observe(MAP.init(4), x)
    np.testing.assert_array_equal(settled.transform(state, x), MAP.transform(inner, x))
    plan = feature_plan(settled, state, 4)
    assert plan is not None
    np.testing.assert_allclose(planned_features(plan, x), settled.transform(state, x), atol=1e-5)
    assert settled.width(4) == 5


def test_it_is_shown_rows_only_when_they_have_doubled() -> None:
    x = rows()
    log = Interactions(x, np.zeros(200), np.zeros(200), np.ones(200), continuous=True)
    settled = Settled(MAP)
    seen, at = FeatureState(settled, Geometric(), settled.init(4)), []
    for n in range(1, 201):
        seen.observe(log[:n])
        at.append(int(seen.state["settled"][0]))
    assert sorted(set(at)) == [1, 2, 4, 8, 16, 32, 64, 128]
    whole = settled.observe(settled.init(4), x[:128])
    for name, array in whole.items():
        np.testing.assert_array_equal(seen.state[name], array)
