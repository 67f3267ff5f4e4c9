"""The command `o2pl-reproduction`: what a newcomer reads, types and mistypes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from o2pl.simulation.experiment import Options
from o2pl.simulation.store import results
from o2pl_reproduction.cli import app
from o2pl_reproduction.registry import EXPERIMENTS

SMALL = ["--rounds", "15", "--seeds", "2", "--datasets", "iris", "--learners", "uniform,o2pl-linear", "--workers", "1"]


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


def test_help() -> None:
    for command in ("list", "run", "reproduce", "report"):
        assert command in call("--help").output
        assert call(command, "--help").exit_code == 0
    text = call("run", "--help").output
    for name in ("quick", "full", "seeds", "rounds", "learners", "datasets", "data", "out", "engine", "workers"):
        assert f"--{name}" in text
    assert "o2pl-reproduction run wheel/17" in text


def test_list_names_every_experiment_and_shows_one_in_full() -> None:
    text = call("list").output
    for experiment in EXPERIMENTS.values():
        assert experiment.name in text
        assert " ".join(experiment.summary.split()[:6]) in text
    wheel = EXPERIMENTS["wheel"]
    assert f"{len(wheel.units(Options('full'))):,}" in text
    assert "delta-0.95" not in text
    text = call("list", "wheel").output
    assert f"wheel: {wheel.summary}" in text
    for cell in wheel.cells(None):
        assert cell.learner["name"] in text
        assert cell.world["name"] in text
    assert "20 seeds, 10,000 rounds each" in text
    assert "experiment: found 'whel', expected 'wheel'" in call("list", "whel").stderr


def test_run_and_again(tmp_path: Path) -> None:
    first = call("run", "classification", *SMALL, "--out", tmp_path)
    assert first.exit_code == 0, first.output
    assert "classification: 4 units to compute" in first.stderr
    assert "4 of 4 units done" in first.stderr
    assert str(tmp_path / "classification.parquet") in first.stdout
    rows = results(tmp_path, "classification")
    assert sorted(set(rows["unit"].to_pylist())) == [1, 3, 41, 43]
    assert len(rows) == 60
    made = tmp_path / "made.json"
    assert json.loads(made.read_text())["classification"]["size"] == "quick"
    made.write_text("{}")
    again = call("run", "classification", *SMALL, "--out", tmp_path)
    assert again.exit_code == 0
    assert made.read_text() == "{}"  # nothing was made now
    assert "0 units to compute, 4 done before" in again.stderr
    one = call("run", "classification/43", *SMALL, "--out", tmp_path)
    assert "0 units to compute, 1 done before" in one.stderr
    assert '"name": "uniform"' in one.stderr
    assert results(tmp_path, "classification/43").equals(rows.slice(45))


def test_a_failed_unit_is_told_and_the_exit_status_says_so(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "9_broken.parquet").write_bytes(b"not Parquet at all")
    options = ["--data", data, "--learners", "uniform", "--seeds", "1", "--rounds", "10", "--workers", "1"]
    result = call("run", "classification", *options, "--datasets", "iris,9_broken", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "1 of 2 units failed" in result.stderr
    assert "failed: classification/43 (uniform on 9_broken, seed 0): pyarrow.lib.ArrowInvalid" in result.stderr
    assert "Traceback" in (tmp_path / "out/classification/failed-43.txt").read_text()
    assert set(results(tmp_path / "out", "classification")["world"].to_pylist()) == {"iris"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["whel"], "experiment: found 'whel', expected 'wheel'"),
        (["zzz"], "expected one of classification, bakeoff-tuning, structures-tuning, prices-tuning"),
        (["wheel/x"], "unit: found 'x', expected a number, such as wheel/17"),
        (["wheel", "--learners", "lin-ucb"], "learners: found 'lin-ucb' for wheel, expected 'linucb'"),
        (["wheel", "--datasets", "delta-0.96"], "datasets: found 'delta-0.96' for wheel, expected 'delta-0.9"),
        (["wheel", "--seeds", "five"], "seeds: found 'five', expected a number such as 5 or a range such as 5-9"),
        (["wheel", "--seeds", "9-5"], "found no unit"),
        (["wheel", "--engine", "slurm"], "engine: found 'slurm', expected 'local' or 'ray'"),
        (["wheel", "--address", "auto"], "expected only with --engine ray"),
        (["wheel", "--data", "nowhere"], "data: found no folder 'nowhere'"),
    ],
)
def test_what_is_mistyped_is_answered_in_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    result = call("run", *arguments, "--out", tmp_path)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_interrupted_it_says_how_to_go_on(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "o2pl_reproduction.cli",
        "run",
        "classification",
        "--datasets",
        "digits",
        "--learners",
        "o2pl",
    ]
    command += ["--seeds", "40", "--workers", "1", "--out", str(tmp_path)]
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True) as process:
        while not list((tmp_path / "classification").glob("*.parquet")):
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert (
        "To resume: o2pl-reproduction run classification --datasets digits --learners o2pl --seeds 40 --workers 1"
        in errors
    )


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = call("run", "wheel/1", "--rounds", "5", "--out", tmp_path / "file" / "results")
    assert result.exit_code == 1
    assert result.output.splitlines()[-1].startswith("o2pl: ")
    assert "Not a directory" in result.output.splitlines()[-1]


def test_near_misses_of_units() -> None:
    result = call("run", "wheel/99999")
    assert result.exit_code == 2
    assert "wheel: found unit 99999, expected a number from 0 to" in result.output
    assert "expected 'wheel'" in call("run", "whel/3").output
