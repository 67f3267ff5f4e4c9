from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from toy_study import STUDY

from o2pl.simulation.engines import Local
from o2pl.simulation.store import results
from o2pl_reproduction import reproduction
from o2pl_reproduction.registry import STUDIES
from o2pl_reproduction.reports import report
from o2pl_reproduction.reports.headlines import anchor

ROOT = Path(__file__).parents[2]
STORED = ROOT / "docs" / "reproduction"


def test_a_unit_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_FAILS", "two")
    sections, failures = reproduction.reproduce(tmp_path, studies=[STUDY], engine=Local(1))
    assert [unit.learner["name"] for unit, _ in failures] == ["two"]
    assert len(sections) == 1  # of the rows that are there


def test_each_study_remembers_how_its_rows_were_made(tmp_path: Path) -> None:
    report.write_made(tmp_path, {"wheel": {"size": "full"}})
    reproduction.reproduce(tmp_path, studies=[STUDY], engine=Local(1))
    made = report.read_made(tmp_path)
    assert (made["wheel"]["size"], made["toy"]["size"]) == ("full", "quick")


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documents, made again from the stored rows; of studies without rows what was found before is kept."""
    folder: Path = tmp_path_factory.mktemp("reproduction")
    for path in [*STORED.glob("*.parquet"), STORED / "made.json", STORED / "summary.json"]:
        shutil.copy(path, folder / path.name)
    kept = [study for study in STUDIES if not (STORED / f"{study.experiment.name}.parquet").exists()]
    (folder / "figures").mkdir()
    for study in kept:
        for path in (STORED / "figures").glob(f"{study.experiment.name}-*.png"):
            shutil.copy(path, folder / "figures" / path.name)
    report.build(folder, STUDIES)
    return folder


def test_stored_rows_make_every_number_of_the_documents(rebuilt: Path) -> None:
    found, stored = (json.loads((folder / "summary.json").read_text()) for folder in (rebuilt, STORED))
    assert alike(found, stored)
    assert (rebuilt / "claims.md").read_text() == (STORED / "claims.md").read_text()


def alike(found: Any, stored: Any) -> bool:
    """The same, numbers but for rounding."""
    if isinstance(found, dict):
        return found.keys() == stored.keys() and all(alike(found[key], stored[key]) for key in found)
    if isinstance(found, list):
        return len(found) == len(stored) and all(alike(*pair) for pair in zip(found, stored, strict=True))
    if isinstance(found, float):
        return math.isclose(found, stored, rel_tol=1e-6, abs_tol=1e-9)
    return bool(found == stored)


def test_and_every_figure(rebuilt: Path) -> None:
    made, shown = ({path.name for path in (folder / "figures").glob("*.png")} for folder in (rebuilt, STORED))
    assert made == shown


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.experiment.name)
def test_a_study_copes_with_the_few_rows_of_its_small_size(study: Any) -> None:
    """The worlds, learners and seeds of `o2pl reproduce`, of the stored rows."""
    name, size = study.experiment.name, study.experiment.sizes["quick"]
    if not (STORED / f"{name}.parquet").exists():
        pytest.skip("no stored rows")
    rows = results(STORED, name)
    rows = rows.filter(pc.less(rows["seed"], size.seeds))
    worlds = size.datasets(None) if callable(size.datasets) else size.datasets
    for column, wanted in (("world", worlds), ("learner", size.learners)):
        if wanted is not None:
            rows = rows.filter(pc.is_in(rows[column], value_set=pa.array(list(wanted))))
    if not len(rows):
        pytest.skip("the small size has worlds of its own")
    study.figures(rows)  # none may be left to draw, but none may fail
    study.table(rows)
    assert study.claims(rows)


def test_rows_are_few_megabytes_and_those_that_are_missing_are_named() -> None:
    assert sum(path.stat().st_size for path in STORED.glob("*.parquet")) < 6_000_000
    text = (STORED / "claims.md").read_text()
    for study in STUDIES:
        section = text.partition(f"## {study.title}\n")[2].partition("\n## ")[0]
        assert section, study.title
        stored = (STORED / f"{study.experiment.name}.parquet").exists()
        assert ("The rows of this study are not stored here yet" in section) == (not stored)


def test_links_into_the_claims_find_their_study() -> None:
    known = {anchor(study.title) for study in STUDIES}
    for path in [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]:
        assert set(re.findall(r"reproduction/claims\.md#([^)]+)\)", path.read_text())) <= known, path.name
