"""What the texts of options mean."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from o2pl.cli import app
from o2pl.cli.options import list_option, range_option
from o2pl.errors import InvalidInput

pytestmark = pytest.mark.usefixtures("plain_screen")


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_near_misses_of_policies(small_log: Path) -> None:
    for option, text, said in (
        ("--baseline", "logedd", "baseline: found no file 'logedd', expected 'logged', or a saved learner"),
        ("--baseline", "unifrom", "baseline: found no file 'unifrom', expected 'uniform', or a saved learner"),
        ("--baseline", "zzz", "baseline: found no file 'zzz', expected 'uniform', 'logged' or a saved learner"),
    ):
        result = call("evaluate", small_log, "--policy", "uniform", option, text)
        assert (result.exit_code, said in result.output) == (2, True), result.output


def test_lists_and_ranges() -> None:
    assert list_option("a, b,,c ") == ["a", "b", "c"]
    assert range_option("-1,2.5") == (-1.0, 2.5)
    for text in ("1", "1,2,3", "a,b"):
        with pytest.raises(InvalidInput, match=f"bounds: found '{text}', expected two numbers such as 0,1"):
            range_option(text, "bounds")
