"""`o2pl describe`, as one types it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.formats.vw_logs import events, write_events
from typer.testing import CliRunner

import o2pl
from o2pl.cli import app

pytest.importorskip("msgspec")


def run(*arguments: str | Path, status: int = 0) -> tuple[str, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == status, (done.output, done.exception)
    return done.stdout, done.stderr


def test_describe_says_what_to_type_next_and_it_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = ["age,city,action,reward,propensity"]
    for k in range(400):
        city, action = ["Rome", "Oslo", ""][k % 3], ["red", "blue"][rng.integers(2)]
        lines.append(f"{k % 50},{city},{action},{int((city == 'Rome') == (action == 'red'))},0.5")
    Path("log.csv").write_text("\n".join([*lines, "1,2"]))
    _, said = run("describe", "log.csv", status=2)
    assert said == "o2pl: log.csv, line 402: found 2 values, expected 5\n"
    shown, said = run("describe", "log.csv", "--skip-bad", "1")
    assert said == "skipped: log.csv, line 402: found 2 values, expected 5\n"
    assert "city: strings, 2 different, 33.2% missing" in shown
    command = shown.splitlines()[-1].removeprefix("next: o2pl ").split()
    shown, _ = run(*command, "--skip-bad", "1", "--candidates", "bandit linear")
    assert "model: model.o2pl" in shown


def test_rows_that_were_dropped_when_the_log_was_written_are_described(tmp_path: Path) -> None:
    made = [e for k, e in enumerate(events(60)) if k % 11]
    shown, said = run("describe", write_events(tmp_path / "log.dsjson", made))
    assert "decisions: similar ones were dropped when the log was written" in shown
    assert "weights 1/(1 - pdrop) from 1 to 1.33, effective sample size" in shown
    assert not said
    for same in (None, 0.25):  # none, or the same for all: it cancels
        alike = [{**e, "pdrop": same} for e in made]
        assert "similar ones were dropped" not in run("describe", write_events(tmp_path / "alike.dsjson", alike))[0]


def test_what_is_left_out_is_said_and_no_model_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"r{k},{k % 5},{k % 2},{k % 3 % 2},0.5" for k in range(60)]
    Path("log.csv").write_text("\n".join(["id,x,action,reward,propensity", *rows]))
    shown, said = run("describe", "log.csv")
    assert said == "note: log.csv: not used as context: 'id' (an id). To use them: context=[...]\n"
    assert "context      1 columns" in shown
    o2pl.Bandit(2, random_state=0).fit(o2pl.read_log("log.csv", context=["x"])).save("model.o2pl")
    shown, _ = run("describe", "model.o2pl")
    assert "next: o2pl fit model.o2pl --out new.o2pl" in shown
