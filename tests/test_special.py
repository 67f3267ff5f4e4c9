"""Against SciPy, and against what defines the functions where SciPy is less exact."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import special, stats

import o2pl.special as own

SIZES = np.geomspace(1e-12, 1e5, 400)


def check(
    function: Callable[..., np.ndarray], reference: Callable[..., np.ndarray], x: np.ndarray, rtol: float
) -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(function(x), reference(x), rtol=rtol, atol=1e-300)


def test_functions_of_the_normal_distribution() -> None:
    x = np.concatenate([np.linspace(-37, 37, 4001), -SIZES, SIZES])
    check(own.ndtr, special.ndtr, x, 1e-12)
    check(own.log_ndtr, special.log_ndtr, x, 1e-12)
    check(own.expit, special.expit, x, 1e-14)
    ends = np.array([-np.inf, np.inf, np.nan])
    for function in ("ndtr", "log_ndtr", "expit"):
        np.testing.assert_array_equal(getattr(own, function)(ends), getattr(special, function)(ends))


def test_quantiles_of_the_normal_distribution() -> None:
    p = np.concatenate(
        [np.linspace(1e-4, 1 - 1e-4, 2000), np.geomspace(1e-300, 0.5, 300), 1 - np.geomspace(1e-16, 0.5, 99)]
    )
    np.testing.assert_allclose(own.ndtri(p), special.ndtri(p), rtol=1e-13, atol=2e-15)
    y = np.concatenate(
        [-SIZES, np.log(p[p < 1]), [-1e12, -math.log(2), math.log1p(-0.5), -0.69, np.nextafter(-0.69, 0)]]
    )
    found = own.ndtri_exp(y)
    np.testing.assert_allclose(found, special.ndtri_exp(y), rtol=2e-12, atol=2e-15)
    np.testing.assert_allclose(own.log_ndtr(found), y, rtol=1e-12)
    np.testing.assert_array_equal(own.ndtri([0, 0.5, 1, -0.1, 1.1]), [-np.inf, 0, np.inf, np.nan, np.nan])
    np.testing.assert_array_equal(own.ndtri_exp([-np.inf, 0, 0.1]), [-np.inf, np.inf, np.nan])


@pytest.mark.parametrize("a", [0.01, 0.5, 1, 9.99, 10, 17.8, 300, 1e5])
def test_the_incomplete_gamma_functions(a: float) -> None:
    x = np.append(
        a * np.concatenate([np.geomspace(1e-3, 1e3, 60), 1 + np.linspace(-4, 4, 41) / math.sqrt(a)]), [0, np.inf]
    )
    x = x[x >= 0]
    for function in ("gammainc", "gammaincc"):
        expected = getattr(special, function)(a, x)
        rtol = 1e-11 if a < 1e4 else 1e-5  # SciPy's error far from the mean, of a large shape
        np.testing.assert_allclose(getattr(own, function)(a, x), expected, rtol=rtol, atol=1e-290)
    np.testing.assert_allclose(own.gammainc(a, x) + own.gammaincc(a, x), 1, rtol=1e-12)
    assert math.isnan(own.gammainc(-1, 2.0))
    assert math.isnan(own.gammaincc(1, -2.0))


def test_numbers_and_arrays_of_any_shape() -> None:
    assert isinstance(own.ndtr(0), float)
    assert own.ndtr(np.zeros((2, 3))).tolist() == [[0.5] * 3] * 2
    assert own.gammaincc(1.0, np.zeros((0,))).shape == (0,)


@pytest.mark.parametrize("trials", [1, 7, 1000, 100_000])
@pytest.mark.parametrize("probability", [0.0, 1e-5, 0.3, 0.99, 1.0])
def test_binomial_tails(trials: int, probability: float) -> None:
    for hits in {0, 1, trials // 3, int(trials * probability), trials, trials + 1}:
        expected = stats.binom.sf(hits - 1, trials, probability)
        assert own.binomial_tail(hits, trials, probability) == pytest.approx(expected, rel=1e-8, abs=1e-300)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 10, 11, 300, 301, 5000])
def test_quantiles_of_students_distribution(freedom: int) -> None:
    for p in (0.5, 0.75, 0.975, 0.9995, 1 - 1e-7):
        assert own.student_quantile(p, freedom) == pytest.approx(stats.t.ppf(p, freedom), rel=1e-8, abs=1e-12)


def test_lamberts_w() -> None:
    for x in (1e-6, 0.1, 1.0, math.e, 1e3, 1e12):
        assert own.lambert_w(x) == pytest.approx(special.lambertw(x).real, rel=1e-13)
