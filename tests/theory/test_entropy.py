from __future__ import annotations

import math

import numpy as np
import pytest

from o2pl import InvalidInput, policies
from o2pl.policies import Gaussian, Softmax
from o2pl.policies.likelihood import log_probabilities
from o2pl.theory import (
    ENTROPY_EXPONENTS,
    finite_entropy,
    gaussian_entropy,
    smooth_entropy_exponent,
    softmax_entropy,
)


def test_every_shipped_policy_has_an_exponent() -> None:
    shipped = {name for name in policies.__all__ if isinstance(getattr(policies, name), type)}
    assert shipped - set(ENTROPY_EXPONENTS) == {"UniformMixture", "Cells", "Curve"}


def test_the_lipschitz_constants_behind_the_covers() -> None:
    """|log π_θ - log π_θ'| is never above the constant times |θ - θ'|, and a cover of so fine a grid has that size."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(50, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)  # |φ| = 1
    softmax, worst = Softmax(4), 0.0
    for _ in range(200):
        first, other = (generator.normal(size=softmax.n_params(3)) for _ in range(2))
        gap = np.abs(log_probabilities(softmax, first, x)[0] - log_probabilities(softmax, other, x)[0]).max()
        apart = np.linalg.norm((first - other).reshape(4, 3), axis=1).max()
        worst = max(worst, gap / apart)
    assert worst <= 2
    assert softmax_entropy(0.1, 12, 1.0, 5.0) == pytest.approx(12 * math.log(1 + 2 * 2 * 5.0 / 0.1))
    S, A = 1.5, 2.0
    gaussian, actions, lipschitz = Gaussian(scale=0.5), generator.uniform(-A, A, 50), 0.0
    for _ in range(200):
        first, other = (v * generator.random() * S / np.linalg.norm(v) for v in generator.normal(size=(2, 3)))
        gap = np.abs(gaussian.forward(first, x, actions)[0] - gaussian.forward(other, x, actions)[0]).max()
        lipschitz = max(lipschitz, gap / np.linalg.norm(first - other))
    bound = (A + S) / 0.5**2
    assert 0.4 * bound < lipschitz <= bound
    assert gaussian_entropy(0.1, 3, 1.0, S, A, 0.5) == pytest.approx(3 * math.log(1 + 2 * bound * S / 0.1))
    assert finite_entropy(8) == pytest.approx(math.log(8))
    assert smooth_entropy_exponent(3, 2.0) == 1.5


def test_wrong_input_is_refused() -> None:
    with pytest.raises(InvalidInput, match="below 2"):
        smooth_entropy_exponent(4, 2.0)
    with pytest.raises(InvalidInput, match="eps"):
        softmax_entropy(0.0, 3, 1.0, 1.0)
