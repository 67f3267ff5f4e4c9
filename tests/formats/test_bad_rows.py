"""Rows that cannot be read: where they are, and how many may be."""

from __future__ import annotations

import pytest

from o2pl import InvalidInput
from o2pl.formats.bad_rows import BadRows


def test_none_is_tolerated_unless_said() -> None:
    with pytest.raises(InvalidInput, match=r"^log, line 3: cut short$"):
        BadRows("log").line(3, "cut short")
    some = BadRows("log", limit=1)
    some.row(0, "no reward")
    with pytest.raises(InvalidInput, match=r"log, row 4: no reward \(2 bad rows, expected at most 1\)"):
        some.row(4, "no reward")


def test_rows_of_csv_are_lines_after_the_header_and_those_that_were_skipped() -> None:
    bad = BadRows("log.csv", limit=9, header=True)
    bad.line(3, "short")
    bad.line(6, "short")
    for row in range(4):
        bad.row(row, "odd")
    assert [one.split(":")[0] for one in bad.found[2:]] == [f"log.csv, line {k}" for k in (2, 4, 5, 7)]
