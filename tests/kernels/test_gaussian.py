"""The objective of real-valued actions in the compiled core, beside `PolicyValue`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from o2pl.kernels import linear
from o2pl.kernels.dense import dense_plan
from o2pl.kernels.gaussian import gaussian_value
from o2pl.objectives import PessimisticLog, Phi, PolicyValue
from o2pl.policies import Gaussian

ROWS = 256


def rows_case(seed: int, n: int, alpha: float, policy: Gaussian) -> tuple[Any, Any, Any]:
    generator = np.random.default_rng(seed)
    d = int(generator.integers(1, 12))
    actions, losses, baseline = generator.normal(size=n), -generator.random(n), -generator.random(n)
    phi = Phi(alpha, n, 3.0, 0.5, 0.7)
    log = PessimisticLog(actions, losses, generator.uniform(0.05, 3, size=n), alpha, phi, baseline, None, 0.3)
    return generator.normal(size=(n, d)).astype(np.float32), log, 0.4 * generator.normal(size=policy.n_params(d))


def same(policy: Gaussian, features: Any, log: Any, params: Any) -> Any:
    fast = gaussian_value(log, features, dense_plan(features.shape[1]), policy)
    (value, gradient), (expected, slow) = fast(params), PolicyValue(policy, features.astype(float), log)(params)
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-13)
    np.testing.assert_allclose(gradient, slow, rtol=1e-9, atol=1e-12)
    return gradient


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.sampled_from([1, 2, ROWS - 1, ROWS, ROWS + 1, 5000]),
    alpha=st.sampled_from([1.0, 1.5, 6.0, math.inf]),
    learn_scale=st.booleans(),
    block=st.sampled_from([1, 2**18]),
)
def test_any_number_of_rows(seed: int, n: int, alpha: float, learn_scale: bool, block: int) -> None:
    policy = Gaussian(0.2, 0.6, learn_scale)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear, "BLOCK", block)
        same(policy, *rows_case(seed, n, alpha, policy))


def test_edges() -> None:
    policy = Gaussian(0.0, 1.0, True)
    features, log, params = rows_case(2, 50, 1.5, policy)
    sure = PessimisticLog(log.actions, log.losses, np.full(50, 1e-200), 1.5, Phi(1.5, 50, 3.0))
    assert not same(policy, features, sure, params).any()  # all rows are clipped
    far = Gaussian(1e3, 0.01)  # far from the log a density is 0, and so is the gradient
    features, log, params = rows_case(3, 300, 4.0, far)
    np.testing.assert_allclose(same(far, features, log, params), 0.3 / 300 * params)


def test_the_gradient_is_that_of_finite_differences() -> None:
    policy = Gaussian(0.1, 0.8, True)
    features, log, params = rows_case(6, 40, 1e3, policy)
    fast = gaussian_value(log, features, dense_plan(features.shape[1]), policy)
    units = 1e-6 * np.eye(len(params))
    slow = np.array([(fast(params + e)[0] - fast(params - e)[0]) / 2e-6 for e in units])
    np.testing.assert_allclose(fast(params)[1], slow, rtol=1e-5, atol=1e-7)
