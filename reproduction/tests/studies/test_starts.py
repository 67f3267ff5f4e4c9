from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from o2pl.simulation.engines import Local
from o2pl.simulation.experiment import Options
from o2pl.simulation.runner import run
from o2pl.simulation.store import results
from o2pl_reproduction.studies.starts import (
    BOUND,
    COLUMNS,
    LEARNERS,
    PENALTIES,
    STARTS,
    STARTS_STUDY,
    WORLDS,
    solve,
    solve_times,
)


def test_a_bounded_minimum_is_found() -> None:
    def bowl(params: Any) -> Any:
        return float(((params - [3.0, 20.0]) ** 2).sum()), 2 * (params - [3.0, 20.0])

    value, found = solve(bowl, np.zeros(2), BOUND)
    assert found == pytest.approx([3.0, BOUND])
    assert value == pytest.approx(100.0)


def test_the_history_is_solved_at_the_end_too() -> None:
    times = solve_times(100, 20, 1.25)
    assert times[:3] == [20, 25, 31]
    assert times[-1] == 100
    assert solve_times(5, 20, 1.25) == [5]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out: Path = tmp_path_factory.mktemp("starts")
    report = run(STARTS, Options("quick", rounds=25, seeds=range(5)), out=out, engine=Local(1))
    assert not report.failures, report.failures[0][1]
    return results(out, "starts")


def test_the_best_start_is_below_all_others(rows: Any) -> None:
    one = np.char.startswith(np.asarray(rows["learner"]).astype(str), "one-start")
    for name in ("gap_previous", "gap_zero", "gap_random"):
        gaps = np.asarray(rows[name])
        assert (gaps[~one] >= 0).all()
        assert np.isnan(gaps[one]).all() or name == "gap_previous"
    assert (np.asarray(rows["gap_previous"])[one] == 0).all()
    assert ((np.asarray(rows["reached"])[~one] >= 0) & (np.asarray(rows["reached"])[~one] <= 1)).all()
    assert (np.diff(np.asarray(rows["regret"])[np.asarray(rows["unit"]) == 0]) >= 0).all()


def test_claims_follow_the_rows(rows: Any) -> None:
    claims = {claim.id: claim for claim in STARTS_STUDY.claims(rows)}
    assert len(claims) == 4 * len(WORLDS) * len(PENALTIES)
    assert set(STARTS_STUDY.figures(rows)) == {"gaps"}
    assert len(STARTS_STUDY.table(rows)) == len(WORLDS) * len(PENALTIES) * len(LEARNERS)
    alike = changed(rows, gap_previous=0.0, reached=1.0, value=0.5, value_worst=0.5)
    found = {claim.id: claim.verdict for claim in STARTS_STUDY.claims(alike)}
    assert {found[f"starts/{key}-margin"] for key in ("previous", "reached", "value")} == {"our own question: yes"}
    apart = changed(rows, gap_previous=0.1, reached=0.2, value=0.5, value_worst=0.3)
    found = {claim.id: claim.verdict for claim in STARTS_STUDY.claims(apart)}
    assert {found[f"starts/{key}-logistic"] for key in ("previous", "reached", "value")} == {"our own question: no"}


def changed(rows: pa.Table, **values: float) -> pa.Table:
    for name, value in values.items():
        assert name in COLUMNS
        rows = rows.set_column(rows.schema.get_field_index(name), name, pa.array([value] * len(rows)))
    return rows
