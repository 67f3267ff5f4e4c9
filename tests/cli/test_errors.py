"""Errors are one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from o2pl.cli import app
from o2pl.cli.errors import interruption_is_no_error

pytestmark = pytest.mark.usefixtures("plain_screen")


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, small_log: Path) -> None:
    for result in (
        call("evaluate", small_log, "--policy", "uniform", "--figure", tmp_path / "none" / "a.png"),
        call("evaluate", small_log, "--policy", "uniform", "--figure", small_log / "a.png"),
        call("convert", small_log, tmp_path / "none" / "log.parquet"),
    ):
        assert result.exit_code == 1, result.output
        assert result.exception is None or isinstance(result.exception, SystemExit)
        last = result.output.splitlines()[-1]
        assert last.startswith("o2pl: ")
        assert "No such file or directory" in last or "Not a directory" in last
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_an_interrupt_says_how_to_resume(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, interruption_is_no_error("Run it again."):
        raise KeyboardInterrupt
    assert ended.value.exit_code == 130
    assert capsys.readouterr().err == "stopped. Run it again.\n"
