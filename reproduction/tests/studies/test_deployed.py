"""The study of policies that ran: verdicts follow the rows, and the made log is covered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from o2pl.simulation.engines import Local
from o2pl.simulation.experiment import Options
from o2pl.simulation.runner import run
from o2pl.simulation.store import results
from o2pl_reproduction.registry import EXPERIMENTS
from o2pl_reproduction.studies.deployed import (
    COLUMNS,
    DEPLOYED,
    ESTIMATORS,
    OBD,
    SYNTHETIC,
    deviations,
    obp_values,
    there,
)


def rows_of(off: dict[str, float], largest: float = 0.7) -> pa.Table:
    made: list[dict[str, Any]] = []
    for world in OBD:
        women = world == "women: bts to random"
        for name in ESTIMATORS:
            made.append(
                {"unit": 0, "world": world, "learner": "evaluate", "seed": 0, "estimator": name, "truth": 0.004}
                | {"value": 0.004 + off.get(name, 0.0005), "error": 0.001, "truth_error": 0.0, "quoted": name == "dr"}
                | {"effective": 100.0, "largest": largest if women else 0.01, "estimated": False, "flagged": women}
            )
    return pa.Table.from_pylist(made)


def verdicts(rows: pa.Table) -> dict[str, bool]:
    return {claim.id.partition("/")[2]: claim.outcome == "met" for claim in DEPLOYED.claims(rows)}


def test_verdicts_follow_the_rows() -> None:
    fine = rows_of({})
    assert verdicts(fine) == {"open-bandit-covered": False, "open-bandit-dr-not-worse": True, "one-row-flagged": True}
    (covered, *_) = DEPLOYED.claims(fine)
    assert (covered.measured.value, covered.verdict) == (1.0, "our own question: undecided")  # six logs cannot tell
    assert deviations(fine, OBD, "dr") == pytest.approx([0.5] * 6)
    worse = verdicts(rows_of({"dr": 0.003}))
    assert not worse["open-bandit-covered"]
    assert not worse["open-bandit-dr-not-worse"]
    assert not verdicts(rows_of({}, largest=0.01))["one-row-flagged"]
    assert [line["log"] for line in DEPLOYED.table(fine)][-1].endswith("⚑")
    assert DEPLOYED.figures(fine)["deployed"].axes


def test_obps_own_numbers_are_there_for_every_log() -> None:
    theirs = obp_values()
    assert sorted(theirs) == sorted(OBD)
    assert theirs["all: random to bts"]["ips"] == pytest.approx(0.0050, abs=1e-4)


def test_the_made_log_runs_everywhere(tmp_path: Path) -> None:
    assert there(None)[0] == SYNTHETIC
    assert EXPERIMENTS["deployed"] is DEPLOYED.experiment
    run(DEPLOYED.experiment, Options("quick", seeds=range(2), rounds=2000), out=tmp_path, engine=Local(1))
    rows = results(tmp_path, "deployed")
    assert set(rows["world"].to_pylist()) == {SYNTHETIC}
    assert set(COLUMNS) <= set(rows.column_names)
    assert len(rows) == 2 * len(ESTIMATORS)
    assert (abs(deviations(rows, [SYNTHETIC], "dr")) < 5).all()
