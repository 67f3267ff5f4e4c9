from __future__ import annotations

import math

import pytest

from o2pl.theory import (
    clip_exponent,
    overlap_regret_exponent,
    regret_exponent,
    regret_rate,
)


@pytest.mark.parametrize(
    ("beta", "p", "rate", "with_overlap"),
    [(1, 0, 0, 0), (1, 1, 1 / 3, 1 / 3), (0.5, 0, 1 / 3, 1 / 3), (0.5, 1, 0.5, 3 / 7), (1 / 3, 0, 0.4, 0.4)],
)
def test_regret_exponents(beta: float, p: float, rate: float, with_overlap: float) -> None:
    assert regret_exponent(beta, p) == pytest.approx(rate)
    assert overlap_regret_exponent(beta, p) == pytest.approx(with_overlap)


def test_clipping_bias_and_radius_balance_at_the_theorems_rate() -> None:
    """At excess risk r = t^{ρ-1} the two terms that set the rate agree: (α/t)^{2/(2+p)} = r^β / α, for α = t^γ."""
    for beta in (0.25, 0.5, 0.75):
        for p in (0.0, 0.5, 1.5):
            gamma, decay = clip_exponent(beta, p), regret_exponent(beta, p) - 1
            # b = p/2 in the theorem: the radius term is (α/t)^{1/(1+b)}, and both equal the excess risk itself.
            assert (gamma - 1) / (1 + p / 2) == pytest.approx(beta * decay - gamma, abs=1e-9)
            assert (gamma - 1) / (1 + p / 2) == pytest.approx(decay, abs=1e-9)


def test_regret_rates() -> None:
    assert regret_rate(1e4, 1.0) == pytest.approx(math.log(1e4) ** 2)
    assert regret_rate(1e4, 0.5, 1.0) == pytest.approx(1e4 ** regret_exponent(0.5, 1.0))
    assert regret_rate(1e4, 0.5, 1.0, overlap=True) == pytest.approx(1e4 ** overlap_regret_exponent(0.5, 1.0))
