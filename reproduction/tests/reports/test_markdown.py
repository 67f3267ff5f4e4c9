from __future__ import annotations

from pathlib import Path

from toy_study import STUDY

from o2pl.simulation.engines import Local
from o2pl_reproduction import reproduction
from o2pl_reproduction.reports.markdown import markdown, table


def test_counts_come_first_and_each_claim_has_its_interval(tmp_path: Path) -> None:
    sections, _ = reproduction.reproduce(tmp_path, studies=[STUDY], engine=Local(1))
    text = markdown(sections)
    assert text.index("| does not hold | 1 |") < text.index("## A toy & its sums")
    line = next(each for each in text.splitlines() if "They stay small." in each)
    assert line.endswith("| ≤ 1 | **does not hold** |")
    assert " exact | exact: nothing is sampled |" in line
    line = next(each for each in text.splitlines() if "above 0" in each)
    assert "| our own question | – |" in line
    assert "> 0 (our prototype's number)" in line
    assert "**our own question: undecided** (1 seed: too few for an interval)" in line


def test_bars_in_cells_do_not_break_the_table() -> None:
    assert table([{"a|b": "c|d"}]) == ["| a\\|b |", "| --- |", "| c\\|d |"]
