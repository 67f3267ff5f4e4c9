"""What overlap costs: the runs, and verdicts that follow the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from o2pl.simulation.engines import Local
from o2pl.simulation.experiment import Options
from o2pl.simulation.runner import run
from o2pl.simulation.store import results
from o2pl_reproduction.studies.overlap_price import OVERLAP_PRICE, SETTINGS, error, lost, played


def rows_of(reward: dict[str, float], far: dict[str, float]) -> pa.Table:
    made: list[dict[str, Any]] = []
    for world, level in zip("abcde", (0.4, 0.5, 0.6, 0.4, 0.5), strict=True):
        for name in SETTINGS:
            values = {
                "reward": level + reward.get(name, 0.0),
                "uniform": 0.2,
                "uniform_snips": 0.2 - far.get(name, 0.3),
            }
            made.append(
                {"unit": len(made), "world": world, "learner": name, "seed": 0, "near": 0.4, "near_snips": 0.41}
                | values
                | {"uniform_weight": 0.5, "near_weight": 1.0, "sure": 0.9}
            )
    return pa.Table.from_pylist(made)


def verdicts(rows: pa.Table) -> dict[str, bool]:
    return {claim.id.partition("/")[2]: claim.outcome == "met" for claim in OVERLAP_PRICE.claims(rows)}


def test_verdicts_follow_the_rows() -> None:
    rows = rows_of({"ε = 0.01": -0.005}, {"ε = 0.01": 0.1})
    assert all(verdicts(rows).values())
    np.testing.assert_allclose(lost(rows)["ε = 0.01"], 0.005)
    np.testing.assert_allclose(error(rows, "uniform")["ε = 0.01"], 0.1)
    np.testing.assert_allclose(error(rows, "near")["ε = 0.05"], 0.01)
    assert not verdicts(rows_of({"ε = 0.01": -0.02}, {"ε = 0.01": 0.1}))["floor-is-cheap"]
    assert not verdicts(rows_of({}, {"ε = 0.01": 0.2}))["floor-helps"]


def test_a_floor_is_what_makes_a_log_tell_of_other_policies(tmp_path: Path) -> None:
    options = Options("quick", seeds=range(1), rounds=600, datasets=["digits"])
    run(OVERLAP_PRICE.experiment, options, out=tmp_path, engine=Local(1))
    rows = results(tmp_path, "overlap-price").to_pylist()
    found = {row["learner"]: row for row in rows}
    assert found["default settings"]["uniform_weight"] < 0.8 * found["ε = 0.05"]["uniform_weight"]
    assert found["ε = 0.05"]["uniform_weight"] == pytest.approx(1, abs=0.25)
    assert found["default settings"]["uniform"] == pytest.approx(0.14)  # .5/10 + .1 · 9/10
    for row in rows:
        assert 0 <= row["uniform_snips"] <= 1
        assert row["near"] > row["uniform"]
    assert [each["`Bandit`"] for each in OVERLAP_PRICE.table(results(tmp_path, "overlap-price"))] == list(SETTINGS)
    assert list(OVERLAP_PRICE.figures(results(tmp_path, "overlap-price"))) == ["overlap-price"]


def test_without_a_folder_the_embedded_sets_play() -> None:
    assert played(None) == ["iris", "wine", "digits"]


def test_the_page_on_exploration_has_the_table_of_the_stored_rows() -> None:
    docs = Path(__file__).parents[3] / "docs"
    rows = pq.read_table(docs / "reproduction" / "overlap-price.parquet")
    shown = OVERLAP_PRICE.table(rows)
    lines = [tuple(shown[0]), ("---",) * len(shown[0]), *(tuple(row.values()) for row in shown)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    assert table in (docs / "how-to" / "explore.md").read_text()
