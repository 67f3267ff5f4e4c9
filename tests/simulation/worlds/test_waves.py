from __future__ import annotations

import numpy as np
import pytest

from o2pl import InvalidInput
from o2pl.simulation.worlds import Waves


def test_the_best_action_changes_with_the_angle() -> None:
    world = Waves(waves=3, n_actions=4, spare=2, gap=0.8)
    rounds = world.sample(5000, np.random.default_rng(0))
    assert rounds.contexts.shape == (5000, 4)
    assert 0.1 - 1e-9 <= rounds.expected_table.min() < 0.11
    assert rounds.best.max() <= 0.9 + 1e-9
    best = rounds.expected_table.argmax(axis=1)
    angle = np.arctan2(rounds.contexts[:, 1], rounds.contexts[:, 0])
    order = best[np.argsort(angle)]
    changes = (np.diff(order) != 0).sum()
    assert changes in (3 * 4, 3 * 4 - 1)  # each action is best three times around
    np.testing.assert_allclose(np.bincount(best) / 5000, 0.25, atol=0.03)


def test_what_contexts_hold_beside_the_angle_says_nothing() -> None:
    one = Waves(spare=0).sample(100, np.random.default_rng(1))
    radius = 7 * one.contexts
    angle = np.arctan2(radius[:, 1], radius[:, 0])[:, None].astype(np.float64)
    expected = 0.5 + 0.45 * np.cos(3 * angle + 2 * np.pi * np.arange(4) / 4)
    np.testing.assert_allclose(one.expected_table, expected, atol=1e-5)


@pytest.mark.parametrize("settings", [{"waves": 0}, {"n_actions": 1}, {"spare": -1}, {"gap": 0.0}])
def test_settings_are_checked(settings: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(settings))):
        Waves(**settings)
