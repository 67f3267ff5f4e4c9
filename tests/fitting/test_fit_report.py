"""The table and the picture of a `Fit`."""

from __future__ import annotations

import pytest

from o2pl.evaluation.judgement import judge
from o2pl.fitting.choice import Fit, Judged
from o2pl.fitting.fit_report import fit_improvement_table, fit_text
from o2pl.learners.improvement_candidates import Verdict


def judged(name: str, value: float, low: float, high: float, gain: float, at_least: float, rows: float) -> Judged:
    found = judge(
        name, "the logging policy", gain, at_least, 0.9, delta=0.05, kind="betting", rows=3000, effective=rows
    )
    return Judged(name, value, low, high, low, found, rows)


GOOD = judged("bandit", 0.8, 0.7, 0.9, 0.3, 0.2, 400.0)
POOR = judged("o2pl linear λ=1 l2=10", 0.55, 0.4, 0.7, 0.05, -0.1, 1200.0)
FOUND = Fit(None, GOOD, (GOOD, POOR), 0.5, 3000, 3000, 0.05, ("Something is odd.",))


def test_the_table_has_every_candidate_and_the_logger() -> None:
    lines = fit_text(FOUND).splitlines()
    assert lines[0].split() == ["candidate", "estimate", "from", "to", "gain", "at", "least", "eff.", "rows"]
    assert lines[1].split() == ["bandit", "0.8000", "0.7000", "0.9000", "0.3000", "0.2000", "400"]
    assert lines[2].startswith("o2pl linear λ=1 l2=10")
    assert lines[3].split() == ["logging", "policy", "0.5000", "3,000"]
    assert "chosen: bandit" in fit_text(FOUND)
    assert "with 95% confidence (jointly for all candidates), by at least 0.2000" in fit_text(FOUND)
    assert lines[-1] == "warning: Something is odd."


def test_what_cannot_be_told_apart_is_said() -> None:
    assert "cannot be distinguished" in Fit(None, POOR, (POOR,), 0.5, 10, 10, 0.05).verdict


def test_the_candidates_of_safe_improvement() -> None:
    verdicts = [Verdict(False, 0.01, -0.02, 0.3), Verdict(True, 0.02, 0.01, 1.0)]
    table = fit_improvement_table(verdicts, verdicts[1])
    assert table.row_count == 2
    assert list(table.columns[2].cells) == ["-0.0200", "+0.0100"]


def test_the_picture_shows_all_of_them() -> None:
    pytest.importorskip("matplotlib")
    axes = FOUND.figure().axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["bandit", "o2pl linear λ=1 l2=10"]
    assert axes.lines[0].get_xdata().tolist() == [0.7, 0.9]
