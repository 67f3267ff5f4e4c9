"""Rows of a bake-off whose answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from o2pl_reproduction.studies.bakeoff_scores import LABELS

SETS, SEEDS = 24, 10
SMALLEST = np.argsort([(3 + 7 * row % 40) * (2 + row % 5) for row in range(SETS)])[:5]


def rows_of(gaps: dict[str, Any], learners: list[str] | None = None, half: str = "confirmation") -> pa.Table:
    """O2PL at .7 on every set, and each rival below it by its gap (one for all sets, or one a set; .1 where none)."""
    made: list[dict[str, Any]] = []
    noise = np.random.default_rng(0).normal(0, 0.004, (SETS, SEEDS))
    for place, learner in enumerate(learners or list(LABELS)):
        below = np.broadcast_to(0.0 if learner == "o2pl" else gaps.get(learner, 0.1), SETS)
        for row in range(SETS):
            for seed in range(SEEDS):
                k = 2 + row % 5
                made.append(
                    {
                        "unit": (seed * SETS + row) * len(LABELS) + place,
                        "world": f"{row}_set",
                        "learner": learner,
                        "seed": seed,
                        "position": 2 * row + 1,
                        "half": half,
                        "n": 100 * (row + 1),
                        "d": 3 + 7 * row % 40,
                        "K": k,
                        "played": 100 * (row + 1),
                        "mean_reward": 0.7 - float(below[row]) + (0 if learner == "o2pl" else noise[row, seed]),
                        "cpu_seconds": 1.0 if learner == "o2pl" else 0.9,
                    }
                )
    return pa.Table.from_pylist(made)
