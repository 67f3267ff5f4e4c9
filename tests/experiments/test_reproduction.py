from __future__ import annotations

from pathlib import Path

import pytest
from toy_study import STUDY

from o2pl.experiments import reproduction
from o2pl.experiments.engines import Local


def test_a_unit_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_FAILS", "two")
    sections, failures = reproduction.reproduce(tmp_path, studies=[STUDY], engine=Local(1))
    assert [unit.learner["name"] for unit, _ in failures] == ["two"]
    assert len(sections) == 1  # of the rows that are there
