"""What is said while a fit goes on."""

from __future__ import annotations

import pytest

from o2pl.cli import progress
from o2pl.cli.progress import described_progress, shown_progress
from o2pl.fitting.passes import Pass


def test_a_pass_in_words() -> None:
    one = Pass(2, 7, 0.5, None, None, 1000, 0.5)
    assert described_progress(one) == "solve 2, pass 7: objective 0.500000, 2,000 rows/s"
    one = one._replace(penalty=0.25, clipped=0.015, seconds=0.0)
    said = "solve 2, pass 7: objective 0.500000, penalty 0.250000, weights clipped 1.50%, from a checkpoint"
    assert described_progress(one) == said


def test_lines_come_now_and_then_and_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with shown_progress() as one:
        one.read(5, 10)
        one.passed(Pass(1, 1, 0.5, None, None, 10, 1.0))
        one.read(10, 10)
    assert capsys.readouterr().err.splitlines() == ["fit: 10 of 10 rows read"]
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    with shown_progress() as one:
        one.passed(Pass(1, 1, 0.5, None, None, 10, 1.0))
        one.passed(Pass(1, 2, 0.5, None, None, 10, 1.0))
    assert [line.split(":")[1] for line in capsys.readouterr().err.splitlines()] == [
        " solve 1, pass 1", " solve 1, pass 2"
    ]  # fmt: skip
