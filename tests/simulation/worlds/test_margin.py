from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from o2pl import InvalidInput
from o2pl.policies import ThresholdClass
from o2pl.simulation.worlds import Margin, SingleContext

from .checks import assert_mean_is, assert_rate_is

NUS = [0.5, 1.0, 2.0, 8.0]


@pytest.mark.parametrize("nu", NUS)
def test_the_margin_has_its_exponent(nu: float) -> None:
    world = Margin(nu, gap=0.8)
    rounds = world.sample(20000, np.random.default_rng(0))
    gaps = np.abs(rounds.expected_table[:, 1] - rounds.expected_table[:, 0])
    for u in (0.1, 0.4, 0.7):
        assert_rate_is(gaps <= u, (u / 0.8) ** nu, f"P(Δ ≤ {u})")
    assert_rate_is(rounds.contexts[:, 0] > 0, 0.5, "sign")
    assert ((rounds.expected_table[:, 1] > 0.5) == (rounds.contexts[:, 0] > 0)).all()
    assert world.beta == pytest.approx(nu / (nu + 1))


@pytest.mark.parametrize("nu", NUS)
def test_values_of_thresholds_are_exact(nu: float) -> None:
    """Against quadrature of Σ_a π(a|x) E[r|x, a] over the density ν|x|^(ν-1)/2, and against Monte Carlo."""
    world = Margin(nu, gap=0.6)
    policies = ThresholdClass((-1.3, -0.6, 0.0, 0.25, 0.9), floor=0.1)
    values = world.threshold_values(policies)
    for threshold, value in zip(policies.thresholds, values, strict=True):

        def reward(u: float, sign: int, threshold: float = threshold) -> float:
            x = sign * u ** (1 / nu)  # u uniform: the quadrature has no pole for ν < 1
            plays_one = 0.9 if x > threshold else 0.1
            return plays_one * (0.5 + 0.3 * x) + (1 - plays_one) * (0.5 - 0.3 * x)

        kink = [min(abs(threshold), 1.0) ** nu]
        slow = sum(0.5 * quad(reward, 0, 1, args=(sign,), points=kink)[0] for sign in (-1, 1))
        assert value == pytest.approx(slow, abs=1e-9)
    rounds = world.sample(20000, np.random.default_rng(1))
    ones = policies.likelihoods(rounds.contexts, np.ones(len(rounds), np.int64))  # [n, J]
    for member, value in enumerate(values):
        expected = ones[:, member] * rounds.expected_table[:, 1] + (1 - ones[:, member]) * rounds.expected_table[:, 0]
        assert_mean_is(expected, value, f"threshold {policies.thresholds[member]}")
    assert world.best_in_class(policies) == pytest.approx(0.5 + 0.3 * 0.8 * nu / (nu + 1))


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InvalidInput, match="nu"):
        Margin(0.0)
    with pytest.raises(InvalidInput, match="gap"):
        Margin(1.0, 1.5)
    with pytest.raises(InvalidInput, match="mu0"):
        SingleContext(-0.7, -0.3)
