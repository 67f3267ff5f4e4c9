"""Ratios measured in one run: both sides by turns, medians of repeats, and their spread."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar
from unittest.mock import patch

from threadpoolctl import threadpool_limits

World = TypeVar("World")


class Row(NamedTuple):
    """ours and theirs are rates (higher is better) unless the row says otherwise; ratio is ours / theirs."""

    ours: float
    peer: float
    ratio: float
    low: float  # the smallest and the largest ratio among the repeats
    high: float
    unit: str
    note: str = ""  # what bounds it, where the measurement found out
    rewards: tuple[float, float] | None = None  # the mean reward of both sides, where both decide
    card: str = ""  # the accelerator, of rows that were measured on one


class Bench(NamedTuple):
    """A row of the table: what is measured, beside whom, and the bar it is held to."""

    group: str
    what: str
    against: str
    measure: Callable[..., Row]
    bar: str = ""  # on the ratio; "gap": on the peer's value less ours; "value": on ours. Empty: none
    quick: Mapping[str, Any] = {}  # arguments of `measure` for a tiny size
    threads: int = 1  # of BLAS and of our solves


class Skipped(Exception):
    """This row cannot be measured here; says why."""


class Told(float):
    """The seconds that a task took by its own clock, which counts where a task returns it."""


class Played(NamedTuple):
    """A mean reward, and the seconds it took by the player's own clock."""

    mean: float
    seconds: float


Task = Callable[[], object]
Clock = Callable[[], float]
Side = Callable[[World, int], "float | Played"]  # plays a world with a seed: the mean reward


@contextmanager
def threads(count: int) -> Iterator[None]:
    """As many threads for BLAS and for our solves, here and in processes that start within."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    with threadpool_limits(count, user_api="blas"), patch.dict(os.environ, dict.fromkeys(names, str(count))):
        yield


def played(
    world: Callable[[int], World],
    ours: Side[World],
    peer: Side[World],
    rounds: int,
    repeats: int = 7,
    clock: Clock = time.perf_counter,
    unit: str = "rounds/s",
) -> Row:
    """Rounds per second, and the mean rewards over the repeats.

    Each repeat has a world of its own, made beforehand, which both sides play, first one and then the other.
    """
    first = world(0)
    for side in (ours, peer):  # compile, cache, load
        side(first, 0)
    rates, rewards = [], []
    for seed in range(repeats):
        here, found = world(seed), {}
        for side in (ours, peer) if seed % 2 == 0 else (peer, ours):
            start = clock()
            said = side(here, seed)
            took = clock() - start
            found[side] = said if isinstance(said, Played) else Played(said, took)
        mine, theirs = found[ours], found[peer]
        rates.append((rounds / mine.seconds, rounds / theirs.seconds))
        rewards.append((mine.mean, theirs.mean))
    return of_pairs(rates, unit)._replace(rewards=means(rewards))


def means(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    """Of both sides, over the repeats."""
    ours, peer = (statistics.fmean(side) for side in zip(*pairs, strict=True))
    return ours, peer


def rates(
    ours: Task,
    peer: Task,
    work: int,
    unit: str,
    repeats: int = 7,
    clock: Clock = time.perf_counter,
    peer_work: int | None = None,
) -> Row:
    """`work` units done by each (`peer_work` by a slow peer), per second. Interleaved: a slow spell hits both."""
    ours()
    peer()  # compile, cache, load
    theirs = peer_work or work
    return of_pairs([(work / seconds(ours, clock), theirs / seconds(peer, clock)) for _ in range(repeats)], unit)


def times(ours: Task, peer: Task, unit: str, repeats: int = 7, clock: Clock = time.perf_counter) -> Row:
    """Milliseconds of each; lower is better."""
    ours()
    peer()
    return of_pairs([(1e3 * seconds(ours, clock), 1e3 * seconds(peer, clock)) for _ in range(repeats)], unit)


def of_pairs(pairs: list[tuple[float, float]], unit: str) -> Row:
    """Medians of both sides and of the pairs' ratios."""
    ratios = [a / b for a, b in pairs]
    mine, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    return Row(mine, theirs, statistics.median(ratios), min(ratios), max(ratios), unit)


def seconds(task: Task, clock: Clock = time.perf_counter) -> float:
    start = clock()
    result = task()
    return float(result) if isinstance(result, Told) else clock() - start
