"""Stores to test with. A module that says `BOTH = True` has its tests of `store` run on PostgreSQL too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.serving.postgres import Postgres, binaries

from o2pl.serving.store import Store


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    folder = binaries()
    if folder is None:
        pytest.skip("no PostgreSQL on this machine")
    server = Postgres(folder)
    yield server
    server.remove()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store" in metafunc.fixturenames and getattr(metafunc.module, "BOTH", False):
        metafunc.parametrize("store", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """On SQLite, unless the test runs on both."""
    database: str | Path = tmp_path / "o2pl.sqlite"
    if getattr(request, "param", "sqlite") == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        server.empty()
        database = server.url
    with Store.open(database) as opened:
        yield opened
