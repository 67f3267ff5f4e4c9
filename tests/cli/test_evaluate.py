"""`o2pl evaluate`: what is printed, drawn and said of mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.formats.vw_logs import events, write_events
from typer.testing import CliRunner, Result

import o2pl
from o2pl.cli import app


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log of two coins, a learner trained on other rows, one of another width; and a wide screen."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    g = np.random.default_rng(0)
    x, a = g.normal(size=(800, 2)), g.integers(2, size=800)
    r = (g.random(800) < 0.3 + 0.4 * a) * 1.0
    table = {"x0": x[:, 0], "x1": x[:, 1], "action": a, "reward": r, "propensity": np.full(800, 0.5)}
    parquet.write_table(pa.table(table).slice(400), tmp_path / "log.parquet")
    half = slice(0, 400)
    o2pl.O2PL(2, random_state=0).fit(x[half], a[half], r[half], np.full(400, 0.5)).save(tmp_path / "model.o2pl")
    o2pl.O2PL(2, random_state=0).fit(x[half, :1], a[half], r[half], np.full(400, 0.5)).save(tmp_path / "narrow.o2pl")
    return tmp_path


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["evaluate", *(str(each) for each in arguments)])


def test_a_table_a_verdict_and_a_picture(files: Path) -> None:
    done = call("log.parquet", "--policy", "model.o2pl", "--baseline", "uniform", "--rewards", "0,1")
    assert done.exit_code == 0, done.output
    for words in (
        "estimator",
        "snips",
        "baseline: uniform",
        "n = 400, effective sample size",
        "policy is better than uniform",
    ):
        assert words in done.output
    assert "figure: evaluation.png" in done.output
    assert (files / "evaluation.png").stat().st_size > 10_000


def test_at_any_time_against_another_model(files: Path) -> None:
    arguments = ("--policy", "logged", "--baseline", "model.o2pl", "--rewards", "0,1", "--at-any-time")
    done = call("log.parquet", *arguments, "--figure", "course.svg", "--delta", "0.1")
    assert done.exit_code == 0, done.output
    assert "any-time" in done.output
    assert "is worse than baseline, with 90% confidence at any time" in done.output
    assert (files / "course.svg").exists()


def test_the_log_of_a_saved_learner(files: Path) -> None:
    done = call("model.o2pl", "--policy", "model.o2pl", "--baseline", "logged")
    assert done.exit_code == 0, done.output
    assert "warning: The policy has learned from 100.0% of this log" in done.output


MISTAKES = {
    "no log": (("nowhere.csv", "--policy", "uniform"), "log: found no file 'nowhere.csv'"),
    "no policy": (("log.parquet", "--policy", "best"), "policy: found no file 'best'"),
    "not a learner": (("log.parquet", "--policy", "log.parquet"), "not a saved learner"),
    "other contexts": (
        ("log.parquet", "--policy", "narrow.o2pl"),
        r"contexts: found Frame of 400 rows: x0 (number), x1 (number), expected rows of 1 numbers",
    ),
    "no range": (("log.parquet", "--policy", "model.o2pl", "--at-any-time"), "reward_range: found None"),
    "range in words": (("log.parquet", "--policy", "uniform", "--rewards", "zero"), "rewards: found 'zero'"),
    "range too small": (("log.parquet", "--policy", "uniform", "--rewards", "0,0.5"), "reward, row"),
    "delta": (("log.parquet", "--policy", "uniform", "--delta", "2"), "delta: found 2.0"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_one_line(name: str, files: Path) -> None:
    arguments, message = MISTAKES[name]
    done = call(*arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert done.output.count("\n") == 1


def test_a_log_without_propensities_is_evaluated_with_estimates(files: Path) -> None:
    table = parquet.read_table("log.parquet").drop_columns(["propensity"])
    parquet.write_table(table, "without.parquet")
    done = call("without.parquet", "--policy", "model.o2pl", "--baseline", "logged", "--rewards", "0,1")
    assert done.exit_code == 0, done.output
    for words in (
        "Propensities are estimated from the contexts: the log has none.",
        "if the true odds of the actions are off by a factor of at most Γ, policy minus baseline is",
        "as long as the true odds are within a factor",
        "the verdict changes at Γ = ",
    ):
        assert words in done.output
    refused = call("without.parquet", "--policy", "model.o2pl", "--propensities", "logged")
    assert refused.exit_code == 2
    assert "found 'logged' with a log that has none" in refused.output
    described = CliRunner().invoke(app, ["describe", "without.parquet"])
    assert described.exit_code == 0, described.output
    assert "No propensity column" in described.output
    with pytest.raises(o2pl.InvalidInput, match="need_propensities=False"):
        o2pl.read_log("without.parquet")


def test_several_policies_are_candidates(files: Path) -> None:
    policies = ("--policy", "model.o2pl", "--policy", "uniform", "--policy", "logged")
    done = call("log.parquet", *policies, "--rewards", "0,1", "--segments", "x9")
    assert done.exit_code == 2
    assert "segments: found 'x9'" in done.output
    done = call("log.parquet", *policies, "--rewards", "0,1", "--rows-per-day", "100")
    assert done.exit_code == 0, done.output
    assert "model.o2pl" in done.output
    assert "leads" in done.output
    assert (files / "evaluation.png").stat().st_size > 5_000


def test_several_metrics(files: Path) -> None:
    measured = ("--metric", "reward", "--metric", "x1", "--at-most-worse", "x1=0.5", "--fewer-is-better", "x1")
    done = call("log.parquet", "--policy", "uniform", "--baseline", "logged", "--rewards", "0,1", *measured)
    assert done.exit_code == 0, done.output
    assert "verdict: x1: uniform is not worse than logged by more than 0.5" in done.output
    assert "jointly for all metrics" in done.output
    done = call("log.parquet", "--policy", "uniform", "--rewards", "0,1", "--metric", "x9")
    assert done.exit_code == 2
    assert "found no column 'x9'" in done.output
    done = call("log.parquet", "--policy", "uniform", "--rewards", "0,1", "--metric", "x1", "--figure", "a.png")
    assert "--figure: found with --metric" in done.output


def test_a_control_group(files: Path) -> None:
    table = parquet.read_table(files / "log.parquet")
    member = (np.random.default_rng(0).random(len(table)) < 0.3) * 1
    parquet.write_table(table.append_column("control", pa.array(member)), files / "grouped.parquet")
    done = call("grouped.parquet", "--policy", "logged", "--baseline", "control", "--rewards", "0,1")
    assert done.exit_code == 0, done.output
    assert "baseline: control" in done.output
    assert "the service and control cannot be distinguished" in done.output
    done = call("log.parquet", "--policy", "logged", "--baseline", "control", "--control", "who", "--rewards", "0,1")
    assert done.exit_code == 2
    assert "control: found no column 'who'" in done.output


def test_truncated_rewards(files: Path) -> None:
    done = call("log.parquet", "--policy", "uniform", "--truncate", "0,0.5")
    assert done.exit_code == 0, done.output
    assert "Rewards beyond 0 to 0.5 count as these ends" in done.output
    done = call("log.parquet", "--policy", "uniform", "--truncate", "5")
    assert "truncate: found '5', expected two numbers" in done.output


def test_saved_learners_on_logs_with_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_events(tmp_path / "vw.dsjson", events(400))
    log = o2pl.read_log("vw.dsjson", reward_range=(0, 1))
    o2pl.Bandit(policy="hashed actionwise", random_state=0).fit(log[:200]).save("ranker.o2pl")
    shown = call("vw.dsjson", "--policy", "ranker.o2pl", "--baseline", "uniform", "--rewards", "0,1").stdout
    assert "verdict" in shown
    lines = [f"{['Rome', 'Oslo'][k % 2]},{k // 2 % 2},{int(k % 2 == k // 2 % 2)},0.5" for k in range(400)]
    Path("log.csv").write_text("\n".join(["city,action,reward,propensity", *lines]))
    o2pl.Bandit(policy="linear", random_state=0).fit(o2pl.read_log("log.csv")[:100]).save("model.o2pl")
    shown = call("log.csv", "--policy", "model.o2pl", "--baseline", "logged", "--rewards", "0,1").stdout
    assert "1.0000" in shown  # it reads the words, and is always right
    Path("other.csv").write_text("\n".join(["town,action,reward,propensity", *lines]))
    said = call("other.csv", "--policy", "model.o2pl").stderr
    assert "column 'town': found, expected only those of the first batch: city" in said
