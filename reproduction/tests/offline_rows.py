"""Rows of the offline studies as tests want them, and the verdicts on them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from o2pl_reproduction.claims.study import Study


def rows_of(study: Study, values: dict[str, float], seeds: int = 6, rounds: int = 9) -> pa.Table:
    """Rows as a run would write them: every learner is worth `values` (or .5), a little more in each later seed."""
    made: list[Any] = []
    for seed in range(seeds):
        for cell in study.experiment.cells(None):
            world, learner = cell.world["name"], cell.learner["name"]
            value = values.get(f"{learner}@{world}", values.get(learner, 0.5)) + 0.001 * seed
            unit = {"unit": len(made), "world": world, "learner": learner, "seed": seed, "rounds": rounds}
            of_log = {"logger": 0.4, "oracle": 1.0, "minimum": 0.1, "maximum": 0.5, "entropy": 1.0}
            made.append(unit | {"log_rows": rounds, "value": value, "sampled": value - 0.01} | of_log)
    return pa.Table.from_pylist(made)


def verdicts(study: Study, rows: pa.Table) -> dict[str, bool]:
    return {claim.id.partition("/")[2]: claim.outcome == "met" for claim in study.claims(rows)}
