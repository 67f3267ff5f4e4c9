"""Learning from whole histories: growth with the horizon, what a schedule earns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np

from benchmarks.data import logistic_bandit
from benchmarks.measure import Row, of_pairs, seconds
from o2pl import O2PL


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
    both = float(ours), float(peer)
    return Row(*both, float(ours / peer), min(ratios), max(ratios), "mean reward", rewards=both)
