"""Which database and which application a command means."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from o2pl.cli import app


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("O2PL_DATABASE", raising=False)


def call(*arguments: str, status: int = 0) -> Result:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == status, (done.output, done.exception)
    return done


def test_which_application() -> None:
    call("app", "add", "shop")
    call("app", "add", "news")
    assert "found 2 applications (shop, news)" in call("export", "log.parquet", status=2).stderr
    assert "found 'shopp', expected 'shop'" in call("export", "log.parquet", "--app", "shopp", status=2).stderr


def test_a_database_that_cannot_be_reached_is_one_line() -> None:
    done = call("app", "list", "--database", "postgresql://u:secret@127.0.0.1:1/nothing", status=1)
    assert "refused" in done.stderr
    assert "secret" not in done.stderr
