from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from o2pl import InvalidInput
from o2pl.theory import (
    balance_radius,
    clip_level,
    closed_form_radius,
    regret_exponent,
)
from o2pl.theory.critical import complexity, critical_radius, radius_scale, recursion_regret


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0, 1.9])
@pytest.mark.parametrize(("alpha", "t"), [(1.0, 10.0), (7.0, 1e4), (50.0, 1e9)])
def test_the_radius_is_the_root(p: float, alpha: float, t: float) -> None:
    def gap(r: float) -> float:
        if p == 0:
            log = math.log(math.e + math.e / r)
            return alpha / t * log + r * math.sqrt(log) / math.sqrt(t) - r**2
        return alpha / t / r**p + r ** (1 - p / 2) / math.sqrt(t) - r**2

    r = critical_radius(alpha, t, p)
    assert r == pytest.approx(brentq(gap, 1e-8, 1e4, xtol=1e-15), rel=1e-9)
    assert complexity(0.9 * r, alpha, t, p) > (0.9 * r) ** 2  # the smallest such r
    assert complexity(1.1 * r, alpha, t, p) < (1.1 * r) ** 2


def test_at_small_radii_the_logarithm_is_the_papers() -> None:
    r, alpha, t = 1e-6, 3.0, 1e8
    log = math.log(math.e / r)
    assert complexity(r, alpha, t, 0.0) == pytest.approx(alpha / t * log + r * math.sqrt(log / t), rel=1e-6)


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5])
def test_the_radius_scales_as_stated(p: float) -> None:
    ratios = [critical_radius(5.0, t, p) / radius_scale(5.0, t, p) for t in (1e2, 1e5, 1e9)]
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-9)
    assert ratios[0] > 1
    assert critical_radius(1e12, 1e14, p) / radius_scale(1e12, 1e14, p) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(("beta", "p"), [(0.5, 0.0), (0.5, 1.0), (0.75, 0.5), (1.0, 1.0)])
def test_the_recursion_against_a_plain_loop_and_the_theorem(beta: float, p: float) -> None:
    """Steps of a factor give what every round would, to 2 %; and at large T the theorem's exponent."""
    total = spread = 0.0
    excess, rounds = 1.0, 3000
    for t in range(1, rounds + 1):
        total += excess
        spread += excess**beta
        sigma, alpha = math.sqrt(spread / t), clip_level(t, beta, p)
        excess = min(1.0, sigma ** (1 - p / 2) / math.sqrt(t) + (alpha / t) ** (2 / (2 + p)) + sigma**2 / alpha)
    curve = recursion_regret(beta, p, 1e4, growth=1.005)
    assert np.interp(rounds, curve.t, curve.regret) == pytest.approx(total, rel=0.02)
    assert recursion_regret(beta, p, 1e15).exponent() == pytest.approx(regret_exponent(beta, p), abs=0.03)


def test_log_squared_regret_in_the_fastest_case() -> None:
    """dR/dL = √R + L + R/L with L = log T has R = c L², c = √c + 1: the golden ratio squared."""
    curve = recursion_regret(1.0, 0.0, 1e300, growth=1.01)
    golden = (1 + math.sqrt(5)) / 2
    assert curve.regret[-1] / np.log(curve.t[-1]) ** 2 == pytest.approx(golden**2, rel=0.05)


def test_wrong_input_is_refused() -> None:
    with pytest.raises(InvalidInput, match="p: found"):
        critical_radius(1.0, 10.0, 2.0)
    with pytest.raises(InvalidInput, match="alpha"):
        complexity(0.1, 0.0, 10.0, 1.0)


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
