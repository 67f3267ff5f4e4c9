from __future__ import annotations

import numpy as np
import pytest

from o2pl import InvalidInput
from o2pl.simulation.rivals.cats import CATS

pytest.importorskip("vowpalwabbit")


def test_it_stays_within_the_bounds_and_learns() -> None:
    learner, x, total = CATS((0, 10), leaves=8, learning_rate=0.1, random_state=0), np.ones(2, np.float32), []
    for _ in range(1500):
        action, density = learner.act(x)
        assert 0 <= action <= 10
        assert density > 0
        total.append(1 - (action / 10 - 0.3) ** 2)
        learner.update(x, action, total[-1], density)
    assert np.mean(total[-300:]) > np.mean(total[:100])


def test_the_same_seed_decides_the_same() -> None:
    one, two = (CATS((5, 20), random_state=3).act([1.0, 2.0]) for _ in range(2))
    assert tuple(one) == tuple(two)


def test_its_settings_are_those_of_the_command_line() -> None:
    given = CATS((5, 20), leaves=32, bandwidth=2.0, epsilon=0.1, learning_rate=2.0, interactions=True).arguments()
    assert given == (
        "--cats 32 --bandwidth 0.9375 --min_value 5.0 --max_value 20.0 --epsilon 0.1 --learning_rate 2"
        " --interactions ss"
    )
    assert "--bandwidth 0.1171875 " in CATS((5, 20), leaves=64, bandwidth=0.5).arguments()
    assert "interactions" not in CATS((5, 20)).arguments()
    assert CATS((5, 20)).get_params()["leaves"] == 16


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InvalidInput, match="bandwidth"):
        CATS((5, 20), bandwidth=0).act([1.0])
    with pytest.raises(InvalidInput, match="reward"):
        CATS((5, 20)).update([1.0], 7.0, 3.0, 0.1)
