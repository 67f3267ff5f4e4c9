"""The page at two widths is looked at by eye; here, what it must hold whatever the claims are."""

from __future__ import annotations

import re
from pathlib import Path

from toy_study import STUDY

from o2pl.simulation.engines import Local
from o2pl_reproduction import reproduction
from o2pl_reproduction.claims.study import VERDICTS
from o2pl_reproduction.reports.page import _CLASS, page


def test_every_verdict_has_a_colour() -> None:
    assert tuple(_CLASS) == VERDICTS


def test_what_does_not_hold_stands_beside_what_does(tmp_path: Path) -> None:
    sections, _ = reproduction.reproduce(tmp_path, studies=[STUDY], engine=Local(1))
    text = page(sections)
    tiles = re.findall(r'class="tile (\w+)"><b>(\d+)</b>([^<]*)', text)
    assert tiles[:3] == [("yes", "1", "holds as stated"), ("no", "1", "does not hold"), ("open", "1", "undecided")]
    assert [words for *_, words in tiles[-3:]] == ["yes", "no", "undecided"]
    heads = text[text.index('id="heads"') : text.index("All claims, study by study")]
    assert "Squares add up" in heads  # the study's headline
    assert "They stay small" not in heads
    assert text.count("<details>") == 2  # a study and its table, both folded
    assert "This is the small size" in text
