"""What the tests of this folder share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # workers must find `toy_experiment` as well as the tests do


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the toy experiment's workers note the units they compute."""
    path = tmp_path / "computed.txt"
    monkeypatch.setenv("TOY_LOG", str(path))
    return path
