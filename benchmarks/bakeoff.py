"""The CPU time of the bake-off, like for like: the same sets, rounds and seeds, each side in a process of its own.

    drivers   ours: `run`, on arrays. VW: its own driver, `--cbify`, on a text file: it plays a classification set as a
              bandit, as the published bake-off had it do.
    loops     ours: `act` and `update`. VW: predict and learn through text, as in the other loops of the bench.

VW gets features that were standardised beforehand by the statistics of all rows, which is better than what can be known
round by round, and is not charged for it; ours standardises as it goes. Both play on one core, where VW's driver takes
half the CPU time that it takes on two.

`python -m benchmarks.bakeoff SIDE SEED ROUNDS [FOLDER]` plays one side: the CPU seconds of all sets, the mean reward.
"""

from __future__ import annotations

import cProfile
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import default, vw
from benchmarks.data import World
from benchmarks.internals import standardised
from benchmarks.measure import Row, Skipped, means, of_pairs
from benchmarks.rounds import our_loop
from o2pl.extras import missing_extra
from o2pl.simulation.worlds import WORLDS, Classification, ParquetSet, catalogue
from o2pl.simulation.worlds.datasets import FOLDER_VARIABLE

EMBEDDED = ("iris", "wine", "breast-cancer", "digits")
FIRST_SEED = 10  # of the study
WAYS = {
    "drivers": ("our-run", "vw-driver"),
    "loops": ("our-loop", "vw-loop"),
}


def worlds(data: str | None) -> dict[str, Classification]:
    """The sets at odd positions of the folder's catalogue, none of which tuned anything; or the embedded ones."""
    if data is None:
        return {name: world for name in EMBEDDED if isinstance(world := WORLDS[name], Classification)}
    found = list(catalogue(data).items())[1::2]
    return {name: Classification(ParquetSet(each.id, data)) for name, each in found}


def sampled(data: str | None, seed: int, rounds: int) -> Iterator[World]:
    """The rounds of every set, as the bake-off draws them."""
    for world in worlds(data).values():
        chance, _ = np.random.SeedSequence(FIRST_SEED + seed).spawn(2)
        made = world.sample(rounds, np.random.default_rng(chance))
        yield World(made.contexts, made.table.tolist(), made.table)


# -- the sides: what is made ready, and then the work that is timed; it gives the mean reward

Ready = Callable[[], float]


def our_run(world: World, seed: int, folder: str) -> Ready:
    learner = default.learner(world.table.shape[1], seed)
    return lambda: float(learner.run((world.contexts, world.table)).mean_reward)


def our_python(world: World, seed: int, folder: str) -> Ready:
    learner = default.learner(world.table.shape[1], seed)
    return lambda: our_loop(learner, world.contexts, world.rewards)


def vw_driver(world: World, seed: int, folder: str) -> Ready:
    rounds, n_actions = world.table.shape
    path = Path(folder) / "set.vw"
    vw.class_file(standardised(world.contexts), world.table.argmax(axis=1), path)
    options = f"--cbify {n_actions} {vw.PLAYED} --random_seed {seed + 1}"
    return lambda: vw.driver(path, rounds, options)


def vw_python(world: World, seed: int, folder: str) -> Ready:
    contexts = standardised(world.contexts)
    return lambda: vw.python_loop(contexts, world.rewards, seed)


SIDES: dict[str, Callable[[World, int, str], Ready]] = {
    "our-run": our_run,
    "our-loop": our_python,
    "vw-driver": vw_driver,
    "vw-loop": vw_python,
}


def play(side: str, seed: int, rounds: int, data: str | None) -> dict[str, float]:
    """CPU seconds of all sets, of deciding and learning alone, and the mean over the sets of the mean reward."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    used, earned = 0.0, []
    with tempfile.TemporaryDirectory() as folder:
        SIDES[side](next(sampled(None, seed, rounds)), seed, folder)()  # compile, load
        for world in sampled(data, seed, rounds):
            work = SIDES[side](world, seed, folder)
            start = time.process_time()
            earned.append(work())
            used += time.process_time() - start
    return {"cpu": used, "mean": float(np.mean(earned))}


def cpu(way: str, folder: bool, rounds: int = 5000, seeds: int = 3) -> Row:
    """CPU seconds of the default learner and of VW Greedy, all sets of one seed at a time."""
    data = os.environ.get(FOLDER_VARIABLE) if folder else None
    if missing_extra("vw"):
        raise Skipped("found no package vowpalwabbit")
    if folder and not data:
        raise Skipped(f"needs the folder of data sets in {FOLDER_VARIABLE}")
    if not worlds(data):
        raise Skipped(f"found no data sets in {data}, the folder in {FOLDER_VARIABLE}")
    found = [[_apart(side, seed, rounds, data) for side in WAYS[way]] for seed in range(seeds)]
    row = of_pairs([(ours["cpu"], peer["cpu"]) for ours, peer in found], "CPU s")
    rewards = means([(ours["mean"], peer["mean"]) for ours, peer in found])
    return row._replace(rewards=rewards, note=_where(WAYS[way][0], rounds, data))


def _apart(side: str, seed: int, rounds: int, data: str | None) -> dict[str, float]:
    """One side in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bakeoff", side, str(seed), str(rounds), *([data] if data else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    said: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return said


def _where(side: str, rounds: int, data: str | None, most: int = 5) -> str:
    """Our functions in which most of the time goes, by a profile of one seed."""
    profile = cProfile.Profile()
    for world in sampled(data, 0, rounds):
        profile.runcall(SIDES[side](world, 0, ""))
    profile.create_stats()
    found: Any = profile.stats  # (file, line, name) -> calls, calls, own seconds, ...
    whole = sum(each[2] for each in found.values())
    own = [(each[2] / whole, name) for (file, _, name), each in found.items() if "o2pl" in file]
    shares = (f"`{name}` {share:.0%}" for share, name in sorted(own, reverse=True)[:most])
    return f"Most of our time goes to {', '.join(shares)} (one seed under a profiler, which slows Python)."


if __name__ == "__main__":
    print(json.dumps(play(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] if sys.argv[4:] else None)))
