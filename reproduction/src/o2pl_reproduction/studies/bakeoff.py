"""The bake-off: learners on the classification sets of a folder, tuned on one half of them and compared on the other.

Sets are counted from 0 in the order of the folder's catalogue (the manifest's): even positions are the tuning half, odd
positions the confirmation half. `bakeoff-tuning` plays candidate settings on the tuning half, on seeds from 1000;
`bakeoff` plays the frozen settings on the confirmation half, and on both halves what nothing is tuned for (VW with
default settings, the paper's replay, Algorithm 1 as printed), on seeds from 10. Without a folder both play the sets
embedded in scikit-learn, as a small example without verdicts. One row per run; a row depends only on its unit's
settings, except `cpu_seconds`, which is not reproducible.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from o2pl.evaluation.play import play
from o2pl.simulation.description import Description, built
from o2pl.simulation.experiment import Cell, Columns, Experiment, Size, Unit
from o2pl.simulation.units import world_of
from o2pl.simulation.worlds import WORLDS, Classification, ParquetSet, catalogue
from o2pl.storage import encode_for_storage
from o2pl_reproduction.studies.bakeoff_learners import NOT_TUNED, Participant, candidate_learners, frozen_learners
from o2pl_reproduction.studies.classification import EMBEDDED, HALVES

FIRST_SEED = {"bakeoff": 10, "bakeoff-tuning": 1000}
COLUMNS = {
    "position": "int64",
    "half": "string",
    "protocol": "string",
    "n": "int64",  # rows of the set
    "d": "int64",  # features, nominal ones one-hot
    "K": "int64",  # classes
    "played": "int64",  # rounds: `rounds`, or n if that is less
    "mean_reward": "double",
    "cpu_seconds": "double",  # of deciding and learning alone, a call of each every round; NaN where not asked for
}


def sets(data: str | None, first_seed: int) -> list[Description]:
    """Return the embedded data sets, then those of the folder with their half, as settings of worlds."""
    worlds = [(name, WORLDS[name], "embedded") for name in EMBEDDED]
    for position, (name, source) in enumerate(catalogue(data).items() if data is not None else ()):
        worlds.append((name, Classification(ParquetSet(source.id)), HALVES[position % 2]))
    own = len(EMBEDDED)
    return [
        {
            "name": name,
            "world": encode_for_storage(world),
            "half": half,
            "position": place - own if place >= own else place,
            "first_seed": first_seed,  # offset of the unit's seed
        }
        for place, (name, world, half) in enumerate(worlds)
    ]


def _crossed(worlds: Sequence[Description], learners: Sequence[Participant]) -> list[Cell]:
    return [Cell(world, learner.description, learner.needs) for world in worlds for learner in learners]


def cells(data: str | None) -> Sequence[Cell]:
    """Return all learners on the confirmation half, and the untuned ones on the tuning half too."""
    worlds, learners = sets(data, FIRST_SEED["bakeoff"]), frozen_learners()
    untuned = [each for each in learners if each.description["name"] in NOT_TUNED]
    return [cell for each in worlds for cell in _crossed([each], untuned if each["half"] == "tuning" else learners)]


def tuning_cells(data: str | None) -> Sequence[Cell]:
    worlds = [each for each in sets(data, FIRST_SEED["bakeoff-tuning"]) if each["half"] != "confirmation"]
    return _crossed(worlds, candidate_learners())


def run_unit(unit: Unit) -> Columns:
    world: Classification = world_of(unit)
    seed = unit.world["first_seed"] + unit.seed
    chance, choice = np.random.SeedSequence(seed).spawn(2)  # the world's, the same for all learners; the learner's
    rounds = world.sample(unit.rounds, np.random.default_rng(chance))
    chosen = int(choice.generate_state(1, np.uint64)[0])
    learner = built(unit.learner, n_actions=world.n_actions, random_state=chosen)
    timed = unit.learner.get("timed", True)
    if timed:
        _compile(json.dumps(unit.learner, sort_keys=True))
    started = time.process_time()
    done = play(learner, rounds, every_round=timed)  # called in the same way if seconds are compared
    seconds = time.process_time() - started
    row = {
        "position": unit.world["position"],
        "half": unit.world["half"],
        "protocol": unit.learner["protocol"],
        "n": len(world.dataset),
        "d": rounds.contexts.shape[1],
        "K": world.n_actions,
        "played": len(rounds),
        "mean_reward": done.mean_reward,
        "cpu_seconds": seconds if timed else np.nan,
    }
    return {name: [value] for name, value in row.items()}


@cache
def _compile(learner: str) -> None:
    """Play once per process, so that no run's seconds include imports."""
    iris: Any = WORLDS["iris"]
    made = built(json.loads(learner), n_actions=iris.n_actions, random_state=0)
    play(made, iris.sample(150, np.random.default_rng(0)), every_round=True)


def played_on(*halves: str) -> Callable[[str | None], Sequence[str]]:
    """Return the data sets of these halves of the folder, or the embedded ones. Others run by name only."""

    def names(data: str | None) -> Sequence[str]:
        wanted = ("embedded",) if data is None else halves
        return [each["name"] for each in sets(data, 0) if each["half"] in wanted]

    return names


BAKEOFF = Experiment(
    name="bakeoff",
    summary="O2PL, Vowpal Wabbit and full-history learners on the confirmation half of the sets of --data; VW with "
    "default settings and the paper's own variants on all of them.",
    sizes={
        "quick": Size(rounds=300, seeds=6, datasets=EMBEDDED),
        "full": Size(rounds=5000, seeds=10, datasets=played_on("confirmation", "tuning")),
    },
    cells=cells,
    run=run_unit,
    columns=COLUMNS,
    headline="mean_reward",
)

BAKEOFF_TUNING = Experiment(
    name="bakeoff-tuning",
    summary="Candidate settings of the bake-off's learners, on the tuning half of the sets of --data.",
    sizes={
        "quick": Size(rounds=100, seeds=1, datasets=EMBEDDED[:2]),
        "full": Size(rounds=5000, seeds=2, datasets=played_on("tuning")),
    },
    cells=tuning_cells,
    run=run_unit,
    columns=COLUMNS,
    headline="mean_reward",
)
