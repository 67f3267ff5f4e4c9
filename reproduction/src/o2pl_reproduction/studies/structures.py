"""`Bandit` and its rivals under six reward structures, under change, on synthetic worlds and on the wheel.

`structures-tuning` plays candidate settings of the rivals on the tuning half, on seeds from 5000; `structures` plays
the frozen settings on the confirmation half, on seeds from 8000. Every learner is called every round. A row is a part
of a run: all of it, or under change a fortieth. A row depends only on its unit's settings, except `cpu_seconds`, which
is not reproducible. Mean rewards are expected ones, given the actions: less noisy than draws.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from o2pl.evaluation.play import play
from o2pl.simulation.description import built
from o2pl.simulation.experiment import Cell, Columns, Experiment, Size, Unit
from o2pl.simulation.units import world_of
from o2pl.simulation.worlds import WORLDS
from o2pl_reproduction.studies import structures_learners as learners
from o2pl_reproduction.studies import structures_worlds as worlds
from o2pl_reproduction.studies.bakeoff_learners import Participant

STRETCHES = 40  # of a run under change; a quarter of the rounds is ten
COLUMNS = {
    "part": "string",
    "structure": "string",
    "set": "string",
    "half": "string",
    "d": "int64",  # features, nominal ones one-hot
    "K": "int64",
    "played": "int64",  # rounds of the run
    "round": "int64",  # the last of the stretch, from 1; what follows is of the stretch
    "reward": "double",  # the mean of what is expected of the actions taken
    "uniform": "double",  # of a uniform choice
    "best": "double",  # of the best action
    "share": "double",  # of the possible gain: (reward - uniform) / (best - uniform)
    "changes": "int64",  # that the learner says it has noticed in the run; -1: it does not say
    "cpu_seconds": "double",  # of deciding and learning in the run, compilation left out
}


def _learners(part: str) -> list[Participant]:
    if part == "one-hot":
        return [*learners.bandits(), *learners.bakeoff_learners(learners.OF_THE_BAKEOFF)]
    if part == "drift":
        return [*learners.bandits(), *learners.bakeoff_learners(learners.UNDER_CHANGE)]
    if part == "wheel":
        return learners.wheel_learners()
    everyone = learners.structure_learners()
    if part == "structures":
        return everyone
    return [each for each in everyone if each.description["name"] != learners.SLOWEST]


def cells(data: str | None) -> Sequence[Cell]:
    taking_part = {part: _learners(part) for part in worlds.PARTS}
    few = worlds.every_other(data)
    return [
        Cell(world, each.description, each.needs, _seeds(world["part"], each))
        for world in worlds.worlds(data, "structures")
        for each in taking_part[world["part"]]
        if each.description["name"] != learners.SLOWEST or world["set"] in few
    ]


def _seeds(part: str, learner: Participant) -> int:
    return min(worlds.PARTS[part].seeds, learners.SLOW.get(learner.description["name"], worlds.PARTS[part].seeds))


def tuning_cells(data: str | None) -> Sequence[Cell]:
    candidates = learners.candidate_learners()
    return [Cell(world, each.description, each.needs) for world in worlds.tuning_worlds(data) for each in candidates]


def run_unit(unit: Unit) -> Columns:
    world = world_of(unit)
    chance, choice = np.random.SeedSequence(unit.world["first_seed"] + unit.seed).spawn(2)  # all learners: same chance
    rounds = world.sample(min(unit.rounds, unit.world["rounds"]), np.random.default_rng(chance))
    seed = int(choice.generate_state(1, np.uint64)[0])
    learner = built(unit.learner, n_actions=world.n_actions, reward_range=world.reward_range, random_state=seed)
    _compile(json.dumps(unit.learner, sort_keys=True))
    started = time.process_time()
    done = play(learner, rounds, every_round=True)
    seconds = time.process_time() - started
    n = len(rounds)
    rows = np.arange(n)
    earned = rounds.expected(rows, done.actions)
    ends = stretch_ends(n, STRETCHES if unit.world["part"] == "drift" else 1)
    means = [means_of_stretches(values, ends) for values in (earned, rounds.expected_table.mean(axis=1), rounds.best)]
    reward, uniform, best = means
    same = {
        "part": unit.world["part"],
        "structure": unit.world["structure"],
        "set": unit.world["set"],
        "half": unit.world["half"],
        "d": rounds.contexts.shape[1],
        "K": world.n_actions,
        "played": n,
        "changes": len(learner.changes_) if hasattr(learner, "changes_") else -1,
        "cpu_seconds": seconds,
    }
    return {name: [value] * len(ends) for name, value in same.items()} | {
        "round": ends,
        "reward": reward,
        "uniform": uniform,
        "best": best,
        "share": (reward - uniform) / (best - uniform),
    }


def stretch_ends(n: int, stretches: int) -> Any:
    """Return the last rounds, from 1, of `stretches` parts of nearly equal length; at most n parts."""
    parts = min(n, stretches)
    return np.arange(1, parts + 1) * n // parts


def means_of_stretches(values: Any, ends: Any) -> Any:
    """Return the mean of the values [n] in each part."""
    sums = np.append(0.0, np.cumsum(values))[np.append(0, ends)]
    return np.diff(sums) / np.diff(ends, prepend=0)


@cache
def _compile(learner: str) -> None:
    """Play once per process, so that no run's seconds include imports."""
    iris: Any = WORLDS["iris"]
    fresh = built(json.loads(learner), n_actions=3, reward_range=(0.0, 1.0), random_state=0)
    play(fresh, iris.sample(150, np.random.default_rng(0)), every_round=True)


STRUCTURES = Experiment(
    name="structures",
    summary="Bandit and its rivals under six reward structures, under change, on synthetic worlds and on the wheel.",
    sizes={
        "quick": Size(rounds=120, seeds=1, datasets=worlds.QUICK),
        "full": Size(rounds=10_000, seeds=10, datasets=worlds.confirmation),
    },
    cells=cells,
    run=run_unit,
    columns=COLUMNS,
    headline="share",
)

STRUCTURES_TUNING = Experiment(
    name="structures-tuning",
    summary="Candidate settings of the rivals of `structures`, on the tuning half of the sets of --data.",
    sizes={
        "quick": Size(rounds=60, seeds=1, datasets=("structures:noisy:wine",)),
        "full": Size(rounds=1000, seeds=1, datasets=worlds.tuning),
    },
    cells=tuning_cells,
    run=run_unit,
    columns=COLUMNS,
    headline="share",
)
