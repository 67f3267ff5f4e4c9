"""What the tests of this package share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests" / "simulation")]  # workers must find the toys as well


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the toy experiment's workers note the units they compute."""
    path = tmp_path / "computed.txt"
    monkeypatch.setenv("TOY_LOG", str(path))
    return path
