"""Learners against each other in worlds: what the experiments of this kind share.

A unit's settings hold the world and the learner with every parameter they have, so that a default that changes is a
setting that changes. All learners of a seed meet the same rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from o2pl.environments import ParquetSet
from o2pl.errors import InvalidInput
from o2pl.evaluation.loop import play, regret
from o2pl.experiments.experiment import Cell, Columns, Settings, Unit
from o2pl.learners import O2PL, Run
from o2pl.learners.rivals import UNIT, Range, Recipe
from o2pl.learners.rivals.vw import VowpalWabbit
from o2pl.protocols import Environment, Ints, Rounds
from o2pl.storage import decode, encode

COLUMNS = {"round": "int64", "mean_reward": "double", "regret": "double"}
POINTS = 100  # of a curve
_OF_THE_RUN = ("n_actions", "reward_range", "random_state")  # parameters that the world and the seed decide


def o2pl(make: Callable[..., O2PL] = O2PL, **settings: Any) -> Recipe:
    """`O2PL`, or one of its named settings, as a recipe like those of `RIVALS`."""

    def recipe(n_actions: int, seed: Any, reward_range: Range = UNIT) -> O2PL:
        return make(n_actions, reward_range=reward_range, random_state=seed, **settings)

    return recipe


def cells(worlds: Mapping[str, Environment], learners: Mapping[str, Recipe]) -> list[Cell]:
    """Every world with every learner."""
    return [
        Cell({"name": name, "world": encode(world)}, *_described(learner, recipe, world.reward_range))
        for name, world in worlds.items()
        for learner, recipe in learners.items()
    ]


def _described(name: str, recipe: Recipe, reward_range: Range) -> tuple[Settings, str | None]:
    """The learner's settings, and the package it needs beyond the core install."""
    learner: Any = recipe(2, None, reward_range)
    params = {key: encode(value) for key, value in learner.get_params().items() if key not in _OF_THE_RUN}
    needs = "vowpalwabbit" if isinstance(learner, VowpalWabbit) else None
    return {"name": name, "class": type(learner).__name__, "params": params}, needs


def world_of(unit: Unit) -> Any:
    """The unit's world. The settings say which data set it is made of; where that lies is no setting."""
    world: Any = decode(unit.world["world"])
    if isinstance(getattr(world, "source", None), ParquetSet):
        return replace(world, source=replace(world.source, folder=unit.data))
    return world


def compare(world: Environment, learners: Mapping[str, Recipe], unit: Unit) -> Columns:
    """The unit's learner in this world."""
    recipe = learners[unit.learner["name"]]
    if _described(unit.learner["name"], recipe, world.reward_range)[0] != unit.learner:
        raise InvalidInput(f"{unit.id}: found other settings here, expected {unit.learner}: another version of o2pl?")
    chance, choice = np.random.SeedSequence(unit.seed).spawn(2)  # the world's, the same for all learners; the learner's
    rounds: Any = world.sample(unit.rounds, np.random.default_rng(chance))
    assert world.n_actions is not None
    learner = recipe(world.n_actions, int(choice.generate_state(1, np.uint64)[0]), world.reward_range)
    return curve(play(learner, rounds), rounds)


def curve(run: Run, rounds: Rounds) -> Columns:
    """Mean reward and regret so far, at `POINTS` rounds or fewer."""
    at = checkpoints(len(run.rewards))
    mean = np.cumsum(run.rewards)[at - 1] / at
    return {"round": at, "mean_reward": mean, "regret": regret(run, rounds)[at - 1]}


def checkpoints(n: int) -> Ints:
    """At most `POINTS` rounds, evenly spaced, the last among them; counted from 1."""
    return np.unique(np.ceil(np.linspace(n / POINTS, n, POINTS)).astype(np.int64))
