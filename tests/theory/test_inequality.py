from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binom

from o2pl import InvalidInput
from o2pl.theory.inequality import (
    clipping_bias_bound,
    crossing_bound,
    crossing_frequency,
    deviation,
    peeled_deviation,
    refutes,
    sharp_clipping_bias_bound,
    sharper_crossing_bound,
)

PAIRS = [(0.5, 2.0, 1.0), (3.0, 2.0, 1.0), (8.0, 30.0, 0.5), (20.0, 4.0, 3.0)]


@pytest.mark.parametrize(("u", "v", "bound"), PAIRS)
def test_the_bound_against_its_proof(u: float, v: float, bound: float) -> None:
    """Step 4: the minimum over 0 < λ ≤ 1/(2B), found numerically, is the sharper bound, below the stated one."""
    best = minimize_scalar(lambda s: -s * u + s**2 * v, bounds=(0, 1 / (2 * bound)), options={"xatol": 1e-12})
    assert sharper_crossing_bound(u, v, bound) == pytest.approx(np.exp(best.fun), rel=1e-6)
    assert sharper_crossing_bound(u, v, bound) <= crossing_bound(u, v, bound)
    assert crossing_bound(u, v, bound) == pytest.approx(np.exp(-u * u / (4 * v + 4 * bound * u)))


def test_deviation_inverts_the_bound() -> None:
    v = np.array([0.1, 5.0, 300.0])
    for delta in (0.5, 0.01, 1e-6):
        np.testing.assert_allclose(crossing_bound(deviation(v, 2.0, delta), v, 2.0), delta)


def test_the_guarantee_on_a_random_walk() -> None:
    """Signs: S_j = j, so the exact crossing probability is that of a walk's maximum over v steps (reflection)."""
    paths, v = 20_000, 25.0
    u = deviation(np.array([v, v]), 1.0, 0.5) * np.array([0.5, 1.0])

    def step(M: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return np.where(generator.random(len(M)) < 0.5, 1.0, -1.0), np.zeros(len(M))

    shares = crossing_frequency(step, u, np.array([v, v]), paths, 60, np.random.default_rng(0))
    for level, share in zip(u, shares, strict=True):
        k = int(np.ceil(level))
        heads = np.arange(26)
        ends = 2 * heads - 25
        exact = binom.pmf(heads, 25, 0.5) @ (1.0 * (ends >= k) + (ends > k))  # P(max ≥ k) = P(S ≥ k) + P(S > k)
        assert abs(share - exact) < 4 * np.sqrt(exact * (1 - exact) / paths)
        assert not refutes(round(share * paths), paths, float(crossing_bound(level, v, 1.0)), 1e-4)


def test_refutes() -> None:
    assert refutes(150, 1000, 0.1, 1e-4)
    assert not refutes(110, 1000, 0.1, 1e-4)
    assert not refutes(0, 1000, 0.1, 1e-4)


def test_the_clipping_lemma_is_four_times_loose() -> None:
    w = np.linspace(0, 60, 10_001)
    for alpha in (1.2, 2.0, 7.0):
        over = np.maximum(w - alpha, 0)
        assert (over <= sharp_clipping_bias_bound((w - 1) ** 2, alpha) + 1e-12).all()
        touch = 2 * alpha - 1
        assert touch - alpha == pytest.approx(sharp_clipping_bias_bound((touch - 1) ** 2, alpha))
        np.testing.assert_allclose(sharp_clipping_bias_bound(w, alpha) * 4, clipping_bias_bound(w, alpha))
    assert clipping_bias_bound(2.0, 5.0) == pytest.approx(0.5)


def test_wrong_input_is_refused() -> None:
    with pytest.raises(InvalidInput, match="bound"):
        crossing_bound(1.0, 1.0, 0.0)
    with pytest.raises(InvalidInput, match="v: found"):
        sharper_crossing_bound(1.0, -1.0, 1.0)
    with pytest.raises(InvalidInput, match="delta"):
        deviation(1.0, 1.0, 1.0)
    with pytest.raises(InvalidInput, match="alpha"):
        clipping_bias_bound(1.0, 1.0)


def test_peeling_costs_little_over_one_variation() -> None:
    """Never below what Prop. B.1's proof gives for v known; above its stated bound by the shells' logarithm only."""
    for v in (0.5, 10.0, 1e4, 1e9):
        u = peeled_deviation(v, 2.0, 0.05)
        slopes = np.geomspace(1e-9, 1 / 4, 4000)
        assert u > (math.log(1 / 0.05) / slopes + slopes * v).min()
        k = np.arange(200)
        lines = np.log((k + 1) * (k + 2) / 0.05) * 4 * 2 ** (k / 2) + v / 4 * 2 ** (-k / 2)
        assert u == pytest.approx(lines.min(), rel=1e-12)
        shell = 1 + max(0.0, math.log2(v / 4))
        assert u < 1.1 * deviation(v, 2.0, 0.05 / ((shell + 1) * (shell + 2)))
