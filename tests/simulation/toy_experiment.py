"""An experiment small enough to be killed, broken and repeated. As a script it runs itself: OUT WORKERS."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from o2pl.simulation.engines import Local
from o2pl.simulation.experiment import Cell, Experiment, Options, Size, Unit
from o2pl.simulation.rivals import RIVALS
from o2pl.simulation.runner import run
from o2pl.simulation.units import COLUMNS, crossed_units, o2pl, play_unit, world_of
from o2pl.simulation.worlds import WORLDS as ALL_WORLDS

WORLDS, LEARNERS = ("sun", "moon"), ("one", "two", "three")


def cells(data: str | None) -> list[Cell]:
    return [Cell({"name": world}, {"name": learner}) for world in WORLDS for learner in LEARNERS]


def compute(unit: Unit) -> dict[str, object]:
    """Rows that tell one thread from two: a product long enough for BLAS to split. And a note of who was computed."""
    if log := os.environ.get("TOY_LOG"):
        with open(log, "a") as file:
            file.write(f"{unit.number}\n")
    if unit.learner["name"] == os.environ.get("TOY_FAILS"):
        raise ValueError(f"no luck with {unit.world['name']}\nand a second line")
    if unit.learner["name"] == os.environ.get("TOY_DIES"):
        os._exit(7)
    time.sleep(float(os.environ.get("TOY_SLEEP", "0")))
    place = WORLDS.index(unit.world["name"]) * len(LEARNERS) + LEARNERS.index(unit.learner["name"])
    X = np.random.default_rng([unit.seed, place]).standard_normal((200_000, 4)).astype(np.float32)
    gram = (X.T @ X)[0, : unit.rounds].astype(np.float64)
    gram[0] = np.nan if place == 0 else gram[0]  # NaN is a result like any other
    return {"round": np.arange(1, unit.rounds + 1), "value": gram}


TOY = Experiment(
    "toy",
    "Sums of squares.",
    {"quick": Size(rounds=2, seeds=1, datasets=("sun",)), "full": Size(rounds=3, seeds=2)},
    cells,
    compute,
    {"round": "int64", "value": "double"},
    headline="value",
)


PLAYERS = {"o2pl": o2pl(), **{name: RIVALS[name] for name in ("linucb", "greedy-ridge", "squarecb", "uniform")}}


def played(unit: Unit) -> dict[str, object]:
    return dict(play_unit(world_of(unit), PLAYERS, unit))


PLAYED = Experiment(
    "played",
    "Learners on a data set.",
    {"quick": Size(rounds=120, seeds=1)},
    lambda data: crossed_units({"iris": ALL_WORLDS["iris"]}, PLAYERS),
    played,
    COLUMNS,
    headline="mean_reward",
)


def threads(unit: Unit) -> dict[str, object]:
    """How many threads each library of this process computes with."""
    import threadpoolctl

    np.eye(2) @ np.eye(2)
    pools = [(pool["prefix"], pool["num_threads"]) for pool in threadpoolctl.threadpool_info()]
    return {"threads": pools}


def dies(unit: Unit) -> dict[str, object]:
    if unit.number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"number": unit.number}


def unsendable(unit: Unit) -> dict[str, object]:
    return {"function": lambda: unit}


def numbers(log: Path) -> list[int]:
    return sorted(int(line) for line in log.read_text().split()) if log.exists() else []


def ends(session: int) -> bool:
    """Whether all processes of a session are gone within a few seconds."""
    for _ in range(500):
        try:
            os.killpg(session, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


if __name__ == "__main__":
    report = run(TOY, Options("full"), out=sys.argv[1], engine=Local(int(sys.argv[2])))
    print(report.computed)
