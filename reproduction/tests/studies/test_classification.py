from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from o2pl.simulation.experiment import Options
from o2pl_reproduction.studies.classification import CLASSIFICATION, LEARNERS


def test_a_folder_of_data_sets_joins_the_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.normal(size=30), "kind": ["a", "b"] * 15, "target": [0, 1] * 15})
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        pq.write_table(table, tmp_path / folder / "7_small.parquet")
    options = Options(rounds=20, datasets=["7_small"], learners=["uniform"], data=str(tmp_path / "here"))
    unit = CLASSIFICATION.units(options)[0]
    assert unit.number == len(CLASSIFICATION.cells(None)) + list(LEARNERS).index("uniform")
    assert CLASSIFICATION.run(unit)["round"][-1] == 20
    there = CLASSIFICATION.units(replace(options, data=str(tmp_path / "there")))[0]
    assert there.digest == unit.digest
    assert "7_small" not in {cell.world["name"] for cell in CLASSIFICATION.cells(None)}
