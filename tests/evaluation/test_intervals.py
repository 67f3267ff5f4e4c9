from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import bootstrap, norm

from o2pl import InvalidInput
from o2pl.evaluation.intervals import (
    _resampled_deviations,
    bootstrap_interval,
    empirical_bernstein_interval,
    normal_from_moments,
    normal_interval,
    sample_moments,
)


def test_moments_with_a_large_mean() -> None:
    x = 1e9 + np.random.default_rng(0).random(1000)
    n, mean, variance = sample_moments(x)
    assert n == 1000
    assert mean == pytest.approx(x.mean(), rel=1e-15)
    assert variance == pytest.approx(x.var(ddof=1), rel=1e-9)


def test_normal_and_bernstein_by_their_formulas() -> None:
    x = np.random.default_rng(1).random(400)
    s = x.std(ddof=1)
    np.testing.assert_allclose(normal_interval(x, 0.1), norm.interval(0.9, x.mean(), s / 20))
    assert normal_from_moments(sample_moments(x), 0.1) == normal_interval(x, 0.1)
    log = math.log(4 / 0.1)
    reach = s * math.sqrt(2 * log / 400) + 7 * 3 * log / (3 * 399)
    low, high = empirical_bernstein_interval(x, 0.1, -1.0, 2.0)
    np.testing.assert_allclose((low, high), (x.mean() - reach, x.mean() + reach))
    assert empirical_bernstein_interval(x[:3], 0.1, 0.0, 1.0) == (0.0, 1.0)


def slow_bootstrap(x: np.ndarray, w: np.ndarray, delta: float, resamples: int) -> tuple[float, float]:
    """Every resample written out, with its ratio and its standard error."""
    generator, n = np.random.default_rng(99), len(x)

    def ratio_and_error(rows: np.ndarray) -> tuple[float, float]:
        ratio = x[rows].sum() / w[rows].sum()
        spread = np.std(x[rows] - ratio * w[rows], ddof=1) * math.sqrt(n)
        return ratio, spread / w[rows].sum()

    ratio, error = ratio_and_error(np.arange(n))
    t = [
        (own - ratio) / own_error
        for own, own_error in (ratio_and_error(generator.integers(n, size=n)) for _ in range(resamples))
    ]
    high, low = np.quantile(t, [delta / 2, 1 - delta / 2])
    return ratio - error * low, ratio - error * high


@pytest.mark.parametrize("weighted", [False, True])
def test_the_bootstrap_against_a_loop(weighted: bool) -> None:
    """Both draw at random: ends agree to 5 % of the width, some three standard errors of a 5 % quantile."""
    generator = np.random.default_rng(2)
    w = np.exp(generator.normal(-0.5, 1, 150))
    x = w * generator.random(150)
    slow = slow_bootstrap(x, w if weighted else np.ones(150), 0.1, 4000)
    fast = bootstrap_interval(x, 0.1, w if weighted else None, resamples=8000)
    np.testing.assert_allclose(fast, slow, atol=0.05 * (slow[1] - slow[0]))


def test_deviations_of_the_same_draws() -> None:
    generator = np.random.default_rng(5)
    w = generator.exponential(size=40)
    x = w * generator.random(40)
    ratio = x.sum() / w.sum()
    drawn = np.random.default_rng(6).integers(40, size=(30, 40), dtype=np.uint32)
    slow = []
    for rows in drawn:
        own = x[rows].sum() / w[rows].sum()
        slow.append((own - ratio) / (np.std(x[rows] - own * w[rows], ddof=1) * math.sqrt(40) / w[rows].sum()))
    np.testing.assert_allclose(_resampled_deviations(x - ratio * w, w, 30, np.random.default_rng(6)), slow)


def test_the_bootstrap_beside_scipys() -> None:
    """On many rows of little skew all bootstraps agree; groups of rows give the same width."""
    x = np.random.default_rng(3).random(4000)
    peer = bootstrap((x,), np.mean, n_resamples=2000, confidence_level=0.9, rng=np.random.default_rng(0), batch=200)
    width = peer.confidence_interval.high - peer.confidence_interval.low
    for groups in (4000, 500):
        own = bootstrap_interval(x, 0.1, groups=groups, resamples=4000)
        np.testing.assert_allclose(own, peer.confidence_interval, atol=0.08 * width)


def test_the_bootstrap_is_seeded_and_the_rows_of_a_group_are_all_read() -> None:
    x = np.random.default_rng(4).random(1003)
    assert bootstrap_interval(x, 0.1, groups=100) == bootstrap_interval(x, 0.1, groups=100)
    other = bootstrap_interval(x, 0.1, groups=100, generator=np.random.default_rng(7))
    assert other != bootstrap_interval(x, 0.1, groups=100)
    low, high = bootstrap_interval(x, 0.1, groups=100)
    assert (low + high) / 2 == pytest.approx(x.mean(), abs=0.1 * (high - low))


def test_what_cannot_be_known_is_infinite() -> None:
    everything = (-math.inf, math.inf)
    assert normal_interval([0.4], 0.1) == everything
    assert normal_interval([0.4, 0.4], 0.1) == everything
    assert bootstrap_interval([0.4], 0.1) == everything
    assert bootstrap_interval([0.4] * 9, 0.1) == everything
    assert empirical_bernstein_interval([0.4], 0.1, 0.0, 1.0) == (0.0, 1.0)
    low, high = bootstrap_interval([0.0] * 99 + [1.0], 0.1)  # a third of the resamples has no 1
    assert high == math.inf
    assert math.isfinite(low) or low == -math.inf


WRONG: list[tuple[Any, str]] = [
    (lambda: normal_interval([], 0.1), "at least one"),
    (lambda: normal_interval([0.1, math.inf], 0.1), "row 1: found inf"),
    (lambda: normal_interval([0.1, 0.2], 1.5), "delta"),
    (lambda: empirical_bernstein_interval([2.0], 0.1, 0.0, 1.0), r"expected a number in \[0, 1\]"),
    (lambda: empirical_bernstein_interval([0.5], 0.1, 1.0, 0.0), "lower < upper"),
    (lambda: bootstrap_interval([0.1, 0.2], 0.1, [1.0]), "weights"),
    (lambda: bootstrap_interval([0.1, 0.2], 0.1, [1.0, -1.0]), "weights"),
    (lambda: bootstrap_interval([0.1, 0.2], 0.1, [0.0, 0.0]), "weights"),
    (lambda: bootstrap_interval([0.1, 0.2], 0.01, resamples=50), "resamples"),
    (lambda: bootstrap_interval([0.1, 0.2], 0.1, groups=0), "groups"),
]


@pytest.mark.parametrize(("call", "said"), WRONG)
def test_wrong_input_is_refused(call: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        call()
