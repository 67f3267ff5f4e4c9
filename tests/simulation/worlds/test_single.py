from __future__ import annotations

import numpy as np
import pytest

from o2pl.simulation.worlds import SingleContext

from .checks import assert_rate_is


def test_the_single_context_example() -> None:
    world = SingleContext(-0.3, -0.7)
    rounds = world.sample(20000, np.random.default_rng(2))
    assert not rounds.contexts.any()
    for action, loss in enumerate((-0.3, -0.7)):
        assert_rate_is(rounds.table[:, action] == 1, -loss, f"action {action}")
    floor = 0.1
    for theta in (0.1, 0.4, 0.9):
        policy, best = np.array([1 - theta, theta]), np.array([floor, 1 - floor])
        assert world.value(theta) == pytest.approx(policy @ [0.3, 0.7])
        assert world.best_in_class(floor) - world.value(theta) == pytest.approx((1 - floor - theta) * world.gap)
        slow = policy @ (best / policy - 1) ** 2  # the mean of the weights is 1
        assert world.weight_variance(theta, floor) == pytest.approx(slow)
