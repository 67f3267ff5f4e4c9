"""`o2pl fit` of a log larger than memory, as one types it: a kill in the middle, a bad file, a full disk."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fitting.parquet_logs import write_parquet
from typer.testing import CliRunner

import o2pl
from o2pl.cli import app


def run(*arguments: str | Path, status: int = 0) -> tuple[str, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == status, (done.output, done.exception)
    return done.stdout, done.stderr


KILLED = """
import os, signal, sys
from o2pl.cli import app

parts = 0

def count(event, given):
    global parts
    if event == "os.rename" and str(given[1]).endswith(".npy"):
        parts += 1
        if parts == 15:  # nine parts of the choice, the copy, and some passes
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
app()
"""


def test_a_kill_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    """The real process is killed between two passes, and the same command goes on: the same policy, bit for bit."""
    log = write_parquet(tmp_path / "log", 4000)
    arguments = ["fit", str(log), "--out-of-core", "--candidates", "bandit linear"]
    command = [sys.executable, "-m", "o2pl.cli", *arguments]
    subprocess.run([*command, "--out", str(tmp_path / "whole.o2pl")], check=True, capture_output=True)
    killed = tmp_path / "killed.o2pl"
    parts = Path(f"{killed}.fitting")
    ended = subprocess.run([sys.executable, "-c", KILLED, *arguments, "--out", str(killed)], capture_output=True)
    assert ended.returncode == -signal.SIGKILL
    assert not killed.exists()
    assert (parts / "log").is_dir()
    again = subprocess.run([*command, "--out", str(killed)], check=True, capture_output=True, text=True)
    assert "resuming: " in again.stderr
    assert killed.read_bytes() == (tmp_path / "whole.o2pl").read_bytes()
    assert not parts.exists()


def test_little_memory_makes_a_fit_that_needs_little(tmp_path: Path) -> None:
    log, out = write_parquet(tmp_path / "log", 1500), tmp_path / "model.o2pl"
    said, progress = run("fit", log, "--out", out, "--memory", "10KB", "--candidates", "bandit linear competing")
    assert "compared on a sample of 1,500" in said
    assert "1,500 of 1,500 rows read" in progress
    assert type(o2pl.load(out)).__name__ == "Decider"
    said, _ = run(
        "evaluate", log, "--policy", out, "--baseline", "logged", "--rewards", "0,1", "--figure", tmp_path / "f.png"
    )
    assert "policy is better than logged" in said
    said, _ = run("fit", log, "--out", out, "--candidates", "bandit linear competing")
    assert "compared on a sample" not in said
    assert len(o2pl.load(out).log_) == 1500


def test_a_file_that_cannot_be_read_leaves_nothing_and_once_mended_is_read(tmp_path: Path) -> None:
    log, out = write_parquet(tmp_path / "log", 1500), tmp_path / "model.o2pl"
    file = log / "day=2" / "rows.parquet"
    content = file.read_bytes()
    file.write_bytes(content[:-100])
    command = ("fit", log, "--out", out, "--out-of-core", "--candidates", "bandit linear competing")
    _, said = run(*command, status=2)
    assert "log/day=2/rows.parquet: cannot be read" in " ".join(said.split())
    assert not list(tmp_path.glob("model*"))
    file.write_bytes(content)
    run(*command)
    assert out.exists()


def test_a_full_disk_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    """Files may not grow beyond 1.4 MB: the system refuses the copy as it would on a full disk."""
    log = write_parquet(tmp_path / "log", 40_000)
    command = [sys.executable, "-m", "o2pl.cli", "fit", str(log), "--out-of-core", "--candidates"]
    command += ["bandit linear competing", "--out", str(tmp_path / "model.o2pl")]

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_400_000, 1_400_000))

    done = subprocess.run(command, preexec_fn=small_files, capture_output=True, text=True)
    said = " ".join(done.stderr.split())
    assert done.returncode == 2, said
    assert "for a copy of the log. Free some space, or choose an --out on another disk" in said
    assert not (tmp_path / "model.o2pl").exists()
    assert not (tmp_path / "model.o2pl.fitting" / "log").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--engine", "spark"), "engine: found 'spark', expected one of local, ray"),
        (("--workers", "2"), "with --engine local, expected only with --engine ray"),
        (("--memory", "lots"), "expected an amount such as 4GB"),
        (("--out-of-core", "--incumbent", "logged"), "expected --in-memory"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    log = write_parquet(tmp_path / "log", 30, files=1)
    _, message = run("fit", log, "--out", tmp_path / "m.o2pl", *options, status=2)
    assert said in " ".join(message.split())


def test_other_formats_are_sent_to_convert(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("x,action,reward,propensity\n1,0,1,1\n")
    _, said = run("fit", tmp_path / "log.csv", "--out", tmp_path / "m.o2pl", "--out-of-core", status=2)
    assert "o2pl convert LOG log.parquet" in " ".join(said.split())


@pytest.mark.parametrize("option", ["--at-any-time", "--segments=a", "--rows-per-day=10", "--propensities=estimated"])
def test_what_needs_a_log_in_memory_is_refused(option: str, tmp_path: Path) -> None:
    log = write_parquet(tmp_path / "log", 50)
    _, said = run("evaluate", log, "--policy", "uniform", "--rewards", "0,1", "--out-of-core", option, status=2)
    assert "with a log larger than memory, expected --in-memory" in said
