from __future__ import annotations

import math

import numpy as np
import pytest

from o2pl import InvalidInput
from o2pl.simulation.worlds import Wheel

from .checks import assert_mean_is, assert_rate_is


def slow_mean(wheel: Wheel, x: float, y: float, action: int) -> float:
    """The definition, one case after the other."""
    safe, inner, rim = wheel.means
    if action == 0:
        return safe
    if math.sqrt(x * x + y * y) <= wheel.delta:
        return inner
    excellent = {(True, True): 1, (True, False): 2, (False, True): 3, (False, False): 4}[x >= 0, y >= 0]
    return rim if action == excellent else inner


@pytest.mark.parametrize("wheel", [Wheel(), Wheel(0.3, (0.0, -2.0, 7.0), 0.5)])
def test_expected_rewards_are_those_of_the_definition(wheel: Wheel) -> None:
    rounds = wheel.sample(2000, np.random.default_rng(0))
    slow = [[slow_mean(wheel, float(x), float(y), a) for a in range(5)] for x, y in rounds.contexts]
    np.testing.assert_array_equal(rounds.expected_table, slow)
    assert len(np.unique(rounds.expected_table.argmax(axis=1))) == 5


def test_contexts_are_uniform_on_the_disk() -> None:
    x = Wheel().sample(20000, np.random.default_rng(1)).contexts.astype(float)
    radius = np.hypot(x[:, 0], x[:, 1])
    assert radius.max() <= 1 + 1e-6
    for r in (0.2, 0.5, 0.95):
        assert_rate_is(radius <= r, r**2, f"radius {r}")
    for quadrant in range(4):
        assert_rate_is((2 * (x[:, 0] < 0) + (x[:, 1] < 0)) == quadrant, 0.25, f"quadrant {quadrant}")


def test_noise_and_the_value_of_the_best_policy() -> None:
    wheel = Wheel(0.8, (1.2, 1.0, 5.0), 0.3)
    rounds = wheel.sample(20000, np.random.default_rng(2))
    assert_mean_is(rounds.best, wheel.best_value)
    assert_mean_is((rounds.table - rounds.expected_table)[:, 3] ** 2, 0.09, "variance of the noise")


@pytest.mark.parametrize("wrong", [{"delta": 1.5}, {"noise": -1.0}, {"means": (1.0, 2.0, 3.0)}])
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        Wheel(**wrong)
