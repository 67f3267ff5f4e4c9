"""The overlap sweep: its worlds, its diagnostics, and verdicts that follow the rows."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from o2pl.simulation.engines import Local
from o2pl.simulation.experiment import Options
from o2pl.simulation.runner import run
from o2pl.simulation.store import results
from o2pl.storage import decode_from_storage
from o2pl_reproduction.studies.offline import LABELS, UNTUNED
from o2pl_reproduction.studies.overlap import FLOORS, LEARNERS, OVERLAP, spared, world


def rows_of(values: dict[str, float], at_lowest: dict[str, float]) -> pa.Table:
    made: list[dict[str, Any]] = []
    for floor, learner, seed in product(FLOORS, LEARNERS, range(5)):
        value = at_lowest.get(learner, values.get(learner, 0.5)) if floor == FLOORS[-1] else values.get(learner, 0.5)
        unit = {"unit": len(made), "world": world(floor), "learner": learner, "seed": seed, "rounds": 9}
        of_log = {"logger": 0.4, "oracle": 0.9, "minimum": floor, "maximum": 0.9, "entropy": 0.5}
        made.append(unit | {"log_rows": 9, "value": value, "sampled": value} | of_log)
    return pa.Table.from_pylist(made)


def verdicts(rows: pa.Table) -> dict[str, bool]:
    return {claim.id.partition("/")[2]: claim.outcome == "met" for claim in OVERLAP.claims(rows)}


def test_the_floor_is_what_the_world_says() -> None:
    for cell in OVERLAP.experiment.cells(None):
        task = decode_from_storage(cell.world["world"])
        if cell.learner["name"] != "o2pl":  # one look at each world is enough
            continue
        logged = task.log(500, np.random.default_rng(0))
        floor = float(cell.world["name"].removeprefix("floor-"))
        assert logged.logging.min() >= floor * (1 - 1e-12)
        assert logged.logging.min() == pytest.approx(floor, rel=0.01)  # a sharp softmax all but reaches it


def test_verdicts_follow_the_rows() -> None:
    values = {"o2pl": 0.8, "dr": 0.7, "ipw-csc": 0.7, "dm-arms": 0.85}
    graceful = verdicts(rows_of(values, {"o2pl": 0.75, "dr": 0.6, "ipw-csc": 0.5}))
    assert graceful["strongest"]
    assert graceful["graceful-dr"]
    assert graceful["graceful-ipw-csc"]
    assert not graceful["graceful-dm-additive"]  # which has nothing to lose
    assert not graceful["graceful"]  # than each of them
    assert not graceful["graceful-dm-arms"]
    assert graceful["low-floors-dr"]
    assert not graceful["strongest-of-all"]
    falls = verdicts(rows_of(values, {"o2pl": 0.65, "dr": 0.6, "ipw-csc": 0.69}))
    assert not falls["strongest"]
    assert not falls["graceful-ipw-csc"]
    assert falls["low-floors-dr"]
    assert not falls["low-floors-ipw-csc"]
    assert spared(rows_of(values, {"o2pl": 0.65, "dr": 0.6}), "o2pl", ["dr"]).value == pytest.approx(0.1 - 0.15)


def test_a_tiny_run_makes_claims_figures_and_a_table(tmp_path: Path) -> None:
    options = Options(rounds=40, seeds=[0])
    assert not run(OVERLAP.experiment, options, out=tmp_path, engine=Local(1)).failures
    rows = results(tmp_path, "overlap")
    assert all(np.isfinite(claim.measured.value) for claim in OVERLAP.claims(rows))
    figure, _ = OVERLAP.figures(rows).values()
    values, diagnostics = figure.axes
    drawn = [name for name in LEARNERS if name in LABELS and name not in UNTUNED]
    assert len(values.lines) == len(drawn) + 1  # and the oracle
    minimum = next(line for line in diagnostics.lines if line.get_ydata()[0] < 0.2)
    where: Any = minimum.get_xdata()
    assert list(where) == sorted(where, reverse=True)
    assert (np.diff(minimum.get_ydata()) < 0).all()
    assert {"learner", "floor-0.1", "floor-0.001"} <= set(OVERLAP.table(rows)[0])
