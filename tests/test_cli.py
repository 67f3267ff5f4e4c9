"""The command line: what a newcomer reads, types and mistypes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import o2pl
from o2pl.cli import app


@pytest.fixture(autouse=True)
def _plain_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A screen wide enough that no line is folded, and no colours."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERMINAL_WIDTH", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.delenv("O2PL_DATA", raising=False)


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_help_and_version():
    assert call("--version").output == f"o2pl {o2pl.__version__}\n"
    for command in ("evaluate", "fit", "demo"):
        assert command in call("--help").output
        assert call(command, "--help").exit_code == 0


def test_help_imports_nothing_heavy():
    code = "import sys; from o2pl.cli import app; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"scipy", "pyarrow", "sklearn", "matplotlib", "ray", "vowpalwabbit"}
    assert not heavy & set(loaded)


@pytest.fixture
def small_log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text("x,action,reward,propensity\n" + "".join(f"{k},{k % 2},{k % 3 % 2},0.5\n" for k in range(60)))
    return path


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


def test_near_misses_of_policies(small_log: Path) -> None:
    for option, text, said in (
        ("--baseline", "logedd", "baseline: found no file 'logedd', expected 'logged', or a saved learner"),
        ("--baseline", "unifrom", "baseline: found no file 'unifrom', expected 'uniform', or a saved learner"),
        ("--baseline", "zzz", "baseline: found no file 'zzz', expected 'uniform', 'logged' or a saved learner"),
    ):
        result = call("evaluate", small_log, "--policy", "uniform", option, text)
        assert (result.exit_code, said in result.output) == (2, True), result.output


def test_the_commands_are_listed_without_numpy() -> None:
    code = "import sys, o2pl.cli; print([name for name in ('numpy', 'http.client') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"[]\n"
