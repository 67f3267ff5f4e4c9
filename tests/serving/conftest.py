"""Stores to test with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from o2pl.serving.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "o2pl.sqlite") as opened:
        yield opened
