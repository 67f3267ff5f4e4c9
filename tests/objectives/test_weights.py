from __future__ import annotations

import numpy as np
import pytest

from o2pl import _core
from o2pl.objectives.weights import (
    clip_weights,
    clipped_moments,
    clipped_sums,
    importance_weights,
    policy_weights,
    split_cotangent,
    weight_cotangent,
    weight_of,
)
from o2pl.protocols import Floats


def test_weights_too_large_for_a_number_are_infinite_not_an_error() -> None:
    assert importance_weights(np.array([0.0, 800.0]), np.array([0.5, 1e-300])).tolist() == [2.0, np.inf]


def test_weights_of_likelihoods() -> None:
    likelihoods, q = np.array([0.0, 0.2, 1.0]), np.array([0.5, 0.4, 1e-3])
    np.testing.assert_allclose(policy_weights(likelihoods, q), [0, 0.5, 1000])
    np.testing.assert_array_equal(weight_of(likelihoods, q), [0, 0.5, 1000])
    np.testing.assert_array_equal(clip_weights(np.array([0.5, 3.0, np.inf]), 2.0), [0.5, 2, 2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moments_and_cotangent_equal_a_loop(dtype: type) -> None:
    """Also where weights are infinite; the cotangent is that of R̂ + slope σ̂²."""
    generator = np.random.default_rng(0)
    w: Floats = np.append(generator.exponential(1.5, 40), [np.inf, 2.5]).astype(dtype)
    e: Floats = generator.normal(size=42).astype(dtype)
    alpha, slope = 2.5, 0.7
    cut = [min(float(each), alpha) - 1 for each in w]
    risk, variance = clipped_moments(w, e, alpha)
    assert risk == pytest.approx(sum(c * float(y) for c, y in zip(cut, e, strict=True)) / 42, rel=1e-6)
    assert variance == pytest.approx(sum(c * c for c in cut) / 42, rel=1e-6)
    slow = [
        float(x) * (float(y) + 2 * slope * (float(x) - 1)) / 42 if x < alpha else 0 for x, y in zip(w, e, strict=True)
    ]
    of_losses, of_weights = split_cotangent(w, e, alpha)
    whole = weight_cotangent(w, e, alpha, slope, 42)
    np.testing.assert_allclose(whole, slow, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose((of_losses + slope * of_weights) / 42, slow, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 43])
def test_the_compiled_sums_are_the_same(n: int) -> None:
    generator = np.random.default_rng(n)
    w, e = generator.exponential(1.5, n), generator.normal(size=n)
    w[: n // 6] = np.inf
    np.testing.assert_allclose(_core.clipped_sums(w, e, 2.5), clipped_sums(w, e, 2.5), rtol=1e-12, atol=1e-12)


def test_sums_of_arrays_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="found 2 rows, expected 3"):
        _core.clipped_sums(np.ones(3), np.ones(2), 2.0)
