"""The constants of the maximal inequality, put to the test on classes that are large and on logs that are adaptive."""

from __future__ import annotations

import math

import numpy as np
import pytest

from o2pl import InvalidInput
from o2pl.protocols import Floats
from o2pl.theory.chaining import (
    bracket_radius,
    chained_deviation,
    entropy_integral,
    lipschitz_entropy,
    margin_constant,
    peeled_class_deviation,
    peeled_radii,
    sharp_margin_constant,
)

ALPHA = 3.0
KNOTS = np.linspace(0, 1, 33)


def lipschitz_members(generator: np.random.Generator, members: int, slope: float, height: float) -> Floats:
    """Values at the knots of random piecewise linear functions. [members, knots]"""
    steps = generator.choice([-1.0, 0.0, 1.0], (members, len(KNOTS) - 1)) * slope / (len(KNOTS) - 1)
    paths = np.cumsum(np.column_stack([generator.uniform(-height, height, members), steps]), axis=1)
    return np.clip(paths, -height, height)


def log_odds(values: Floats, x: Floats) -> Floats:
    """[members, n]"""
    place = np.minimum((x * (len(KNOTS) - 1)).astype(int), len(KNOTS) - 2)
    part = x * (len(KNOTS) - 1) - place
    return values[:, place] * (1 - part) + values[:, place + 1] * part


def chance(f: Floats, actions: Floats) -> Floats:
    return 1 / (1 + np.exp(np.where(actions == 1, -f, f)))


def losses(weights: Floats, y: Floats) -> Floats:
    return (np.minimum(weights, ALPHA) - 1) * y


def test_a_cover_of_log_policies_makes_brackets_of_clipped_losses() -> None:
    generator = np.random.default_rng(0)
    x, y = generator.random(200), -generator.random(200)
    actions, logged = generator.integers(0, 2, 200), generator.uniform(0.05, 0.95, 200)
    members = log_odds(lipschitz_members(generator, 300, 4.0, 3.0), x)
    own = chance(members, actions) / logged
    sigma = np.sqrt(np.mean(losses(own, y) ** 2, axis=1))
    for eps in (0.02, 0.2, 1.0):
        delta = np.array([bracket_radius(eps, s) for s in sigma])[:, None]
        centre = own * np.exp(generator.uniform(-1, 1, own.shape) * delta)  # of the cover, δ away at most
        low, high = losses(centre * np.exp(delta), y), losses(centre * np.exp(-delta), y)
        assert (low <= losses(own, y) + 1e-12).all()
        assert (losses(own, y) <= high + 1e-12).all()
        widths = np.sqrt(np.mean((high - low) ** 2, axis=1))
        assert (widths <= eps).all()
        assert widths.max() > 0.05 * eps  # the bound is of the right size


def test_lipschitz_functions_have_the_cover_that_is_counted() -> None:
    generator = np.random.default_rng(1)
    eps, slope, height = 0.3, 2.0, 1.0
    step = 2 * eps / 3
    points = np.arange(math.ceil(slope / step)) * step / slope
    fine = np.linspace(0, 1, 2001)[:-1]
    members = lipschitz_members(generator, 2000, slope, height)
    rounded = np.floor(log_odds(members, points) / step)
    assert np.abs(np.diff(rounded, axis=1)).max() <= 1
    cell = np.minimum((fine * slope / step).astype(int), len(points) - 1)
    assert np.abs(log_odds(members, fine) - (rounded[:, cell] + 0.5) * step).max() <= eps + 1e-9
    distinct = len(np.unique(rounded, axis=0))
    assert math.log(distinct) <= lipschitz_entropy(eps, slope, height)
    assert lipschitz_entropy(eps / 100, slope, height) / lipschitz_entropy(eps, slope, height) > 50  # p = 1


def test_the_integral_is_that_of_a_power() -> None:
    # far below 1 + σ the transfer is u -> u / (2 (1 + σ)): J = √A (2 (1 + σ))^{p/2} σ^{1-p/2} / (1 - p/2)
    sigma, p = 1e-4, 1.0
    expected = math.sqrt(5.0) * (2 * (1 + sigma)) ** (p / 2) * sigma ** (1 - p / 2) / (1 - p / 2)
    assert entropy_integral(lambda eps: 5.0 * eps**-p, sigma) == pytest.approx(expected, rel=1e-3)
    assert entropy_integral(lambda eps: 4.0, 0.7) == pytest.approx(1.4)


