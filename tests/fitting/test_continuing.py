"""`o2pl fit --continue`: yesterday's model and today's partition, whatever is delivered twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import o2pl
from o2pl.cli import app
from o2pl.errors import InvalidInput
from o2pl.fitting.continuing import continued, learner_to_continue


def day(number: int, n: int = 300) -> pd.DataFrame:
    generator = np.random.default_rng(number)
    age, shown = generator.integers(18, 80, n), generator.choice(["news", "sport"], n)
    return pd.DataFrame(
        {
            "event_id": [f"day{number}-{k}" for k in range(n)],
            "age": age,
            "action": shown,
            "reward": (shown == np.where(age < 45, "sport", "news")).astype(float),
            "propensity": 0.5,
        }
    )


def run(*arguments: str | Path, status: int = 0) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == status, (done.output, done.exception)
    return done.output


def test_a_week_of_nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number in range(4):
        day(number).to_parquet(f"day{number}.parquet")
    pd.concat([day(3), day(4)]).to_parquet("late.parquet")  # has yesterday's rows again
    run("fit", "day0.parquet", "--out", "model.o2pl", "--candidates", "bandit linear", "--rewards", "0,1")
    for number in (1, 2, 2, 3):
        said = run("fit", f"day{number}.parquet", "--out", "model.o2pl", "--continue", "model.o2pl")
    assert "300 new rows; 0 were known or came twice, and count once; 1,200 in all" in said
    assert "300 new rows; 300 were known" in run("fit", "late.parquet", "--out", "new.o2pl", "--continue", "model.o2pl")
    learner = o2pl.load("new.o2pl")
    assert len(learner.log_) == len(set(learner.log_.event_ids)) == 1500
    assert learner.predict([{"age": 30}, {"age": 60}]).tolist() == ["sport", "news"]
    once = o2pl.load("model.o2pl").merge(o2pl.read_log("day3.parquet"))
    assert len(once.log_) == 1200


def test_a_log_without_ids_is_known_as_a_whole(tmp_path: Path) -> None:
    learner = o2pl.Bandit(random_state=0).fit(o2pl.read_log(day(0)))
    day(1).drop(columns="event_id").to_csv(tmp_path / "log.csv", index=False)
    for new in (300, 0, 0):
        found = continued(learner, o2pl.read_log(tmp_path / "log.csv"))
        assert (found.new, found.known) == (new, 300 - new)
    assert len(learner.log_) == 600


def test_what_cannot_go_on_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    learner = o2pl.Bandit(random_state=0, reward_range=(0, 1)).fit(o2pl.read_log(day(0)))
    learner.save("model.o2pl")
    learner.snapshot().save("policy.o2pl")
    day(1).to_parquet("log.parquet")
    with pytest.raises(InvalidInput, match="without its log"):
        learner_to_continue(Path("policy.o2pl"), None)
    with pytest.raises(InvalidInput, match=r"expected those of model\.o2pl: 0,1"):
        learner_to_continue(Path("model.o2pl"), (0.0, 2.0))
    said = run("fit", "log.parquet", "--out", "a.o2pl", "--continue", "model.o2pl", "--candidates", "x", status=2)
    assert "found with another way to fit" in " ".join(said.split())
    o2pl.Bandit(random_state=0).fit(o2pl.read_log(day(0))).save("revenue.o2pl")
    with pytest.raises(InvalidInput, match="as they come"):
        learner_to_continue(Path("revenue.o2pl"), (0.0, 2.0))
    day(1).assign(reward=3.0).to_parquet("other.parquet")
    run("fit", "other.parquet", "--out", "revenue.o2pl", "--continue", "revenue.o2pl")
    assert o2pl.load("revenue.o2pl").log_.rewards.max() == 3
    said = run("fit", "other.parquet", "--out", "a.o2pl", "--continue", "model.o2pl", status=2)
    assert "in [0, 1]" in said
    assert not Path("a.o2pl").exists()
