"""What every policy must do is in test_contracts; here, what is this one's own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from o2pl.policies import Gaussian


def test_imitation_finds_the_logger() -> None:
    generator = np.random.default_rng(0)
    x, theta = generator.normal(size=(20_000, 2)), np.array([0.7, -1.2])
    actions = 3.0 + x @ theta + 0.4 * generator.normal(size=20_000)
    found = Gaussian(centre=3.0, learn_scale=True).imitate(x, actions)
    np.testing.assert_allclose(found, [0.7, -1.2, math.log(0.4)], atol=0.02)
    np.testing.assert_array_equal(Gaussian(centre=3.0).imitate(x, actions), found[:2])


def test_quantiles_are_those_of_the_normal() -> None:
    assert Gaussian().continuous
    actions, densities = Gaussian(1.0, 2.0).sample(np.zeros(3), np.zeros(1), np.array([0.5, 0.8413447461, 0.0]))
    np.testing.assert_allclose(actions[:2], [1.0, 3.0], atol=1e-8)
    assert np.isfinite(actions[2])
    assert densities[0] == pytest.approx(1 / (2 * math.sqrt(2 * math.pi)))
