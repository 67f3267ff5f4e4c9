"""`python -m benchmarks.guarantees [LOGS]`: how often every door is wrong in every world, and the page of the docs."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.guarantees.doors import DOORS
from benchmarks.guarantees.worlds import POWER, WORLDS, World, named

ROWS = Path(__file__).parents[2] / "docs" / "guarantees.json"


def count(world: World, door: str, logs: int, first: int = 0) -> dict[str, Any]:
    """Return what a door said of so many logs of a world."""
    said = [DOORS[door](world.case(first + seed)) for seed in range(logs)]
    value, base = world.truth()
    covered = [one.covered for one in said if one.covered is not None]
    return {
        "world": world.name, "says": world.says, "door": door, "rows": world.n, "logs": logs, "gain": value - base,
        "better": sum(one.better for one in said), "worse": sum(one.worse for one in said),
        "missed": len(covered) - sum(covered), "intervals": len(covered),
    }  # fmt: skip


def doors_of(world: World) -> list[str]:
    """Return the doors that a world can be taken to."""
    found = [door for door in DOORS if door != "fit" or world.equal]
    return found if world.reward_range else [one for one in found if one not in ("evaluate, any time", "candidates")]


def run(logs: int, say: Callable[[str], None], workers: int | None = None) -> list[dict[str, Any]]:
    """Count everything, and store the rows."""
    tasks = [(world.name, door) for world in (*WORLDS, *POWER) for door in doors_of(world)]
    rows = []
    with ProcessPoolExecutor(workers) as pool:
        waiting = [pool.submit(_count, *task, logs) for task in tasks]
        for (name, door), one in zip(tasks, waiting, strict=True):
            rows.append(one.result())
            say(f"{name}: {door}")
    ROWS.write_text(json.dumps(rows, indent=0, ensure_ascii=False) + "\n")
    return rows


def _count(name: str, door: str, logs: int) -> dict[str, Any]:
    return count(named(name), door, logs)
