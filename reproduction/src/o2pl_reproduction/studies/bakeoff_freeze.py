"""Freeze the bake-off's settings: from the rows of `bakeoff-tuning`, the best candidate of each learner.

o2pl-reproduction run bakeoff-tuning --full --data DIR --out OUT
python -m o2pl_reproduction.studies.bakeoff_freeze OUT    # writes bakeoff_settings.json, which `bakeoff` reads
"""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.errors import InvalidInput, MissingExtra
from o2pl.simulation.description import Description
from o2pl.simulation.store import results
from o2pl_reproduction.studies.bakeoff_learners import ENTRANTS, FROZEN, Entrant, read_frozen

if TYPE_CHECKING:
    from pyarrow import Table


def freeze(
    rows: Table, date: str, entrants: Mapping[str, Entrant] = ENTRANTS, measure: str = "mean_reward"
) -> dict[str, Any]:
    """Return the candidate of each learner with the highest mean measure over the tuning sets (ties: the first)."""
    units = [json.loads(text) for text in rows["settings"].to_pylist()]
    if opened := sorted({unit["world"]["name"] for unit in units if unit["world"]["half"] == "confirmation"}):
        raise InvalidInput(f"rows: found sets of the confirmation half ({', '.join(opened)}), expected none to tune on")
    found: dict[str, list[tuple[Description, float]]] = {}
    for unit, reached in zip(units, rows[measure].to_pylist(), strict=True):
        found.setdefault(unit["learner"]["family"], []).append((unit, reached))
    return {
        family: _best(family, runs, len(entrants[family].candidates), measure) | {"date": date}
        for family, runs in found.items()
    }


def _best(family: str, runs: Sequence[tuple[Description, float]], tried: int, measure: str) -> dict[str, Any]:
    given: dict[int, Description] = {}
    reached: dict[int, dict[tuple[str, int, int], float]] = {}  # candidate -> (world, seed, horizon) -> measure
    for unit, value in runs:
        world, learner = unit["world"], unit["learner"]
        given[learner["candidate"]] = learner["given"]
        key = (world["name"], world["first_seed"] + unit["seed"], unit["rounds"])
        reached.setdefault(learner["candidate"], {})[key] = value
    met = sorted(next(iter(reached.values())))
    numbers = range(tried)
    if sorted(reached) != list(numbers) or any(sorted(each) != met for each in reached.values()):
        found = {number: len(each) for number, each in sorted(reached.items())}
        raise InvalidInput(
            f"{family}: found runs {found}, expected all {len(numbers)} settings on the same sets and seeds"
        )
    means = [float(np.mean([reached[number][key] for key in met])) for number in numbers]
    best = int(np.argmax(means))
    return {
        "settings": given[best],
        measure: means[best],
        "tried": len(numbers),
        "candidates": [{"settings": given[number], measure: means[number]} for number in numbers],
        "sets": len({name for name, _, _ in met}),
        "seeds": sorted({seed for _, seed, _ in met}),
        "rounds": max(rounds for _, _, rounds in met),
    }


def write_frozen(
    out: str | os.PathLike[str],
    path: Path = FROZEN,
    experiment: str = "bakeoff-tuning",
    entrants: Mapping[str, Entrant] = ENTRANTS,
    measure: str = "mean_reward",
) -> dict[str, Any]:
    """Freeze the best settings from the rows under `out`; learners that were not tuned there keep their settings."""
    date = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d")
    before = read_frozen(path) if path.exists() else {}
    entries = before | freeze(results(out, experiment), date, entrants, measure)
    ordered = {name: entries[name] for name in entrants if name in entries}
    path.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return ordered


def main(arguments: Sequence[str]) -> None:
    if len(arguments) not in (1, 2):
        sys.exit(
            "usage: python -m o2pl_reproduction.studies.bakeoff_freeze OUT [FILE]  (OUT holds bakeoff-tuning.parquet)"
        )
    try:
        entries = write_frozen(arguments[0], Path(arguments[1]) if len(arguments) == 2 else FROZEN)
    except (InvalidInput, MissingExtra) as error:
        sys.exit(f"error: {error}")
    for name, entry in entries.items():
        print(f"{name:28s} {entry['mean_reward'] or float('nan'):.4f}  {json.dumps(entry['settings'])}")


if __name__ == "__main__":
    main(sys.argv[1:])