def test_a_large_class_on_an_adaptive_log_stays_below_the_bound() -> None:
    """sup M over 2,000 Lipschitz policies, logged by one that changes with what it saw."""
    generator, n, slope, height = np.random.default_rng(2), 400, 2.0, 2.0
    values = lipschitz_members(generator, 2000, slope, height)

    def entropy(eps: float) -> float:
        return lipschitz_entropy(eps, slope, height)

    worst_ratio, level = 0.0, 0.0
    for _ in range(10):
        M, squares = np.zeros(len(values)), np.zeros(len(values))
        for _ in range(n):
            x = generator.random(1)
            f = log_odds(values, x)[:, 0]
            q = 0.5 + 0.4 * math.tanh(level)
            both = np.array([1 - q, q])
            pi = np.stack([chance(f, np.array([0])), chance(f, np.array([1]))])
            mean_loss = np.array([-0.3, -0.6 * x[0]])
            each = np.minimum(pi / both[:, None], ALPHA) - 1
            action = int(generator.random() < q)
            y = -float(generator.random() < -mean_loss[action])
            M += each[action] * y - (each * (both * mean_loss)[:, None]).sum(axis=0)
            squares += (each[action] * y) ** 2
            level += 0.1 * (1 if y < 0 else -1) * (1 if action else -1)
        rho = np.sqrt(squares / n)
        bounds = dict.fromkeys(peeled_radii(ALPHA - 1, 0.05), 0.0)
        for mean, own in zip(M / n, rho, strict=True):
            shell = min((r for r in bounds if r >= own), default=min(bounds))
            bounds[shell] = max(bounds[shell], float(mean))
        for shell, highest in bounds.items():
            allowed = peeled_class_deviation(shell, ALPHA - 1, n, 0.05, entropy, 0.05)
            worst_ratio = max(worst_ratio, highest / allowed)
    assert 0 < worst_ratio < 0.05  # the constants of the proof are far from what is needed


def test_deviations_grow_with_the_radius_and_shrink_with_the_rows() -> None:
    def entropy(eps: float) -> float:
        return 1 / eps

    near, far = (chained_deviation(s, 2.0, 1000, 0.05, entropy) for s in (0.1, 1.0))
    assert near < far
    assert chained_deviation(1.0, 2.0, 4000, 0.05, entropy) == pytest.approx(far / 2, rel=0.1)
    assert peeled_class_deviation(0.01, 2.0, 1000, 0.05, entropy, 0.1) < peeled_class_deviation(
        0.3, 2.0, 1000, 0.05, entropy, 0.1
    )
    with pytest.raises(InvalidInput, match=r"rho: found 3.0, expected at most bound, 2.0"):
        peeled_class_deviation(3.0, 2.0, 1000, 0.05, entropy, 0.1)
    with pytest.raises(InvalidInput, match=r"sigma, bound, n, delta"):
        chained_deviation(0.0, 2.0, 1000, 0.05, entropy)


@pytest.mark.parametrize("kappa", [0.5, 1.0, 4.0])
def test_the_margin_lemma_holds_with_its_constant(kappa: float) -> None:
    """P(Δ ≤ u) = u^κ on [0, 1]. The worst policies err where the gap is below some u, as often as they may."""
    overlap = 0.2
    constant = margin_constant(kappa, 1.0, overlap)
    gaps = (np.arange(20_000) + 0.5) / 20_000  # quantiles of Δ^κ
    gaps = gaps ** (1 / kappa)
    ratios = []
    for u in (0.3, 0.5, 0.8, 1.0):
        q = np.where(gaps <= u, 1 - overlap, 0.0)
        variance, excess = np.mean(q / (1 - q)), np.mean(q * gaps)
        ratios.append(variance / (constant * excess ** (kappa / (kappa + 1))))
    assert max(ratios) <= 1
    least = sharp_margin_constant(kappa, 1.0, overlap) / constant
    assert least == pytest.approx(((1 - overlap) / (kappa + 1)) ** (1 / (kappa + 1)))
    assert ratios == pytest.approx(
        [least] * 4, rel=1e-3
    )  # the worst policies reach it, however many contexts they miss
    with pytest.raises(InvalidInput, match="kappa"):
        margin_constant(0.0, 1.0, 0.2)
