"""`o2pl fit`, as one types it: every format, a kill in the middle, safe improvement."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.formats.vw_logs import events, write_events
from typer.testing import CliRunner

import o2pl
from o2pl.cli import app

pytest.importorskip("msgspec")
ROOT = Path(__file__).parents[2]


def run(*arguments: str | Path, status: int = 0) -> tuple[str, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == status, (done.output, done.exception)
    return done.stdout, done.stderr


def write_csv(path: Path, n: int, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    lines = ["age,city,action,reward,propensity"]
    for k in range(n):
        city, action = ["Rome", "Oslo", ""][k % 3], ["red", "blue", "green"][rng.integers(3)]
        reward = int(rng.random() < (0.8 if (city == "Rome") == (action == "red") else 0.2))
        lines.append(f"{k % 50},{city},{action},{reward},{1 / 3}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_model_is_the_one_the_table_shows_first_and_evaluate_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(Path("log.csv"), 600)
    said, progress = run("fit", "log.csv", "--out", "model.o2pl", "--candidates", "bandit linear,o2pl linear")
    lines = said.splitlines()
    assert lines[0].split()[-2:] == ["eff.", "rows"]  # nothing is cut off
    assert len([line for line in lines if line.startswith(("bandit", "o2pl linear"))]) == 6
    assert f"chosen: {lines[1][:27].strip()}, which" in said
    assert "fit: 18 of 18 parts done" in progress
    assert not Path("model.o2pl.fitting").exists()
    assert "next: o2pl evaluate NEWER_LOG --policy model.o2pl --baseline logged --rewards 0,1" in said
    learner = o2pl.load("model.o2pl")
    assert len(learner.log_) == 600
    learner.act({"age": 3, "city": "Rome"})
    write_csv(Path("newer.csv"), 600, seed=1)
    said, _ = run("evaluate", "newer.csv", "--policy", "model.o2pl", "--baseline", "logged", "--rewards", "0,1")
    assert "policy is better than logged" in said


def test_a_kill_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    """The real process is killed, and the same command goes on: the same model, bit for bit."""
    log = write_csv(tmp_path / "log.csv", 3000)
    command = [sys.executable, "-m", "o2pl.cli", "fit", str(log), "--candidates", "bandit,o2pl linear", "--out"]
    subprocess.run([*command, str(tmp_path / "whole.o2pl")], check=True, capture_output=True)
    killed = tmp_path / "killed.o2pl"
    parts = Path(f"{killed}.fitting")
    process = subprocess.Popen([*command, str(killed)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(list(parts.glob("*.npy"))) < 4:
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = len(list(parts.glob("*.npy")))
    assert not killed.exists()
    assert done < 27
    again = subprocess.run([*command, str(killed)], check=True, capture_output=True, text=True)
    assert f"resuming: {done} parts were already done" in again.stderr
    assert killed.read_bytes() == (tmp_path / "whole.o2pl").read_bytes()
    assert not parts.exists()


@pytest.mark.parametrize("ending", ["dsjson", "vw", "parquet"])
def test_action_sets_of_every_format_are_learned_from(tmp_path: Path, ending: str) -> None:
    logged = [{k: v for k, v in e.items() if k != "pdrop"} for e in events(300)]
    if ending == "vw":
        for event in logged:
            del event["c"]["User"]['é "x"']  # text cannot hold such a name
    original, log = write_events(tmp_path / "log.dsjson", logged), tmp_path / f"log.{ending}"
    if ending != "dsjson":
        run("convert", original, log)
    out = tmp_path / "model.o2pl"
    said, _ = run("fit", log, "--out", out, "--rewards", "0,1", "--candidates", "bandit")
    assert "bandit hashed actionwise" in said
    page = {"User": {"likes": "red"}, "_multi": [{"Item": {"colour": "red"}}, {"Item": {"colour": "blue"}}]}
    assert o2pl.load(out).act(page).action in (0, 1)


def test_safe_improvement_on_whoever_made_the_log(tmp_path: Path) -> None:
    log = write_csv(tmp_path / "log.csv", 900)
    said, progress = run("fit", log, "--out", tmp_path / "better.o2pl", "--incumbent", "logged")
    assert "better than the incumbent, with 90% confidence (jointly for all candidates), by at least" in said
    assert "fit: 3 of 3 parts done" in progress
    assert o2pl.load(tmp_path / "better.o2pl").sharpness > 1
    # The same learner as in Python.
    found = o2pl.read_log(log)
    learner = o2pl.O2PL.from_incumbent(found, random_state=0)
    assert (
        o2pl.load(tmp_path / "better.o2pl").predict_proba(found.contexts) == learner.predict_proba(found.contexts)
    ).all()


def test_a_log_that_supports_nothing_keeps_the_incumbent(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [
        "x,action,reward,propensity",
        *(f"{rng.normal()},{rng.integers(2)},{rng.integers(2)},0.5" for _ in range(300)),
    ]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    said, _ = run("fit", tmp_path / "log.csv", "--out", tmp_path / "m.o2pl", "--incumbent", "logged")
    assert "keep the incumbent" in said
    assert o2pl.load(tmp_path / "m.o2pl").sharpness == 1


def test_a_saved_incumbent_gives_its_probabilities(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    made = o2pl.O2PL(2, exploration=0.2, random_state=0).fit(
        X, rng.integers(2, size=400), rng.random(400), np.full(400, 0.5)
    )
    made.save(tmp_path / "incumbent.o2pl")
    probabilities = made.predict_proba(X)
    actions = (rng.random(400) > probabilities[:, 0]).astype(int)
    rows = zip(X, actions, rng.integers(2, size=400), probabilities[np.arange(400), actions], strict=True)
    lines = ["x0,x1,action,reward,propensity", *(f"{x[0]},{x[1]},{a},{r},{q}" for x, a, r, q in rows)]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    arguments = ("--out", tmp_path / "m.o2pl", "--incumbent", tmp_path / "incumbent.o2pl")
    said, warned = run("fit", tmp_path / "log.csv", *arguments)
    assert "verdict:" in said
    assert "differ from the log's propensities" not in warned
    (tmp_path / "other.csv").write_text("\n".join([lines[0], *(line.rsplit(",", 1)[0] + ",0.2" for line in lines[1:])]))
    _, warned = run("fit", tmp_path / "other.csv", *arguments)
    assert "differ from the log's propensities" in warned


def test_what_cannot_be_done_is_said_before_any_work(tmp_path: Path) -> None:
    log = write_csv(tmp_path / "log.csv", 30)
    for arguments, message in (
        (("--out", tmp_path / "no" / "m.o2pl"), "out: found no folder"),
        (("--out", tmp_path / "m.o2pl", "--candidates", "bandti"), "did you mean 'bandit"),
        (("--out", tmp_path / "m.o2pl", "--incumbent", "nobody"), "incumbent: found no file 'nobody'"),
        (("--out", tmp_path / "m.o2pl", "--incumbent", "logged", "--candidates", "bandit"), "expected without"),
    ):
        _, said = run("fit", log, *arguments, status=2)
        assert message in said
        assert not (tmp_path / "m.o2pl").exists()


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    log = write_csv(tmp_path / "log.csv", 60)
    arguments = ("--candidates", "o2pl linear λ=1 l2=0.1", "--figure", tmp_path / "fit.png")
    said, _ = run("fit", log, "--out", tmp_path / "m.o2pl", *arguments)
    assert f"figure: {tmp_path / 'fit.png'}" in said
    assert (tmp_path / "fit.png").read_bytes()[:4] == b"\x89PNG"


def test_a_log_without_propensities_is_learned_from_and_says_so(tmp_path: Path) -> None:
    lines = write_csv(tmp_path / "log.csv", 600).read_text().splitlines()
    (tmp_path / "without.csv").write_text("\n".join(line.rsplit(",", 1)[0] for line in lines))
    arguments = (tmp_path / "without.csv", "--out", tmp_path / "m.o2pl")
    said, _ = run("fit", *arguments, "--candidates", "bandit linear competing")
    assert "warning: The log has no propensities: they were estimated" in said
    assert "is better than the logging policy" in said
    _, warned = run("fit", *arguments, "--incumbent", "logged")
    assert "warning: the log has no propensities" in warned


@pytest.mark.peers
def test_what_the_tutorial_says_of_the_open_bandit_sample(tmp_path: Path) -> None:
    sample = next(iter(ROOT.glob(".venv-peers/lib/python*/site-packages/obp/dataset/obd/random/all/all.csv")), None)
    if sample is None:
        pytest.skip("obp is not in .venv-peers, which `make peers` makes")
    log, names = tmp_path / "random.parquet", "action=item_id,reward=click,propensity=propensity_score,time=timestamp"
    run("convert", sample, log, "--columns", names)
    assert o2pl.read_log(log).rewards.sum() == 38
    said, _ = run("describe", log, "--rewards", "0,1")
    assert "propensities test against the actions: p = " in said
    assert "do not match" not in said
    said, _ = run(
        "fit", log, "--out", tmp_path / "m.o2pl", "--rewards", "0,1", "--candidates", "bandit linear,o2pl linear λ=1"
    )
    assert "and the logging policy cannot be distinguished" in said
