from __future__ import annotations

import numpy as np
import pytest

from o2pl import InvalidInput
from o2pl.data.interactions import Interactions
from o2pl.objectives import LeastSquares, PolicyValue
from o2pl.policies import Cells, Curve


@pytest.mark.parametrize("weighed", [False, True])
def test_value_and_gradient(weighed: bool) -> None:
    generator, policy = np.random.default_rng(0), Curve(Cells((0.0, 2.0), 4), inputs=2, draws=1)
    x = np.column_stack([np.ones(30), generator.normal(size=(30, 2))])
    rows = Interactions(x, generator.uniform(0, 2, 30), 3 * generator.random(30), np.ones(30), (0, 3), continuous=True)
    weights = generator.random(30) if weighed else None
    log, params = LeastSquares(0.7).prepare(rows, None, weights), generator.normal(size=policy.n_params(3))
    function = PolicyValue(policy, x, log, stretch=7)
    value, gradient = function(params)
    off = policy.forward(params, x, rows.actions)[0] - rows.rewards / 3
    assert value == pytest.approx(
        np.average(off**2, weights=weights) / 2 + 0.7 * params @ params / (2 * log.size), rel=1e-12
    )
    steps = 1e-6 * np.eye(len(params))
    slow = [(function(params + step)[0] - function(params - step)[0]) / 2e-6 for step in steps]
    np.testing.assert_allclose(gradient, slow, atol=1e-7)


def test_no_shrinking_is_refused() -> None:
    with pytest.raises(InvalidInput, match="l2"):
        LeastSquares(0.0)
