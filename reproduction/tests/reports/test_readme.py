"""README's verdicts are those of `docs/reproduction/summary.json`."""

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
from o2pl_reproduction.reports import readme

ROOT = Path(__file__).parents[3]


def test_readme_says_what_the_summary_says() -> None:
    text = (ROOT / "README.md").read_text()
    summary = json.loads((ROOT / "docs" / "reproduction" / "summary.json").read_text())
    shown = text[text.index(readme.START) + len(readme.START) : text.index(readme.END)]
    assert shown.strip() == readme.verdict_lines(summary, STUDIES, "docs/reproduction")
    assert 5 <= sum(line.startswith("- **") for line in shown.splitlines()) <= readme.MOST
    titles = (ROOT / "docs" / "reproduction" / "claims.md").read_text()
    assert all(f"## {study.title}" in titles for study in STUDIES if study.headline)


def test_readme_says_of_vw_what_the_table_says() -> None:
    """Bandit's mean share of the possible gain is above that of every algorithm of VW, in each of six structures."""
    text = " ".join((ROOT / "README.md").read_text().split())
    assert "earned more than each of VW's algorithms under all six kinds of rewards that we tried" in text
    lines = json.loads((ROOT / "docs/reproduction/summary.json").read_text())["tables"]["structures"]
    shares = {
        line["learner"]: {k: float(v) for k, v in line.items() if k.startswith("share: ") and v} for line in lines
    }
    rivals = [name for name in shares if name.startswith("VW ") and shares[name]]
    assert len(rivals) >= 4
    assert len(shares["Bandit"]) == 6
    for rival in rivals:
        for structure, share in shares[rival].items():
            assert shares["Bandit"][structure] > share, (rival, structure)


def test_only_the_lines_between_the_markers_change(tmp_path: Path) -> None:
    reproduction.reproduce(tmp_path / "out", studies=[STUDY], engine=Local(1))
    path = tmp_path / "README.md"
    path.write_text(f"before\n{readme.START}\nstale\n{readme.END}\nafter\n")
    readme.update(path, tmp_path / "out", [STUDY])
    text = path.read_text()
    assert text.startswith(f"before\n{readme.START}\n| the paper's 5 claims | holds as stated | ")
    assert text.endswith(f"{readme.END}\nafter\n")
    assert "\n| 1 questions of our own | undecided |\n| --- | --- |\n|  | **1** |\n" in text
    line = "- **Holds as stated**: Squares add up <to much>. 2.005e+05 exact, bar ≥ 1000."
    assert f"{line} [A toy & its sums](out/claims.md#a-toy--its-sums)" in text
    assert "stale" not in text
    again = [replace(STUDY, headline="toy/gone")]
    readme.update(path, tmp_path / "out", again)
    assert "- **Not measured yet**: [A toy & its sums]" in path.read_text()


def test_what_does_not_hold_stands_before_what_is_open_in_the_same_letters(tmp_path: Path) -> None:
    reproduction.reproduce(tmp_path, studies=[STUDY], engine=Local(1))
    summary = json.loads((tmp_path / "summary.json").read_text())
    several = [replace(STUDY, headline=f"toy/{name}") for name in ("few", "small", "large", "gone", "nothing")]
    lines = [line for line in readme.verdict_lines(summary, several, "docs").splitlines() if line.startswith("-")]
    assert [line.split("**")[1] for line in lines] == [
        "Holds as stated",
        "Does not hold",
        "Undecided",
        "Our own question, undecided",
        "Not measured yet",
    ]


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("no markers")
    with pytest.raises(InvalidInput, match="found no lines between"):
        readme.update(path, tmp_path, [STUDY])
    with pytest.raises(InvalidInput, match="found 11 studies with a headline, expected 10 or fewer"):
        readme.verdict_lines({"counts": {}, "claims": []}, [STUDY] * 11, "docs")


def test_readme_says_whether_pessimism_helps() -> None:
    summary = json.loads((ROOT / "docs" / "reproduction" / "summary.json").read_text())
    shown = (ROOT / "README.md").read_text().partition("**Does pessimism")[2].partition(readme.END)[0]
    said = {claim["id"]: claim["verdict"].removeprefix("our own question: ") for claim in summary["claims"]}
    for claim, what in readme._PESSIMISM.items():
        assert f"| {what} | **{said[claim]}** | " in shown
    assert shown.count("[") == len(readme._PESSIMISM)  # an interval each
