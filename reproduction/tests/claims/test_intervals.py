"""Intervals against theory and simulation: seeded, at the levels stated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from o2pl_reproduction.claims import intervals
from o2pl_reproduction.claims.intervals import Measurement


def test_means_have_nearly_students_interval() -> None:
    values = np.random.default_rng(0).normal(3.0, 1.0, 40)
    found = intervals.mean(values)
    error = 2.0227 * values.std(ddof=1) / math.sqrt(40)  # t of 39 degrees of freedom
    assert found.value == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - error, abs=0.1 * error)
    assert found.high == pytest.approx(values.mean() + error, abs=0.1 * error)
    assert found.method == "bootstrap over 40 seeds"
    assert found == intervals.mean(values.copy())  # the same values, the same interval


@pytest.mark.parametrize("units", [1, 2, 4])
def test_few_units_have_no_interval(units: int) -> None:
    values = np.arange(units) + 1.0
    for found in (intervals.mean(values), intervals.ratio(values, values), intervals.median_ratio(values, values)):
        assert not found.is_bounded
        assert found.method.endswith("too few for an interval")
    assert intervals.mean(values).value == values.mean()
    assert not intervals.least(lambda means: means, np.ones((units, 3))).is_bounded


def coverage(make: Any, truth: float, repeats: int, seed: int) -> float:
    generator = np.random.default_rng(seed)
    found = (make(generator) for _ in range(repeats))
    return float(np.mean([each.low <= truth <= each.high for each in found]))


@pytest.mark.parametrize("units", [5, 20])
def test_a_mean_is_covered(units: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 repeats of a 95 % interval: between 90 % and 99 %."""
    monkeypatch.setattr(intervals, "RESAMPLES", 500)
    share = coverage(lambda generator: intervals.mean(generator.normal(0, 1, units)), 0.0, 300, units)
    assert 0.9 <= share <= 0.99


def test_the_least_of_many_is_covered_though_it_was_picked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten figures that are all 0: the smallest estimate is below 0, and its interval still holds 0."""
    monkeypatch.setattr(intervals, "RESAMPLES", 500)

    def picked(generator: np.random.Generator) -> Measurement:
        return intervals.least(lambda means: means, generator.normal(0, 1, (20, 10)))

    assert coverage(picked, 0.0, 200, 0) >= 0.93
    alone = intervals.least(lambda means: means, np.random.default_rng(0).normal(0, 1, (20, 1)))
    assert alone.method == "bootstrap over 20 seeds"
    assert "10 at once" in picked(np.random.default_rng(1)).method


def test_greatest_and_greatest_size_mirror_the_least() -> None:
    values = np.random.default_rng(0).normal([1.0, -3.0, 2.0], 0.1, (30, 3))
    least, greatest = (make(lambda means: means, values) for make in (intervals.least, intervals.greatest))
    mirrored = intervals.greatest(lambda means: -means, values)
    assert (mirrored.value, mirrored.low, mirrored.high) == pytest.approx((-least.value, -least.high, -least.low))
    assert greatest.value == pytest.approx(2.0, abs=0.1)
    size = intervals.greatest_size(lambda means: means, values)
    assert size.value == pytest.approx(-least.value)
    small = intervals.greatest_size(lambda means: means, np.random.default_rng(0).normal(0, 1, (30, 2)))
    assert small.low >= 0


def test_ratios_have_bands_on_the_scale_of_logarithms() -> None:
    values = np.random.default_rng(0).lognormal([0.0, 1.0, 2.0], 0.5, (30, 3))
    found = intervals.least_ratio(lambda means: means[:, 1:] / means[:, :1], values)
    means = values.mean(axis=0)
    assert found.value == pytest.approx(means[1] / means[0])
    assert found.value / found.low == pytest.approx(found.high / found.value)
    assert found.low > 1
    assert not intervals.least_ratio(lambda means: means[:, 1:] / means[:, :1], values[:3]).is_bounded


def test_pairs_are_resampled_together_and_samples_apart() -> None:
    level = np.random.default_rng(0).normal(10, 3, 30)
    assert intervals.ratio(2 * level, level).low == pytest.approx(2.0)
    apart = intervals.of_means(lambda a, b: a / b, 2 * level, level)
    assert apart.low < 1.9 < 2.1 < apart.high


def test_what_was_not_played_is_left_out() -> None:
    table = np.array([[1.0, 5.0], [1.0, np.nan], [1.0, 5.0], [1.0, np.nan], [1.0, 5.0], [1.0, 5.0], [1.0, 5.0]])
    found = intervals.of_means(lambda means: means[:, 1] - means[:, 0], table)
    assert (found.value, found.low, found.high) == (4.0, 4.0, 4.0)
    assert found.method == "bootstrap over 5 seeds"  # of the one that has fewer


def test_a_figure_that_rounding_takes_past_its_limit_is_the_limit() -> None:
    """A correlation of -1 - 2⁻⁵² had an interval without a point, and its claim stayed undecided."""
    past = np.full(6, np.nextafter(-1.0, -2.0))
    for found in (
        intervals.of_means(lambda means: means, past, limits=(-1.0, 1.0)),
        intervals.least(lambda means: means, past[:, None], limits=(-1.0, 1.0)),
    ):
        assert (found.value, found.low, found.high) == (-1.0, -1.0, -1.0)
    contradicts = intervals.of_means(lambda means: means, np.full(6, 5.0), limits=(0.0, 1.0))
    assert (contradicts.value, contradicts.low, contradicts.high) == (5.0, 5.0, 5.0)


def test_limits_and_undefined_figures() -> None:
    values = np.random.default_rng(0).normal(0.99, 0.05, 20)
    assert intervals.of_means(lambda means: means, values, limits=(0.0, 1.0)).high == 1.0
    broken = intervals.of_means(lambda means: means / 0.0 - means / 0.0, values)
    assert not broken.is_bounded


def test_exact_binomial_intervals() -> None:
    """Clopper and Pearson's, as tables have them."""
    none = intervals.binomial(0, 20)
    assert (none.value, none.low) == (0.0, 0.0)
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 20))
    some = intervals.binomial(7, 20)
    assert (some.low, some.high) == pytest.approx((0.1539, 0.5922), abs=1e-4)
    assert intervals.binomial(20, 20).high == 1.0
    assert math.isnan(intervals.binomial(0, 0).value)
    several = intervals.greatest_share([0, 7], [20, 20], [0.5, 1.0], "paths")
    assert several.value == pytest.approx(0.35)
    assert several.low < some.low < some.high < several.high  # two at once
    won = intervals.record(9, 0, 9, "sets")
    assert won.value == won.high == 1.0
    assert 0 < won.low < 1


def test_the_wider_of_two() -> None:
    both = intervals.wider(Measurement(0.5, 0.4, 0.6, "one"), Measurement(0.7, 0.45, 0.8, "other"))
    assert (both.value, both.low, both.high) == (0.5, 0.4, 0.8)


def test_permutations_say_how_often_chance_does_as_well() -> None:
    first = np.arange(12) < 6
    rising = np.where(first, 1.0, 2.0)
    assert intervals.permutation_p(lambda labels: labels[~first].mean() - labels[first].mean(), rising) < 0.01
    mixed = np.tile([1.0, 2.0], 6)
    assert intervals.permutation_p(lambda labels: labels[~first].mean() - labels[first].mean(), mixed) > 0.3
