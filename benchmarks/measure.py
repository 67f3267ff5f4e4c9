"""Ratios measured in one run: both sides by turns, medians of repeats, and their spread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """ours and theirs are rates (higher is better) unless the row says otherwise; ratio is ours / theirs."""

    ours: float
    peer: float
    ratio: float
    low: float  # the smallest and the largest ratio among the repeats
    high: float
    unit: str
    note: str = ""  # what bounds it, where the measurement found out


class Skipped(Exception):
    """This row cannot be measured here; says why."""


class Told(float):
    """The seconds that a task took by its own clock, which counts where a task returns it."""


Task = Callable[[], object]
Clock = Callable[[], float]


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
