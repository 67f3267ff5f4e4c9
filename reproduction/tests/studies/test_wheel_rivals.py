from __future__ import annotations

import numpy as np
import pytest

from o2pl.errors import InvalidInput
from o2pl.evaluation.play import play
from o2pl.simulation.rivals.linear import LinUCB
from o2pl.simulation.worlds import Wheel
from o2pl_reproduction.studies.wheel_rivals import HeadStart


def test_without_a_head_start_it_is_the_method_itself() -> None:
    world = Wheel(delta=0.7)
    rounds = world.sample(300, np.random.default_rng(0))
    own = play(HeadStart(5, "linucb", width=3.0, ridge=0.5), rounds)
    np.testing.assert_array_equal(own.actions, play(LinUCB(5, alpha=3.0, ridge=0.5), rounds).actions)


def test_first_all_actions_are_equally_likely() -> None:
    rounds = Wheel(delta=0.7).sample(800, np.random.default_rng(0))
    for method in ("linucb", "lints"):
        done = play(HeadStart(5, method, warm_start=500, random_state=3), rounds)
        assert set(done.propensities[:500]) == {0.2}
        assert np.bincount(done.actions[:500], minlength=5).min() > 70
        assert (done.propensities[500:] != 0.2).all()


def test_an_action_that_was_never_taken_is_worth_the_level() -> None:
    """Greedy (α = 0): after a reward of 6 for action 0, the others are tried only where the level is above 6."""
    for level, expected in ((0.5, 0), (0.7, 1)):
        learner = HeadStart(3, width=0.0, ridge=0.01, level=level, reward_range=(0.0, 10.0))
        learner.act([1.0])
        learner.update([1.0], 0, 6.0, 1.0)
        assert learner.act([1.0]).action == expected


def test_settings_are_checked() -> None:
    with pytest.raises(InvalidInput, match="level"):
        HeadStart(3, level=2.0).act([1.0])
    with pytest.raises(InvalidInput, match="warm_start"):
        HeadStart(3, warm_start=-1).act([1.0])
    with pytest.raises(InvalidInput, match="method: found 'ucb'"):
        HeadStart(3, "ucb").act([1.0])
