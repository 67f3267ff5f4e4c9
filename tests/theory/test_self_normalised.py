from __future__ import annotations

import math

import numpy as np
import pytest

from o2pl import InvalidInput
from o2pl.objectives import Phi
from o2pl.theory import (
    complexity,
    critical_radius,
    finite_class_bound,
    finite_family_maximum,
    maximal_deviation,
    peeled_deviation,
    self_normalised_bound,
)
from o2pl.theory.inequality import refutes


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
    with pytest.raises(InvalidInput, match="delta"):
        self_normalised_bound(0.1, 2.0, 10.0, 1.0, 0.0)
    with pytest.raises(InvalidInput, match="alpha ≥ 2"):
        finite_class_bound(0.1, 1.5, 10.0, 0.1, 3)
    with pytest.raises(InvalidInput, match="probability"):
        finite_family_maximum(1.0, 1.0, 1, 0.0)
