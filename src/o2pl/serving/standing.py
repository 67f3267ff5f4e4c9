"""How the service stands against the uniform policy and the baseline: intervals that hold at any time, from sums.

A confidence sequence of `theory.betting` knows rows by sums A_k alone, and sums of minutes add up. So a minute keeps
ten rows of numbers, two for each question (a lower bound, and the lower bound of the opposite), and the bounds of any
stretch of time come from adding its minutes: exact, at any time, without a row of the log. With u the reward's share
of its range and w = π(a|x)/p the weight of another policy π:

    value of the service        u                       1 - u
    value of π                  w u                     w (1 - u)
    gain of the service over π  (u + w (1 - u)) / 2     (w u + 1 - u) / 2        mean ≤ (1 + gain) / 2, ≤ (1 - gain) / 2

The service's policy moves, so bounds are for the average over the decisions in question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from o2pl.protocols import Floats
from o2pl.theory.betting import BETS, bet_sums, lower_from_sums

OTHERS = ("uniform", "baseline")
_QUESTIONS = ("service", "uniform", "gain over uniform", "baseline", "gain over baseline")
_SHAPE = (2 * len(_QUESTIONS), 1 + len(BETS))  # the number of rows, then the sums A_k


class Interval(NamedTuple):
    rows: int
    low: float
    high: float


def nothing() -> Floats:
    """The sums of no rows, [10, 30]."""
    return np.zeros(_SHAPE)


def tally(rewards: Floats, reward_range: tuple[float, float], uniform: Floats, baseline: Floats) -> Floats:
    """The sums of some decisions: their rewards, and the weights of both other policies. NaN: it is not known there."""
    low, high = reward_range
    u = np.clip((np.asarray(rewards, float) - low) / (high - low), 0.0, 1.0)
    rows = [_row(u), _row(1 - u)]
    for weights in (uniform, baseline):
        known = ~np.isnan(weights)
        w, share = weights[known], u[known]
        rows += [_row(w * share), _row(w * (1 - share))]
        rows += [_row((share + w * (1 - share)) / 2), _row((w * share + 1 - share) / 2)]
    return np.array(rows)


def _row(values: Floats) -> Floats:
    return np.concatenate([[len(values)], bet_sums(np.ascontiguousarray(values))])


def pack(sums: Floats) -> bytes:
    """In half the room, rounded down: bounds never become narrower by it."""
    near = sums.astype("<f4")
    return np.where(near > sums, np.nextafter(near, np.float32(-np.inf)), near).astype("<f4").tobytes()


def unpack(body: bytes) -> Floats:
    return np.frombuffer(body, "<f4").reshape(_SHAPE).astype(float)


def total(bodies: Sequence[bytes]) -> Floats:
    """The sum of what was packed."""
    return np.asarray(np.frombuffer(b"".join(bodies), "<f4").reshape(-1, *_SHAPE).sum(axis=0, dtype=float))


def intervals(sums: Floats, reward_range: tuple[float, float], delta: float = 0.05) -> dict[str, Interval]:
    """By question, those that rows speak to; each holds at all times at once with probability 1 - δ."""
    low, high = reward_range
    found: dict[str, Interval] = {}
    for k, question in enumerate(_QUESTIONS):
        one, two = sums[2 * k], sums[2 * k + 1]
        if one[0] == 0:
            continue
        below, above = (min(lower_from_sums(row[1:], row[0], delta / 2), 1.0) for row in (one, two))
        if question.startswith("gain"):
            ends = (high - low) * (2 * below - 1), (high - low) * (1 - 2 * above)
        else:
            ends = low + (high - low) * below, high - (high - low) * above
        found[question] = Interval(int(one[0]), *ends)
    return found
