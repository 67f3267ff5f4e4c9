"""What is exact about it is checked with the other continuous worlds, in test_continuous; here, what is its own."""

from __future__ import annotations

import numpy as np
import pytest

from o2pl import InvalidInput
from o2pl.simulation.worlds import Advertising


def test_the_best_bid_of_each_group_is_the_best_of_a_grid() -> None:
    world = Advertising()
    bids = np.linspace(0, 5, 1001)
    for group, best in enumerate(world.best_actions(np.array([0, 1]))):
        values = world.mean_rewards(np.full(len(bids), group), bids, 0.0, world.natural_range)
        at_best = world.mean_rewards(np.array([group]), np.array([best]), 0.0, world.natural_range)[0]
        assert best == pytest.approx(bids[values.argmax()], abs=0.01)
        assert at_best >= values.max()


def test_policies_tend_to_their_mean_bid_as_they_narrow() -> None:
    world, bids, groups = Advertising(), np.array([0.5, 4.0, 3.0]), np.array([0, 1, 0])
    fixed = world.mean_rewards(groups, bids, 0.0, world.natural_range)
    np.testing.assert_allclose(world.mean_rewards(groups, bids, 1e-3, world.natural_range), fixed, atol=1e-5)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InvalidInput, match="deviation"):
        Advertising(deviation=0.0)
    with pytest.raises(InvalidInput, match="logging_scale"):
        Advertising(logging_scale=-1.0)
