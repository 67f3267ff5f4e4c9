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


def rates(
    ours: Callable[[], None],
    peer: Callable[[], None],
    work: int,
    unit: str,
    repeats: int = 7,
    clock: Callable[[], float] = time.perf_counter,
) -> Row:
    """`work` units done by each; interleaved, so that a slow spell of the machine hits both."""
    ours()
    peer()  # compile, cache, load
    pairs = [(work / seconds(ours, clock), work / seconds(peer, clock)) for _ in range(repeats)]
    ratios = [a / b for a, b in pairs]
    mine, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    return Row(mine, theirs, statistics.median(ratios), min(ratios), max(ratios), unit)


def seconds(task: Callable[[], None], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    task()
    return clock() - start
