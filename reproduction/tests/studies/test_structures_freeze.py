from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from o2pl_reproduction.studies.structures_freeze import main
from o2pl_reproduction.studies.structures_learners import ENTRANTS, candidate_learners


def tuning_rows(half: str = "tuning") -> pa.Table:
    """Of boosted trees and SquareCB: the second candidate is the best on average, the first on one of two worlds."""
    made = []
    for each in candidate_learners():
        if each.description["family"] in ("boosted-trees", "squarecb"):
            second = each.description["candidate"] == 1
            for world, share in (
                ("structures:rare:9_nine", 0.3 - 0.1 * second),
                ("structures:costs:9_nine", 0.4 + second),
            ):
                place = {"name": world, "half": half, "first_seed": 5000}
                unit = {"world": place, "learner": each.description, "rounds": 1000, "seed": 0}
                made.append({"settings": json.dumps(unit), "share": share})
    return pa.Table.from_pylist(made)


def test_the_best_mean_share_is_frozen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(tuning_rows(), tmp_path / "structures-tuning.parquet")
    main([str(tmp_path), str(tmp_path / "frozen.json")])
    frozen = json.loads((tmp_path / "frozen.json").read_text())
    assert list(frozen) == ["squarecb", "boosted-trees"]  # as the table of entrants has them
    for family, entry in frozen.items():
        assert entry["settings"] == ENTRANTS[family].candidates[1]
        assert entry["share"] == pytest.approx(0.8)
        assert (entry["tried"], entry["seeds"], entry["rounds"]) == (len(ENTRANTS[family].candidates), [5000], 1000)
    assert "squarecb" in capsys.readouterr().out


def test_rows_of_the_confirmation_half_are_refused(tmp_path: Path) -> None:
    pq.write_table(tuning_rows("confirmation"), tmp_path / "structures-tuning.parquet")
    with pytest.raises(SystemExit, match="found sets of the confirmation half"):
        main([str(tmp_path), str(tmp_path / "frozen.json")])
    with pytest.raises(SystemExit, match="usage"):
        main([])
