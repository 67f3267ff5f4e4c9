"""Learning from whole histories: growth with the horizon, seeds side by side, the bake-off's CPU time."""

from __future__ import annotations

import cProfile
import os
import time
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.data import logistic_bandit
from benchmarks.measure import Row, Skipped, of_pairs, seconds
from o2pl import O2PL
from o2pl.environments.datasets import FOLDER_VARIABLE
from o2pl.evaluation.loop import play
from o2pl.experiments import bakeoff
from o2pl.experiments.classification import EMBEDDED
from o2pl.experiments.engines import Failed, Local
from o2pl.experiments.experiment import Columns, Options, Unit, available


def linear(schedule: str, seed: int = 0) -> O2PL:
    return O2PL(5, policy="linear", schedule=schedule, random_state=seed)


def exact_growth(schedule: str, sizes: Sequence[int] = (10_000, 100_000, 1_000_000), repeats: int = 3) -> Row:
    """The exponent of CPU time in T of a schedule; the peer is linear cost, 1."""
    contexts, rewards = logistic_bandit(sizes[-1], 20, 5)

    def cost(t: int) -> float:
        return seconds(lambda: linear(schedule).run((contexts[:t], rewards[:t])), time.process_time)

    cost(sizes[0])
    costs = [[cost(t) for t in sizes] for _ in range(repeats)]
    found = [float(np.polyfit(np.log(sizes), np.log(each), 1)[0]) for each in costs]
    medians = np.median(costs, axis=0)
    steps = (
        f"{b / a:.1f} from T = {s:,} to {t:,}"
        for (a, b), (s, t) in zip(pairwise(medians), pairwise(sizes), strict=True)
    )
    spent = f"{medians[-1]:.1f} CPU s at T = {sizes[-1]:,}"
    return of_pairs([(each, 1.0) for each in found], "exponent")._replace(
        note=f"{spent}; the cost grows by a factor of {', '.join(steps)}."
    )


@cache
def _mean_reward(schedule: str, rounds: int, seed: int) -> float:
    return linear(schedule, seed).run(logistic_bandit(rounds, 20, 5, seed)).mean_reward


def exact_reward(schedule: str, rounds: int = 5000, seeds: int = 10) -> Row:
    """Mean reward of a schedule against solving every round, over seeds."""
    pairs = [[_mean_reward(each, rounds, seed) for each in (schedule, "exact")] for seed in range(seeds)]
    ours, peer = np.mean(pairs, axis=0)
    ratios = [a / b for a, b in pairs]
    return Row(float(ours), float(peer), float(ours / peer), min(ratios), max(ratios), "mean reward")


def seed_run(unit: Unit) -> Columns:
    """What a worker does with one seed: makes the world and plays it."""
    world = logistic_bandit(unit.rounds, 20, 5, unit.seed)
    learner = O2PL(5, policy="linear", schedule="replay", random_state=unit.seed)
    return {"mean_reward": [learner.run(world).mean_reward]}


def seeds_at_once(seeds: int = 10, rounds: int = 1_000_000, repeats: int = 3) -> Row:
    """The experiment runner with two workers against one; both start their processes within the time."""
    units = [Unit("seeds", seed, {}, {}, rounds, seed) for seed in range(seeds)]

    def rate(workers: int) -> float:
        start = time.perf_counter()
        for _, outcome in Local(workers).compute(seed_run, units):
            if isinstance(outcome, Failed):
                raise RuntimeError(outcome.traceback)
        return seeds / (time.perf_counter() - start)

    seed_run(Unit("seeds", 0, {}, {}, 1000, 0))  # compile: the workers read it from disk
    return of_pairs([(rate(2), rate(1)) for _ in range(repeats)], "seeds/s")


def bakeoff_cpu(folder: bool, rounds: int | None = None, seeds: int = 3) -> Row:
    """CPU seconds of `O2PL()` and of VW Greedy as the bake-off plays them, all sets of one seed at a time."""
    data = os.environ.get(FOLDER_VARIABLE)
    if not available("vowpalwabbit"):
        raise Skipped("found no package vowpalwabbit")
    if folder and not data:
        raise Skipped(f"needs the folder of data sets in {FOLDER_VARIABLE}")
    learners = ("o2pl", "vw-greedy")
    options = Options("full", rounds, range(seeds), learners, None if folder else EMBEDDED, data if folder else None)
    used = {(seed, learner): 0.0 for seed in range(seeds) for learner in learners}
    units = bakeoff.BAKEOFF.units(options)
    for unit in units:
        used[unit.seed, unit.learner["name"]] += bakeoff.run(unit)["cpu_seconds"][0]
    row = of_pairs([(used[seed, "o2pl"], used[seed, "vw-greedy"]) for seed in range(seeds)], "CPU s")
    return row._replace(note=_where([unit for unit in units if unit.seed == 0 and unit.learner["name"] == "o2pl"]))


def _where(units: Sequence[Unit], most: int = 5) -> str:
    """Our functions in which most of the time goes, by a profile, and their share of deciding and learning."""
    profile = cProfile.Profile()
    for unit in units:
        profile.runcall(bakeoff.run, unit)
    profile.create_stats()
    found: Any = profile.stats  # (file, line, name) -> calls, calls, own seconds, seconds with what it calls, callers
    whole = sum(each[3] for (_, _, name), each in found.items() if name == play.__name__)
    own = [(each[2] / whole, name) for (file, _, name), each in found.items() if "o2pl" in file]
    shares = (f"`{name}` {share:.0%}" for share, name in sorted(own, reverse=True)[:most])
    return f"Most of the time goes to {', '.join(shares)} (one seed under a profiler, which slows Python)."
