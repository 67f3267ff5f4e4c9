from __future__ import annotations

import numpy as np
from tests.evaluation.slow_sequences import slow_plugin, slow_realized

from o2pl.evaluation.bernstein import plugin_bernstein_lower, realized_bernstein_lower


def test_bounds_equal_their_formulas_for_values_without_an_upper_limit() -> None:
    y = np.random.default_rng(0).exponential(0.7, 150)
    np.testing.assert_allclose(plugin_bernstein_lower(y, 0.1), slow_plugin(y, 0.1), atol=1e-9)
    average = realized_bernstein_lower(y, 0.1, common=False)
    np.testing.assert_allclose(average, slow_realized(y, 0.1), atol=1e-9)
    np.testing.assert_array_equal(realized_bernstein_lower(y, 0.1), np.maximum.accumulate(average))
