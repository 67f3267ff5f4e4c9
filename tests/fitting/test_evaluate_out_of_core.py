"""Estimates of logs larger than memory: those of the same rows in memory, here and on a real local Ray."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fitting.parquet_logs import write_parquet
from typer.testing import CliRunner

import o2pl
from o2pl.cli import app
from o2pl.errors import InvalidInput
from o2pl.fitting import large_logs
from o2pl.fitting.evaluate_out_of_core import evaluate_on_ray, evaluate_out_of_core
from o2pl.fitting.large_logs import sampled_rows_of_large_log

pytestmark = pytest.mark.filterwarnings("ignore:.*not used as context. 'day' .key of the partitions")

N, SAMPLE = 6000, 1000


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(large_logs, "SAMPLE", SAMPLE)
    return write_parquet(tmp_path / "log", N)


@pytest.fixture
def policy(tmp_path: Path) -> Any:
    learned = o2pl.read_log(write_parquet(tmp_path / "before", 3000, seed=5))
    return o2pl.Bandit(policy="linear", random_state=0).fit(learned).snapshot()


def test_the_sums_are_those_of_the_rows_outside_the_sample(log: Path, policy: Any) -> None:
    found = evaluate_out_of_core(log, policy, "logged")
    values = {one.name: one for one in found.estimates}
    rest = np.setdiff1d(np.arange(N), sampled_rows_of_large_log(N, 0))
    rows = o2pl.read_log(log, reward_range=(0, 1))[rest]
    expected = {one.name: one for one in o2pl.evaluate(rows, policy, baseline="logged").estimates}
    for name in ("ips", "snips", "clipped"):  # without a model, the same
        assert values[name].value == pytest.approx(expected[name].value, rel=1e-12)
        assert values[name].low == pytest.approx(expected[name].low, rel=1e-9)
    error = (expected["dr"].high - expected["dr"].low) / 4
    for name, off in (("dm", 4 * error), ("dr", error), ("sndr", error)):  # with another model of the rewards
        assert values[name].value == pytest.approx(expected[name].value, abs=off)
    assert found.diagnostics.n == N - SAMPLE
    whole = o2pl.evaluate(rows, policy, baseline="logged")
    assert found.diagnostics.effective == pytest.approx(whole.diagnostics.effective)
    assert found.baseline is not None
    assert found.difference is not None
    assert found.baseline.value == pytest.approx(rows.rewards.mean())
    # The difference is by DR, whichever estimate is quoted.
    assert found.difference.value == pytest.approx(values["dr"].value - found.baseline.value)
    assert found.difference.low > 0
    assert found.verdict == "policy is better than logged, with 95% confidence"
    assert "from a sample of 1,000 rows" in found.warnings[-1]


def test_a_policy_and_itself_do_not_differ(log: Path, policy: Any) -> None:
    found = evaluate_out_of_core(log, policy, policy)
    assert found.difference is not None
    assert (found.difference.value, found.difference.low, found.difference.high) == (0, 0, 0)
    logged = evaluate_out_of_core(log, "logged", "uniform")  # the logger was uniform
    assert logged.difference is not None
    assert logged.difference.low <= 0 <= logged.difference.high


def test_ray_finds_the_same_though_a_worker_dies(log: Path, policy: Any, ray_cluster: Any, tmp_path: Path) -> None:
    expected = evaluate_out_of_core(log, policy, "uniform")
    killed = tmp_path / "killed"

    class Deadly:
        """It kills the process that first asks it, once."""

        def predict_proba(self, contexts: Any) -> Any:
            if os.getpid() != here and not killed.exists():
                killed.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return policy.predict_proba(contexts)

        @property
        def actions_(self) -> Any:
            return policy.actions_

    here = os.getpid()
    found = evaluate_out_of_core(log, Deadly(), "uniform", spread=evaluate_on_ray(ray_cluster))
    assert killed.exists()
    assert [one.value for one in found.estimates] == pytest.approx([one.value for one in expected.estimates], rel=1e-12)
    assert found.difference.low == pytest.approx(expected.difference.low, rel=1e-9)


def test_a_log_that_is_hardly_longer_than_a_sample_is_sent_back(log: Path, policy: Any) -> None:
    large_logs.SAMPLE = 5000
    with pytest.raises(InvalidInput, match="found 6,000 rows, expected at least twice the sample; use --in-memory"):
        evaluate_out_of_core(log, policy)


def test_on_the_command_line(log: Path, policy: Any, tmp_path: Path) -> None:
    policy.save(tmp_path / "policy.o2pl")
    command = [
        "evaluate",
        str(log),
        "--policy",
        str(tmp_path / "policy.o2pl"),
        "--baseline",
        "logged",
        "--rewards",
        "0,1",
    ]
    command += ["--figure", str(tmp_path / "f.png"), "--out-of-core"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "policy is better than logged" in done.stdout
    assert "n = 5,000" in done.stdout
    assert "evaluate: 6,000 of 6,000 rows read" in done.stderr
    assert (tmp_path / "f.png").exists()
    for more, said in ((["--at-any-time"], "--in-memory"), (["--policy", "uniform"], "expected one; or --in-memory")):
        done = CliRunner().invoke(app, [*command, *more])
        assert done.exit_code == 2
        assert said in " ".join(done.stderr.split())
