"""What every policy must do is in test_contracts; here, what is this one's own."""

from __future__ import annotations

import numpy as np
import pytest

from o2pl.policies import Softmax
from o2pl.policies.likelihood import probabilities
from o2pl.protocols import Floats


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_the_definition_in_the_precision_of_the_features(dtype: type) -> None:
    generator = np.random.default_rng(0)
    W: Floats = generator.normal(size=(4, 3)).astype(dtype)
    x: Floats = generator.normal(size=(50, 3)).astype(dtype)
    expected = x.astype(np.float64) @ W.T.astype(np.float64)
    tolerance = 2e-6 if dtype is np.float32 else 1e-12
    np.testing.assert_allclose(Softmax(4).scores(W.reshape(-1), x), expected, rtol=tolerance, atol=tolerance)
    scores, pullback = Softmax(4).forward(W.reshape(-1).astype(np.float64), x, np.zeros(50, int))
    assert scores.dtype == dtype
    assert pullback(scores).dtype == np.float64
    np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=tolerance)
    raised = np.exp(expected - expected.max(axis=1, keepdims=True))
    pi = raised / raised.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities(Softmax(4), W.reshape(-1), x), pi, rtol=4 * tolerance)
