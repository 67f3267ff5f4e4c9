"""README's numbers of claims are those of `docs/reproduction/summary.json`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from toy_study import STUDY

from o2pl.errors import InvalidInput
from o2pl.simulation.engines import Local
from o2pl_reproduction import reproduction
from o2pl_reproduction.reports import readme

ROOT = Path(__file__).parents[3]


def test_readme_says_what_the_summary_says() -> None:
    text = (ROOT / "README.md").read_text()
    summary = json.loads((ROOT / "docs" / "reproduction" / "summary.json").read_text())
    shown = text[text.index(readme.START) + len(readme.START) : text.index(readme.END)].strip()
    assert shown == readme.verdict_lines(summary, "docs/reproduction")
    assert f"the paper's {sum(n for v, n in summary['counts'].items() if 'own question' not in v)} claims" in shown
    assert f"**{summary['counts']['does not hold']}** does not hold" in shown


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
    readme.update(path, tmp_path / "out")
    text = path.read_text()
    assert text.startswith(f"before\n{readme.START}\n- Of the paper's 5 claims: **")
    assert "\n- Of 1 questions of our own: **1** undecided.\n" in text
    assert text.endswith(f"[as data](out/summary.json).\n{readme.END}\nafter\n")
    assert "stale" not in text


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("no markers")
    with pytest.raises(InvalidInput, match="found no lines between"):
        readme.update(path, tmp_path)
