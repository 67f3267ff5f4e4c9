"""README's verdicts are those of `docs/reproduction/summary.json`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from toy_study import STUDY

from o2pl.errors import InvalidInput
from o2pl.experiments import readme, reproduction
from o2pl.experiments.engines import Local
from o2pl.experiments.studies import STUDIES

ROOT = Path(__file__).parents[2]


def test_readme_says_what_the_summary_says() -> None:
    text = (ROOT / "README.md").read_text()
    summary = json.loads((ROOT / "docs" / "reproduction" / "summary.json").read_text())
    shown = text[text.index(readme.START) + len(readme.START) : text.index(readme.END)]
    assert shown.strip() == readme.verdict_lines(summary, STUDIES, "docs/reproduction")
    assert sum(line.startswith("| [") for line in shown.splitlines()) <= readme.MOST
    titles = (ROOT / "docs" / "reproduction" / "claims.md").read_text()
    assert all(f"## {study.title}" in titles for study in STUDIES if study.headline)


def test_only_the_lines_between_the_markers_change(tmp_path: Path) -> None:
    reproduction.reproduce(tmp_path / "out", studies=[STUDY], engine=Local(1))
    path = tmp_path / "README.md"
    path.write_text(f"before\n{readme.START}\nstale\n{readme.END}\nafter\n")
    readme.update(path, tmp_path / "out", [STUDY])
    text = path.read_text()
    assert text.startswith(f"before\n{readme.START}\nOf 5 claims of the paper: **1** holds as stated,")
    assert text.endswith(f"{readme.END}\nafter\n")
    assert "Of 1 questions of our own: **1** undecided." in text
    assert "| [A toy & its sums](out/claims.md#a-toy--its-sums) | Squares add up <to much>. |" in text
    assert "stale" not in text
    again = [replace(STUDY, headline="toy/gone")]
    readme.update(path, tmp_path / "out", again)
    assert "not measured yet" in path.read_text()


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("no markers")
    with pytest.raises(InvalidInput, match="found no lines between"):
        readme.update(path, tmp_path, [STUDY])
    with pytest.raises(InvalidInput, match="found 11 studies with a headline, expected 10 or fewer"):
        readme.verdict_lines({"counts": {}, "claims": []}, [STUDY] * 11, "docs")
