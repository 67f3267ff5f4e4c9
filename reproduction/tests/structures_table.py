"""Rows of `structures` made by hand: every learner of every part at a level of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from o2pl.simulation.worlds.structured import STRUCTURES
from o2pl_reproduction.studies.structures_learners import ENTRANTS, OF_THE_BAKEOFF, UNDER_CHANGE
from o2pl_reproduction.studies.structures_worlds import DRIFT_SETS, INDEPENDENT, MANY

SETS, SEEDS = 14, 6  # from 14 on scipy tests tied ranks in no time; 6 seeds that agree are significant
STRETCHES = 8  # of a run under change
Levels = dict[tuple[str, str], Any]  # (part or structure, learner) -> reward, one for all sets or one a set


def worlds() -> list[tuple[str, str, str, str]]:
    """part, structure, set, half"""
    own = [f"{place}_set" for place in range(SETS)]
    return [
        *(("one-hot", "one-hot", name, "confirmation") for name in own),
        *(("structures", structure, name, "confirmation") for structure in STRUCTURES for name in own),
        *(("drift", change, name, "tuning") for change in ("none", "reversal", "gradual") for name in DRIFT_SETS),
        *(("independent", "independent", name, "synthetic") for name in INDEPENDENT),
        *(("many actions", "many actions", name, "synthetic") for name in MANY),
        ("wheel", "wheel", "wheel", "synthetic"),
    ]


def learners(part: str) -> list[str]:
    return {
        "one-hot": ["bandit", "bandit-fixed", *OF_THE_BAKEOFF],
        "drift": ["bandit", "bandit-fixed", *UNDER_CHANGE],
        "wheel": ["bandit", "linucb-quadratic", "uniform"],
    }.get(part, [name for name in ENTRANTS if part == "structures" or name != "boosted-trees"])


def rows_of(levels: Levels, left_out: tuple[str, ...] = (), changes: int = 0, cpu: float = 0.9) -> pa.Table:
    """Where nothing is said, Bandit earns .9, its fixed form too and all others .8, of a best 1 and a uniform .2."""
    noise = np.random.default_rng(0).normal(0, 0.0005, (100, SEEDS))
    made: list[dict[str, Any]] = []
    counts: dict[tuple[str, str], int] = {}
    for unit, (part, structure, name, half) in enumerate(worlds()):
        place = counts[part, structure] = counts.get((part, structure), -1) + 1
        for learner in (each for each in learners(part) if each not in left_out):
            usual = 0.9 if learner.startswith("bandit") else 0.8
            level = levels.get((structure, learner), levels.get((part, learner), usual))
            reward = level if np.ndim(level) == 0 else level[place]
            for seed in range(3 if learner == "boosted-trees" else SEEDS):
                for stretch in range(STRETCHES if part == "drift" else 1):
                    late = part != "drift" or stretch >= 6  # the last quarter
                    end = 100 * (stretch + 1)
                    paid = (reward if late else 0.5) + noise[place, seed]
                    made.append(
                        {
                            "unit": unit,
                            "world": f"{part}:{structure}:{name}",
                            "learner": learner,
                            "seed": seed,
                            "part": part,
                            "structure": structure,
                            "set": name,
                            "half": half,
                            "d": 4,
                            "K": 3 + place % 4,
                            "played": 800 if part == "drift" else 100,
                            "round": end,
                            "reward": paid,
                            "uniform": 0.2,
                            "best": 1.0,
                            "share": (paid - 0.2) / 0.8,
                            "changes": changes if learner == "bandit" else -1,
                            "cpu_seconds": cpu if learner == "bandit" else 1.0,
                        }
                    )
    return pa.Table.from_pylist(made)
