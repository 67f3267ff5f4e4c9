"""Units of experiments that compare learners in worlds. All learners of a seed play the same rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from o2pl.evaluation.play import play, regret
from o2pl.learners import O2PL, Run
from o2pl.learners.params import Parameters
from o2pl.protocols import Environment, Ints, Rounds
from o2pl.simulation.description import OF_THE_RUN, described, needed_extra
from o2pl.simulation.experiment import Cell, Columns, Unit
from o2pl.simulation.rivals import RIVALS, MakeLearner, seeded_rival
from o2pl.simulation.worlds import ParquetSet
from o2pl.storage import decode_from_storage, encode_for_storage
from o2pl.validation import RewardRange

COLUMNS = {"round": "int64", "mean_reward": "double", "regret": "double"}
POINTS = 100  # of a curve


def o2pl(make: Callable[..., O2PL] = O2PL, **settings: object) -> MakeLearner[O2PL]:
    """Return a factory of `O2PL` or one of its named settings, like those in `RIVALS`."""
    return seeded_rival(make, **settings)


def crossed_units(worlds: Mapping[str, Environment], learners: Mapping[str, MakeLearner[Any]]) -> list[Cell]:
    """Return every world with every learner."""
    return [
        Cell(
            {"name": name, "world": encode_for_storage(world)},
            described(own, learner, OF_THE_RUN),
            needed_extra(learner),
        )
        for name, world in worlds.items()
        for own, make in learners.items()
        for learner in (make(2, None, world.reward_range),)
    ]


def world_of(unit: Unit) -> Any:
    """Return the unit's world. Its data set is a setting; the location of the data set is not."""
    world: Any = decode_from_storage(unit.world["world"])
    if isinstance(getattr(world, "source", None), ParquetSet):
        return replace(world, source=replace(world.source, folder=unit.data))
    return world


def play_unit(world: Environment, learners: Mapping[str, MakeLearner[Any]], unit: Unit) -> Columns:
    """Run the unit's learner in this world."""
    make = learners[unit.learner["name"]]
    unit.check_learner(described(unit.learner["name"], make(2, None, world.reward_range), OF_THE_RUN))
    chance, choice = np.random.SeedSequence(unit.seed).spawn(2)  # the world's, the same for all learners; the learner's
    rounds: Any = world.sample(unit.rounds, np.random.default_rng(chance))
    n_actions: Any = world.n_actions  # None: actions are real numbers
    learner = make(n_actions, int(choice.generate_state(1, np.uint64)[0]), world.reward_range)
    return curve_of_unit(play(learner, rounds), rounds)


@dataclass(frozen=True)
class PlayUnit:
    """Computes units of these worlds and learners. They go to the workers with it, so that they need no module."""

    worlds: Mapping[str, Environment]
    learners: Mapping[str, MakeLearner[Any]]

    def __call__(self, unit: Unit) -> Columns:
        return play_unit(self.worlds[unit.world["name"]], self.learners, unit)


@dataclass(frozen=True)
class NamedRival:
    """Makes a rival by its name, which goes to the workers instead of a function."""

    name: str

    def __call__(self, n_actions: int, seed: int | None, reward_range: RewardRange = (0.0, 1.0)) -> Any:
        return RIVALS[self.name](n_actions, seed, reward_range)


@dataclass(frozen=True)
class LikeTemplate:
    """Makes learners with the settings of this one; number of actions, reward range and seed are those of the run."""

    template: Parameters

    def __call__(self, n_actions: int, seed: int | None, reward_range: RewardRange = (0.0, 1.0)) -> Any:
        settings = self.template.get_params()
        of_the_run = {"n_actions": n_actions, "reward_range": reward_range, "random_state": seed}
        settings |= {name: value for name, value in of_the_run.items() if name in settings}
        return type(self.template)(**settings)


def curve_of_unit(run: Run, rounds: Rounds) -> Columns:
    """Return mean reward and regret so far, at no more than `POINTS` rounds."""
    at = checkpoints_of_unit(len(run.rewards))
    mean = np.cumsum(run.rewards)[at - 1] / at
    return {"round": at, "mean_reward": mean, "regret": regret(run, rounds)[at - 1]}


def checkpoints_of_unit(n: int) -> Ints:
    """Return at most `POINTS` evenly spaced rounds, including the last; counted from 1."""
    return np.unique(np.ceil(np.linspace(n / POINTS, n, POINTS)).astype(np.int64))
