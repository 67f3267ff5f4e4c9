"""The kernel of action sets beside `PolicyValue`, for sets of any size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from o2pl.data.contexts import ActionSets
from o2pl.kernels import linear
from o2pl.kernels.actionwise import actionwise_value
from o2pl.kernels.dense import dense_plan
from o2pl.objectives import PessimisticLog, Phi, PolicyValue
from o2pl.policies import ActionWise

ROWS = 256


def sets_case(seed: int, n: int, largest: int, alpha: float, spread: float = 1.0) -> tuple[Any, Any, Any]:
    """Features, log and parameters; sets of one action among them."""
    generator = np.random.default_rng(seed)
    d = int(generator.integers(1, 12))
    sizes = generator.integers(1, largest + 1, size=n)
    values = spread * generator.normal(size=(sizes.sum(), d)).astype(np.float32)
    features = ActionSets(values, np.concatenate([[0], np.cumsum(sizes)]))
    phi, losses = Phi(alpha, n, 3.0, 0.5, 0.7), -generator.random(n)
    propensities = generator.uniform(0.02, 1, size=n)
    log = PessimisticLog(
        generator.integers(sizes), losses, propensities, alpha, phi, -0.3, None, 0.3, features.offsets
    )  # fmt: skip
    return features, log, generator.normal(size=d)


def fused(log: PessimisticLog, features: ActionSets) -> Any:
    return actionwise_value(log, features.values, dense_plan(features.values.shape[1]), features.offsets)


def same(features: Any, log: Any, params: Any) -> Any:
    before = params.copy()
    (value, gradient), (expected, slow) = (
        f(params) for f in (fused(log, features), PolicyValue(ActionWise(), features, log))
    )
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(gradient, slow, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(params, before)
    return gradient


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.sampled_from([1, 2, 17, 150, 700]),
    largest=st.sampled_from([1, 3, 20, 2 * ROWS]),
    alpha=st.sampled_from([1.0, 1.5, 6.0, math.inf]),
    block=st.sampled_from([1, 2**18]),
)
def test_sets_of_any_size(seed: int, n: int, largest: int, alpha: float, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear, "BLOCK", block)
        same(*sets_case(seed, min(n, 20) if largest > ROWS else n, largest, alpha))


def test_edges() -> None:
    features, log, params = sets_case(1, 50, 6, 1.0)
    sure = PessimisticLog(
        log.actions, log.losses, np.full(50, 1e-9), 1.5, Phi(1.5, 50, 3.0), offsets=features.offsets
    )  # fmt: skip
    assert not same(features, sure, params).any()  # all rows are clipped
    with np.errstate(divide="ignore"):
        same(*sets_case(4, 60, 8, 4.0, spread=600.0))  # probabilities of 0


def test_the_gradient_is_that_of_finite_differences() -> None:
    features, log, params = sets_case(5, 40, 7, 1e3)
    fast = fused(log, features)
    units = 1e-6 * np.eye(len(params))
    slow = np.array([(fast(params + e)[0] - fast(params - e)[0]) / 2e-6 for e in units])
    np.testing.assert_allclose(fast(params)[1], slow, rtol=1e-5, atol=1e-7)
