"""The command line: what a newcomer reads, types and mistypes."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner, Result

import o2pl
from o2pl.cli import app

pytestmark = pytest.mark.usefixtures("plain_screen")


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_help_and_version() -> None:
    assert call("--version").output == f"o2pl {o2pl.__version__}\n"
    for command in ("evaluate", "fit", "demo"):
        assert command in call("--help").output
        assert call(command, "--help").exit_code == 0


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from o2pl.cli import app; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"scipy", "pyarrow", "sklearn", "matplotlib", "ray", "vowpalwabbit"}
    assert not heavy & set(loaded)


def test_the_commands_are_listed_without_numpy() -> None:
    code = "import sys, o2pl.cli; print([name for name in ('numpy', 'http.client') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"[]\n"
