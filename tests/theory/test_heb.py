from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, linregress

from o2pl import InvalidInput
from o2pl.simulation.worlds import Margin, SingleContext
from o2pl.theory.heb import error_bound, error_bound_of_sample


def test_a_power_law_is_found_exactly() -> None:
    excess = np.geomspace(1e-6, 1e-2, 50)
    found = error_bound(excess, 3 * excess**0.4)
    assert found.slope == pytest.approx(0.4)
    assert found.beta == pytest.approx(0.4)
    assert found.error < 1e-12
    assert found.points == 12


def test_the_upper_edge_decides() -> None:
    """Policies below the edge, with other slopes, change nothing; zeros are left out."""
    excess = np.geomspace(1e-5, 1e-1, 12)
    below = np.random.default_rng(0).uniform(0.01, 0.5, (20, 12)) * excess**0.7
    cloud = np.tile(excess, 20), below.ravel()
    found = error_bound(
        np.concatenate([[0.0], excess, cloud[0]]), np.concatenate([[0.0], 2 * excess**0.7, cloud[1]]), bins=12
    )
    assert found.slope == pytest.approx(0.7, abs=1e-9)


def test_slope_and_error_are_those_of_a_regression() -> None:
    generator = np.random.default_rng(1)
    x = np.linspace(-8, -1, 12)
    y = 0.6 * x + 0.1 * generator.standard_normal(12)
    found, slow = error_bound(np.exp(x), np.exp(y), bins=12), linregress(x, y)
    assert found.slope == pytest.approx(slow.slope)
    assert found.error == pytest.approx(slow.stderr)
    assert found.low < found.slope < found.high


def test_the_single_context_example_is_steeper_than_its_bound() -> None:
    world, floor = SingleContext(), 0.1
    theta = 1 - floor - np.geomspace(1e-5, 1e-3, 20)
    excess = world.best_in_class(floor) - np.array([world.value(each) for each in theta])
    found = error_bound(excess, np.array([world.weight_variance(each, floor) for each in theta]))
    assert found.slope == pytest.approx(2, abs=0.01)
    assert found.beta == 1


def test_intervals_from_samples_cover() -> None:
    """80 % intervals on 150 samples of a margin world: covered as often as that, by a binomial test at 1e-4."""
    world, samples, level = Margin(1.0), 150, 0.8
    generator = np.random.default_rng(2)
    reach = np.geomspace(0.05, 0.5, 15)
    covered = 0
    for _ in range(samples):
        x = world.sample(1500, generator).contexts[:, :1].astype(np.float64)
        differs = (x > 0) & (x <= reach)
        found = error_bound_of_sample(differs * x, differs * 1.0, generator, bins=8, level=level, resamples=60)
        covered += found.low <= world.beta <= found.high
    assert binom.cdf(covered, samples, level) > 1e-4
    assert binom.sf(covered - 1, samples, level) > 1e-4


def test_wrong_input_is_refused() -> None:
    with pytest.raises(InvalidInput, match="shape"):
        error_bound([0.1, 0.2], [0.1])
    with pytest.raises(InvalidInput, match="at least 3"):
        error_bound([0.0, 0.1, 0.2], [0.0, 0.1, 0.2])
    with pytest.raises(InvalidInput, match="two-dim"):
        error_bound_of_sample([0.1], [0.1], np.random.default_rng(0))
