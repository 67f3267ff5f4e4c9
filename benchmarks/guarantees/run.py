"""`python -m benchmarks.guarantees [LOGS [DOOR …]]`: how often every door is wrong in every world, and the docs' page.

With doors, only these are counted again, for as many logs as before, and what is new; the other rows are kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.guarantees.catalogue import POWER, WORLDS, AnyWorld, named
from benchmarks.guarantees.doors import DOORS, USUAL

ROWS = Path(__file__).parents[2] / "docs" / "guarantees.json"
_ZERO = 1e-9


def count(world: AnyWorld, name: str, logs: int, first: int = 0) -> dict[str, Any]:
    """Return what a door said of so many logs of a world."""
    door = DOORS[name]
    said = [door.say(world.case(first + seed)) for seed in range(logs)]
    covered = [one.covered for one in said if one.covered is not None]
    estimates = np.array([one.estimate for one in said])
    return {
        "world": world.name, "says": world.says, "door": name, "rows": world.n, "logs": logs,
        "gain": float(np.mean([one.gain for one in said])),
        "error": float(estimates.std()) if np.isfinite(estimates).all() else None,
        "better": sum(one.better for one in said), "worse": sum(one.worse for one in said),
        "falsely better": sum(one.better and one.gain <= _ZERO for one in said),
        "falsely worse": sum(one.worse and one.gain >= -_ZERO for one in said),
        "missed": len(covered) - sum(covered), "intervals": len(covered),
    }  # fmt: skip


def doors_of(world: AnyWorld) -> list[str]:
    """Return the doors that a world is taken to."""
    usual: list[str] = [] if world.only else [*USUAL]
    if not world.reward_range:
        usual = [one for one in usual if one not in ("evaluate, any time", "candidates")]
    return [*usual, *world.doors]


def run(
    logs: int, say: Callable[[str], None], doors: Sequence[str] = (), workers: int | None = None
) -> list[dict[str, Any]]:
    """Count everything, or some doors, and store the rows."""
    tasks = [(world.name, door) for world in (*WORLDS, *POWER) for door in doors_of(world)]
    before = {(row["world"], row["door"]): row for row in json.loads(ROWS.read_text())} if doors else {}
    kept = {task: row for task, row in before.items() if task[1] not in doors}
    rows = []
    with ProcessPoolExecutor(workers) as pool:
        waiting = {
            task: pool.submit(_count, *task, before[task]["logs"] if task in before else logs)
            for task in tasks
            if task not in kept
        }
        for task in tasks:
            rows.append(kept[task] if task in kept else waiting[task].result())
            say(": ".join(task))
    ROWS.write_text(json.dumps(rows, indent=0, ensure_ascii=False) + "\n")
    return rows


def _count(name: str, door: str, logs: int) -> dict[str, Any]:
    return count(named(name), door, logs)
