from __future__ import annotations

import math

import numpy as np
import pytest

from o2pl import InvalidInput, policies
from o2pl.objectives import Phi
from o2pl.policies import Gaussian, Softmax
from o2pl.theory import (
    ENTROPY_EXPONENTS,
    balance_radius,
    closed_form_radius,
    complexity,
    critical_radius,
    deviation,
    finite_class_bound,
    finite_entropy,
    finite_family_maximum,
    gaussian_entropy,
    holder_exponent,
    maximal_deviation,
    overlap_regret_exponent,
    peeled_deviation,
    regret_exponent,
    regret_rate,
    self_normalised_bound,
    softmax_entropy,
)
from o2pl.theory.inequality import refutes


@pytest.mark.parametrize("p", [0.3, 1.0, 1.9])
@pytest.mark.parametrize("alpha", [1.5, 40.0])
def test_the_closed_form_radius_is_the_numerical_one(alpha: float, p: float) -> None:
    for t in (10.0, 1e4, 1e9):
        assert closed_form_radius(alpha, t, p) == pytest.approx(critical_radius(alpha, t, p), rel=1e-9)


def test_the_closed_form_at_p_0_solves_the_papers_equation() -> None:
    for alpha, t in ((2.0, 1e3), (20.0, 1e6)):
        r = closed_form_radius(alpha, t, 0.0)
        log = math.log(math.e / r)
        assert alpha / t * log + r * math.sqrt(log / t) == pytest.approx(r * r, rel=1e-9)
        assert r == pytest.approx(critical_radius(alpha, t, 0.0), rel=0.02)


def test_the_two_terms_balance() -> None:
    r = balance_radius(3.0, 1e5, 0.8)
    assert 3.0 / 1e5 * r**-0.8 == pytest.approx(r**0.6 / math.sqrt(1e5))


def test_regret_rates() -> None:
    assert regret_rate(1e4, 1.0) == pytest.approx(math.log(1e4) ** 2)
    assert regret_rate(1e4, 0.5, 1.0) == pytest.approx(1e4 ** regret_exponent(0.5, 1.0))
    assert regret_rate(1e4, 0.5, 1.0, overlap=True) == pytest.approx(1e4 ** overlap_regret_exponent(0.5, 1.0))


def test_every_shipped_policy_has_an_exponent() -> None:
    shipped = {name for name in policies.__all__ if isinstance(getattr(policies, name), type)}
    assert shipped - set(ENTROPY_EXPONENTS) == {"UniformMixture"}


def test_the_lipschitz_constants_behind_the_covers() -> None:
    """|log π_θ - log π_θ'| is never above the constant times |θ - θ'|, and a cover of so fine a grid has that size."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(50, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)  # |φ| = 1
    softmax, worst = Softmax(4), 0.0
    for _ in range(200):
        first, other = (generator.normal(size=softmax.n_params(3)) for _ in range(2))
        gap = np.abs(softmax.forward(first, x)[0] - softmax.forward(other, x)[0]).max()
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
    assert holder_exponent(3, 2.0) == 1.5


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


def test_the_bound_for_a_finite_class_holds_at_all_times() -> None:
    """Clipped losses of three policies under an adaptive logger: a binomial test at 1e-3, and not vacuous."""
    generator, runs, rounds, alpha, delta = np.random.default_rng(1), 300, 150, 3.0, 0.1
    policies_ = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    losses, missed, narrow = np.array([-0.8, -0.3]), 0, 0.0
    for _ in range(runs):
        q, deviations, squares, missed_here = 0.5, np.zeros(3), np.zeros(3), False
        for t in range(1, rounds + 1):
            logger = np.array([q, 1 - q])
            a = int(generator.random() > q)
            y = -float(generator.random() < -losses[a])
            clipped = np.minimum(policies_ / logger, alpha) - 1  # [3, 2]
            deviations += clipped[:, a] * y - (clipped * logger) @ losses
            squares += clipped[:, a] ** 2
            q = float(np.clip(0.5 + 0.02 * deviations[0], 0.1, 0.9))
            if t % 10 == 0:
                bounds = np.array([finite_class_bound(math.sqrt(s / t + 1e-12), alpha, t, delta, 3) for s in squares])
                missed_here |= bool((np.abs(deviations) / t > bounds).any())
        narrow = max(narrow, float(bounds.min()))
        missed += missed_here
    assert not refutes(missed, runs, delta, 1e-3)
    assert narrow < 1
    assert finite_class_bound(0.5, 3.0, 100, 0.1, 7) == pytest.approx(peeled_deviation(25.0, 2.0, 0.1 / 14) / 100)


def test_bounds_up_to_a_constant_have_the_papers_terms() -> None:
    sigma, alpha, t, delta, p = 0.3, 4.0, 1e4, 0.05, 0.7
    log, radius = math.log(math.e * t / delta), critical_radius(alpha, t, p)
    expected = radius**2 + sigma**0.65 / 100 + sigma * math.sqrt(log) / 100 + alpha * log / t
    assert self_normalised_bound(sigma, alpha, t, delta, p, constant=2.0) == pytest.approx(2 * expected)
    log = math.log(math.e / delta)
    expected = complexity(sigma, alpha, t, p) + sigma * math.sqrt(log / t) + alpha * log / t
    assert maximal_deviation(sigma, alpha, t, delta, p) == pytest.approx(expected)
    assert finite_family_maximum(2.0, 0.5, 10, 0.1) == pytest.approx(
        4 * math.sqrt(2 * math.log(101)) + 8 * math.log(101)
    )


def test_the_algorithms_penalty_is_the_theorems_bound_at_p_0_but_for_its_logarithm() -> None:
    sigma, alpha, t, delta = 0.4, 3.0, 1e6, 0.05
    phi = Phi(alpha, t, math.log(math.e * t / delta))(sigma**2)[0]
    rest = self_normalised_bound(sigma, alpha, t, delta, 0.0) - critical_radius(alpha, t, 0.0) ** 2
    assert phi - alpha / t == pytest.approx(rest, rel=1e-9)


def test_wrong_input_is_refused() -> None:
    with pytest.raises(InvalidInput, match="below 2"):
        holder_exponent(4, 2.0)
    with pytest.raises(InvalidInput, match="eps"):
        softmax_entropy(0.0, 3, 1.0, 1.0)
    with pytest.raises(InvalidInput, match="delta"):
        self_normalised_bound(0.1, 2.0, 10.0, 1.0, 0.0)
    with pytest.raises(InvalidInput, match="alpha ≥ 2"):
        finite_class_bound(0.1, 1.5, 10.0, 0.1, 3)
    with pytest.raises(InvalidInput, match="probability"):
        finite_family_maximum(1.0, 1.0, 1, 0.0)
