"""How wide intervals for any time are, beside the best that are known: half-widths at 1,000, 10,000 and 100,000 rows.

Rivals get the same doubly robust terms, of a reward model that sees earlier rows only, and the largest and smallest
possible term. "DR betting": the hedged capital with predictable plug-in bets of Waudby-Smith and Ramdas, λ_t =
√(2 log(2/δ)/(σ̂²_{t-1} t log(1 + t))) cut at half of the largest possible bet. "asymptotic": the sequence of
Waudby-Smith et al. with ρ tuned to the number of rows, which holds only in the limit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import o2pl
from benchmarks.guarantees.doors import DELTA
from benchmarks.guarantees.worlds import Array, World, always, linear, softmax
from o2pl.evaluation.gains import Gains, gains_of
from o2pl.evaluation.running_rewards import running_rewards
from o2pl.evaluation.sequences import confidence_sequence
from o2pl.evaluation.support import support_of
from o2pl.evaluation.unshown import Side
from o2pl.evaluation.values import columns_for_values
from o2pl.learners.targets import as_target

WIDTHS = Path(__file__).parents[2] / "docs" / "guarantees-widths.json"
SIZES = (1_000, 10_000, 100_000)
_SEEDS = 5
_WORLDS = (
    ("value, softmax logger", softmax(3, 0.7, 22, 0.1), softmax(3, 0.7, 21), None),
    ("difference from the logger", softmax(3, 0.7, 22, 0.1), softmax(3, 0.7, 21), "logged"),
    ("difference of two policies, uniform logger", always(1, 1, 1), softmax(3, 1.0, 21), softmax(3, 1.0, 22)),
)


def hedged(values: Array, low: float, high: float, delta: float) -> float:
    """Return the width of the hedged capital's interval for the mean of values in [low, high]."""
    y, n = (values - low) / (high - low), len(values)
    t = np.arange(1, n + 1)
    means = (np.cumsum(y) + 0.5) / (t + 1)
    variance = (np.cumsum((y - means) ** 2) + 0.25) / (t + 1)
    bets = np.sqrt(2 * math.log(2 / delta) / (np.append(0.25, variance[:-1]) * t * np.log(1 + t)))

    def rejected(m: float, sign: float) -> bool:
        largest = 0.5 / max(m if sign > 0 else 1 - m, 1e-12)
        return bool(np.log1p(sign * np.minimum(bets, largest) * (y - m)).sum() >= math.log(2 / delta))

    below = _root(lambda m: rejected(m, 1.0), 0.0, float(y.mean()))
    above = _root(lambda m: rejected(m, -1.0), 1.0, float(y.mean()))
    return (high - low) * (above - below)


def _root(rejected: Callable[[float], bool], outside: float, inside: float) -> float:
    for _ in range(40):
        middle = (outside + inside) / 2
        outside, inside = (middle, inside) if rejected(middle) else (outside, middle)
    return outside


def asymptotic(values: Array, delta: float) -> float:
    """Return the width 2 σ̂ √(2 (n ρ² + 1)/(n² ρ²) log(√(n ρ² + 1)/δ)), with ρ tuned to n."""
    n, two = len(values), -2 * math.log(delta)
    tuned = two + math.log(two + 1)  # n ρ²
    return float(2 * values.std() * math.sqrt(2 * (tuned + 1) / (n * tuned) * math.log(math.sqrt(tuned + 1) / delta)))


def _terms(world: World, n: int, seed: int, both: bool) -> tuple[Gains, float]:
    """Return the terms of a log, and the width of `evaluate`."""
    case = world.case(seed)
    given: Any = {"at_any_time": True, "delta": DELTA}
    found: o2pl.Evaluation = o2pl.evaluate(case.log, case.policy, baseline=case.baseline if both else None, **given)
    one = found.difference if both else found.best
    model, log = running_rewards(case.log), case.log
    targets = [as_target(policy, log) for policy in ((case.policy, case.baseline) if both else (case.policy,))]
    sides = [
        Side(target, column.inputs, sign)
        for target, column, sign in zip(targets, columns_for_values(log, targets, model), (1, -1), strict=False)
    ]
    assert one is not None
    return gains_of(log, sides, model, support_of(log), True), one.high - one.low


def measured() -> list[dict[str, Any]]:
    """Return the median widths of every case and size."""
    rows = []
    for name, logger, policy, baseline in _WORLDS:
        for n in SIZES:
            world = World(name, "", n, 3, linear(3, 21, 0.2), logger, policy, baseline or "logged")
            found = []
            for seed in range(_SEEDS):
                gains, own = _terms(world, n, seed, baseline is not None)
                low, high = -gains.floors[0], gains.floors[1]
                found.append([own, hedged(gains.estimate, low, high, DELTA), asymptotic(gains.estimate, DELTA)])
            rows.append({"case": name, "rows": n, "widths": np.median(found, axis=0).tolist()})
    for mean in (0.3, 0.02):
        for n in SIZES:
            found = []
            for seed in range(_SEEDS):
                y = (np.random.default_rng(seed).random(n) < mean) * 1.0
                low, high = confidence_sequence(y, DELTA, common=False).last
                found.append([high - low, hedged(y, 0.0, 1.0, DELTA), asymptotic(y, DELTA)])
            name = f"unweighted mean, {mean:.0%} of rewards are 1"
            rows.append({"case": name, "rows": n, "widths": np.median(found, axis=0).tolist()})
    return rows


def store() -> None:
    WIDTHS.write_text(json.dumps(measured(), indent=0) + "\n")
