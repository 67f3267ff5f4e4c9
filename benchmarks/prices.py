"""A number between bounds, `ContinuousBandit` with default settings beside VW's CATS, tuned."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.internals import CATS, TUNED
from benchmarks.measure import Played, Row, played
from o2pl import ContinuousBandit
from o2pl.evaluation.play import play_timed
from o2pl.simulation.worlds.response import RESPONSES, ResponseRounds


def loop(name: str, rounds: int = 3000, repeats: int = 7) -> Row:
    """CPU time of `act` and `update`; the settings of CATS are those of the study `prices`."""
    world = RESPONSES[name]

    def ours(stretch: ResponseRounds, seed: int) -> Played:
        return _play(ContinuousBandit(world.bounds, reward_range=world.reward_range, random_state=seed), stretch)

    def peer(stretch: ResponseRounds, seed: int) -> Played:
        settings: dict[str, Any] = {**TUNED[name], "reward_range": world.reward_range, "random_state": seed}
        return _play(CATS(world.bounds, **settings), stretch)

    def stretch(seed: int) -> ResponseRounds:
        return world.sample(rounds, np.random.default_rng(seed))

    return played(stretch, ours, peer, rounds, repeats)


def _play(learner: Any, rounds: ResponseRounds) -> Played:
    """The mean of the rewards, and the CPU seconds of `act` and `update`."""
    actions, seconds = play_timed(learner, rounds, len(rounds))
    return Played(float(rounds.rewards(np.arange(len(rounds)), actions).mean()), seconds)
