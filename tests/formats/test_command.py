"""`o2pl convert` and `o2pl describe`, as one types them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.formats.vw_logs import close, events, learned, write_events
from typer.testing import CliRunner

import o2pl
from o2pl.cli import app

pytest.importorskip("msgspec")


def run(*arguments: str | Path, status: int = 0) -> tuple[str, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == status, (done.output, done.exception)
    return done.stdout, done.stderr


def test_vw_learns_the_same_after_conversions(tmp_path: Path) -> None:
    pytest.importorskip("vowpalwabbit")
    original = write_events(tmp_path / "original.dsjson", [e for k, e in enumerate(events(150)) if k % 7])
    said, _ = run("convert", original, tmp_path / "log.parquet")
    assert said == f"128 rows: {tmp_path / 'log.parquet'}\n"
    run("convert", tmp_path / "log.parquet", tmp_path / "again.dsjson")
    weights = learned(original, "--cb_explore_adf --dsjson")
    assert learned(tmp_path / "again.dsjson", "--cb_explore_adf --dsjson") == weights
    run("convert", tmp_path / "log.parquet", tmp_path / "log.csv")
    run("convert", tmp_path / "log.csv", tmp_path / "third.dsjson.gz")
    assert close(learned(tmp_path / "third.dsjson.gz", "--cb_explore_adf --dsjson"), weights, 1e-6)


def test_bad_lines_stop_it_or_are_said(tmp_path: Path) -> None:
    log = write_events(tmp_path / "log.dsjson", events(5)[1:])
    with log.open("a") as file:
        file.write(json.dumps(events(1)[0])[:200])
    out = tmp_path / "log.parquet"
    _, said = run("convert", log, out, status=2)
    assert said == "o2pl: log.dsjson, line 5: found no complete JSON object (Input data was truncated)\n"
    assert not out.exists()
    shown, said = run("convert", log, out, "--skip-bad", "1")
    assert shown == f"4 rows: {out}\n"
    assert said.startswith("skipped: log.dsjson, line 5: found no complete")
    _, said = run("convert", log, tmp_path / "log.xlsx", status=2)
    assert "log.xlsx: found the file extension '.xlsx'" in said


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


def test_the_log_of_a_saved_learner(tmp_path: Path) -> None:
    learner = o2pl.O2PL(2, policy="linear", random_state=0)
    learner.partial_fit([[1.0, 2.0], [3.0, 4.0]], [0, 1], [0.0, 1.0], [0.5, 0.5])
    learner.save(tmp_path / "model.o2pl")
    run("convert", tmp_path / "model.o2pl", tmp_path / "log.csv")
    np.testing.assert_array_equal(o2pl.read_log(tmp_path / "log.csv").contexts, learner.log_.contexts)
    assert "rows of 2 numbers" in run("describe", tmp_path / "model.o2pl")[0]


def test_evaluating_saved_learners_on_logs_with_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_events(tmp_path / "vw.dsjson", events(400))
    log = o2pl.read_log("vw.dsjson", reward_range=(0, 1))
    o2pl.Bandit(policy="hashed actionwise", random_state=0).fit(log[:200]).save("ranker.o2pl")
    shown, _ = run("evaluate", "vw.dsjson", "--policy", "ranker.o2pl", "--baseline", "uniform", "--rewards", "0,1")
    assert "verdict" in shown
    lines = [f"{['Rome', 'Oslo'][k % 2]},{k // 2 % 2},{int(k % 2 == k // 2 % 2)},0.5" for k in range(400)]
    Path("log.csv").write_text("\n".join(["city,action,reward,propensity", *lines]))
    o2pl.Bandit(policy="linear", random_state=0).fit(o2pl.read_log("log.csv")[:100]).save("model.o2pl")
    shown, _ = run("evaluate", "log.csv", "--policy", "model.o2pl", "--baseline", "logged", "--rewards", "0,1")
    assert "1.0000" in shown  # it reads the words, and is always right
    Path("other.csv").write_text("\n".join(["town,action,reward,propensity", *lines]))
    _, said = run("evaluate", "other.csv", "--policy", "model.o2pl", status=2)
    assert "column 'town': found, expected only those of the first batch: city" in said


def test_rows_that_were_dropped_when_the_log_was_written_are_described(tmp_path: Path) -> None:
    made = [e for k, e in enumerate(events(60)) if k % 11]
    shown, said = run("describe", write_events(tmp_path / "log.dsjson", made))
    assert "decisions: similar ones were dropped when the log was written" in shown
    assert "weights 1/(1 - pdrop) from 1 to 1.33, effective sample size" in shown
    assert not said
    for same in (None, 0.25):  # none, or the same for all: it cancels
        alike = [{**e, "pdrop": same} for e in made]
        assert "similar ones were dropped" not in run("describe", write_events(tmp_path / "alike.dsjson", alike))[0]
