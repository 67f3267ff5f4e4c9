"""Each mean against numerical integration."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad

from o2pl.simulation.worlds.moments import (
    moment_normal_density,
    moment_normal_probability,
    moment_of_capped_square,
    moment_of_clipped,
    moment_of_excess,
    moment_of_function,
)


def slow_mean(function: Callable[[float], float], mean: float, scale: float, *kinks: float) -> float:
    def integrand(z: float) -> float:
        return function(mean + scale * z) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    return float(quad(integrand, -9, 9, points=[(kink - mean) / scale for kink in kinks], epsabs=1e-12)[0])


@pytest.mark.parametrize(("mean", "scale"), [(0.3, 0.5), (-1.0, 2.0)])
def test_means_of_functions_with_kinks(mean: float, scale: float) -> None:
    assert moment_of_excess(mean, scale, 0.4) == pytest.approx(slow_mean(lambda z: max(z - 0.4, 0), mean, scale, 0.4))
    clipped = slow_mean(lambda z: min(max(z, -0.2), 0.7), mean, scale, -0.2, 0.7)
    assert moment_of_clipped(mean, scale, -0.2, 0.7) == pytest.approx(clipped)
    capped = slow_mean(lambda z: min(z * z, 0.6), mean, scale, -math.sqrt(0.6), math.sqrt(0.6))
    assert moment_of_capped_square(mean, scale, 0.6) == pytest.approx(capped)
    assert moment_of_capped_square(mean, scale, math.inf) == pytest.approx(mean**2 + scale**2)


def test_without_spread_it_is_the_value() -> None:
    assert moment_of_excess(1.5, 0.0, 0.4) == pytest.approx(1.1)
    assert moment_of_clipped(1.5, 0.0, 0.0, 0.7) == pytest.approx(0.7)
    assert moment_of_clipped(1.5, 0.0, 0.0, math.inf) == pytest.approx(1.5)


def test_density_and_probability() -> None:
    assert moment_normal_density(1.3) == pytest.approx(math.exp(-(1.3**2) / 2) / math.sqrt(2 * math.pi))
    assert moment_normal_probability(1.3) == pytest.approx(0.5 + 0.5 * math.erf(1.3 / math.sqrt(2)))


def test_averages_are_taken_row_by_row() -> None:
    index, means = np.array([0.0, 1.0, 2.0]), np.array([-0.5, 0.0, 0.5])
    found = moment_of_function(lambda i, a: i + np.cos(a), index, means, 0.8)
    np.testing.assert_allclose(found, index + np.cos(means) * math.exp(-(0.8**2) / 2), atol=1e-12)
    np.testing.assert_allclose(moment_of_function(lambda i, a: i + a, index, means, 0.0), index + means)
