"""What the tests of commands share: a store, a small log, a screen on which no line is folded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from o2pl.serving.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "o2pl.sqlite") as opened:
        yield opened


@pytest.fixture
def plain_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wide, and without colours."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERMINAL_WIDTH", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.delenv("O2PL_DATA", raising=False)


@pytest.fixture
def small_log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text("x,action,reward,propensity\n" + "".join(f"{k},{k % 2},{k % 3 % 2},0.5\n" for k in range(60)))
    return path
