"""What stands first in `claims.md`: a claim of each study, those that are decided first, and where pessimism helps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from toy_study import STUDY

from o2pl.errors import InvalidInput
from o2pl.simulation.engines import Local
from o2pl_reproduction import reproduction
from o2pl_reproduction.registry import STUDIES
from o2pl_reproduction.reports import headlines
from o2pl_reproduction.reports.report import claim_of

ROOT = Path(__file__).parents[3]


def test_the_page_begins_with_a_claim_of_each_study_as_the_summary_has_it() -> None:
    page = (ROOT / "docs" / "reproduction" / "claims.md").read_text()
    summary = json.loads((ROOT / "docs" / "reproduction" / "summary.json").read_text())
    stored = {claim["id"]: claim_of(claim) for claim in summary["claims"]}
    first = page[: page.index("\n## ")]
    assert "\n".join(headlines.headline_lines(stored, STUDIES)) in first
    assert 5 <= sum(line.startswith("- **") for line in first.splitlines()) <= headlines.MOST
    assert all(f"## {study.title}" in page for study in STUDIES if study.headline)


def test_what_does_not_hold_stands_before_what_is_open_in_the_same_letters(tmp_path: Path) -> None:
    reproduction.reproduce(tmp_path, studies=[STUDY], engine=Local(1))
    stored = {c["id"]: claim_of(c) for c in json.loads((tmp_path / "summary.json").read_text())["claims"]}
    several = [replace(STUDY, headline=f"toy/{name}") for name in ("few", "small", "large", "gone", "nothing")]
    lines = [line for line in headlines.headline_lines(stored, several) if line.startswith("-")]
    assert [line.split("**")[1] for line in lines] == [
        "Holds as stated",
        "Does not hold",
        "Undecided",
        "Our own question, undecided",
        "Not measured yet",
    ]
    assert lines[0].endswith(
        "Squares add up <to much>. 2.005e+05 exact, bar ≥ 1000. [A toy & its sums](#a-toy--its-sums)"
    )
    assert lines[0] in (tmp_path / "claims.md").read_text()


def test_there_are_a_few_of_them() -> None:
    with pytest.raises(InvalidInput, match="found 11 studies with a headline, expected 10 or fewer"):
        headlines.headline_lines({}, [STUDY] * 11)


def test_the_page_says_whether_pessimism_helps() -> None:
    summary = json.loads((ROOT / "docs" / "reproduction" / "summary.json").read_text())
    page = (ROOT / "docs" / "reproduction" / "claims.md").read_text()
    shown = page.partition("**Does pessimism")[2].partition("\n## ")[0]
    said = {claim["id"]: claim["verdict"].removeprefix("our own question: ") for claim in summary["claims"]}
    for claim, what in headlines._PESSIMISM.items():
        assert f"| {what} | **{said[claim]}** | " in shown
    assert shown.count("[") == len(headlines._PESSIMISM)  # an interval each
