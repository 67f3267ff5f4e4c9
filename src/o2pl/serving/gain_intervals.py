"""Anytime-valid intervals of the service's reward and of its gain over baseline and uniform policy, from sums.

A confidence sequence of `theory.betting` depends on the rows only through sums A_k, and sums of minutes add up. So each
minute stores ten rows of numbers, two per question (a lower bound, and the lower bound of the complement). The bounds
of any time span come from adding its minutes: exact, anytime-valid, without reading the log. With u the reward as a
fraction of its range and w = π(a|x)/p the weight of another policy π:

    value of the service        u                       1 - u
    value of π                  w u                     w (1 - u)
    gain of the service over π  (u + w (1 - u)) / 2     (w u + 1 - u) / 2        mean ≤ (1 + gain) / 2, ≤ (1 - gain) / 2

The service's policy changes over time, so bounds are for the average over the decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from o2pl.evaluation.judgement import Judgement, judge
from o2pl.protocols import Floats
from o2pl.theory.betting import BETS, bet_sums, betting_lower_from_sums

OTHERS = ("uniform", "baseline")
_QUESTIONS = ("service", "uniform", "gain over uniform", "baseline", "gain over baseline")
_SHAPE = (2 * len(_QUESTIONS), 1 + len(BETS))  # number of rows, then the sums A_k


class Interval(NamedTuple):
    rows: int
    low: float
    high: float


def nothing() -> Floats:
    """Return the sums of no rows, [10, 30]."""
    return np.zeros(_SHAPE)


def tally(rewards: Floats, reward_range: tuple[float, float], uniform: Floats, baseline: Floats) -> Floats:
    """Return the sums of decisions, from rewards and the weights of both other policies (NaN: unknown)."""
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
    """Pack the sums in half the space, rounded down so that bounds never become narrower."""
    near = sums.astype("<f4")
    return np.where(near > sums, np.nextafter(near, np.float32(-np.inf)), near).astype("<f4").tobytes()


def unpack(body: bytes) -> Floats:
    return np.frombuffer(body, "<f4").reshape(_SHAPE).astype(float)


def total(bodies: Sequence[bytes]) -> Floats:
    """Return the sum of packed sums."""
    return np.asarray(np.frombuffer(b"".join(bodies), "<f4").reshape(-1, *_SHAPE).sum(axis=0, dtype=float))


def intervals(sums: Floats, reward_range: tuple[float, float], delta: float = 0.05) -> dict[str, Interval]:
    """Return the intervals by question, where rows exist; each is anytime-valid with probability 1 - δ."""
    low, high = reward_range
    found: dict[str, Interval] = {}
    for k, question in enumerate(_QUESTIONS):
        one, two = sums[2 * k], sums[2 * k + 1]
        if one[0] == 0:
            continue
        below, above = (min(betting_lower_from_sums(row[1:], row[0], delta / 2), 1.0) for row in (one, two))
        if question.startswith("gain"):
            ends = (high - low) * (2 * below - 1), (high - low) * (1 - 2 * above)
        else:
            ends = low + (high - low) * below, high - (high - low) * above
        found[question] = Interval(int(one[0]), *ends)
    return found


def judged(
    policy: str, other: str, found: dict[str, Interval], delta: float, estimate: float | None = None
) -> Judgement | None:
    """Return the judgement of the gain over another policy at level δ; None: nothing is known of the other policy.

    estimate: of the gain, from the same rows; None: the middle of its interval.
    """
    gain = found.get(f"gain over {other}")
    if gain is None:
        return None
    middle = (gain.low + gain.high) / 2 if estimate is None else min(max(estimate, gain.low), gain.high)
    said = "the baseline" if other == "baseline" else "uniform decisions"
    return judge(
        policy, said, middle, gain.low, gain.high, delta=delta, kind="betting, at any time", rows=gain.rows,
        effective=gain.rows,
    )  # fmt: skip
