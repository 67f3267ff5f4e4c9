"""Several metrics at once: each as `evaluate` alone judges it, at its share of the level."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from tests.evaluation.cases import log_of, policy

import o2pl
from o2pl import InvalidInput, Metric, evaluate
from o2pl.data.frames import Frame
from o2pl.evaluation.metrics import metrics_of


def complaints(log: o2pl.Interactions, share: float = 0.1, seed: int = 0) -> Any:
    return (np.random.default_rng(seed).random(len(log)) < share) * 1.0


def test_one_metric_is_judged_as_the_reward_alone() -> None:
    log = log_of(2000)
    found = evaluate(log, policy, baseline="logged", metrics={"clicks": "reward"})
    same = evaluate(log, policy, baseline="logged")
    one = found["clicks"]
    assert one.judgement is not None
    assert one.difference is not None
    assert one.judgement.interval == pytest.approx(same.judgement.interval, abs=1e-12)
    assert (one.value.low, one.value.high) == pytest.approx(same.interval, abs=1e-12)
    assert one.judgement.verdict == same.judgement.verdict == "better"
    assert found.verdict.startswith("clicks: policy is better than logged, with 95% confidence")


@pytest.mark.parametrize("at_any_time", [False, True])
def test_each_metric_has_its_share_of_the_level(at_any_time: bool) -> None:
    log = log_of(2000)
    bad = complaints(log)
    asked = {"clicks": "reward", "complaints": Metric(bad, fewer_is_better=True, at_most_worse=0.05)}
    found = evaluate(log, policy, baseline="uniform", metrics=asked, at_any_time=at_any_time, delta=0.1)
    alone = evaluate(
        log.changed(rewards=bad), policy, baseline="uniform", at_any_time=at_any_time, delta=0.05
    ).judgement
    one = found["complaints"].judgement
    assert one is not None
    assert (-one.high, -one.low) == pytest.approx(alone.interval, abs=1e-9)
    assert one.confidence == 0.9
    assert one.tolerance == 0.05
    both = evaluate(log, policy, baseline="uniform", at_any_time=at_any_time, delta=0.05)
    assert found["clicks"].judgement.interval == pytest.approx(both.judgement.interval, abs=1e-9)


@pytest.mark.parametrize("seed", [0, None])
def test_metrics_are_the_same_with_any_number_of_threads(monkeypatch: pytest.MonkeyPatch, seed: int | None) -> None:
    """Each as if it were the only one; the policy is never asked by two threads at once."""
    log, asking, made = log_of(1500), [], []
    asked = {"clicks": "reward", **{f"m{k}": Metric(complaints(log, 0.2, k)) for k in range(4)}}

    def alone(contexts: Any) -> Any:
        asking.append(1)
        time.sleep(0.005)  # long enough for another thread
        assert len(asking) == 1
        found = policy(contexts)
        asking.clear()
        return found

    monkeypatch.setattr("o2pl.evaluation.metrics._HELD", 0)
    for threads in (1, 3):
        monkeypatch.setattr("o2pl.threads._given_threads", lambda threads=threads: threads)
        generator = np.random.default_rng(5) if seed is None else seed
        made.append(str(evaluate(log, alone, baseline="logged", metrics=asked, seed=generator)))
    assert made[0] == made[1]


def test_goals_and_guardrails_decide_together() -> None:
    log = log_of(4000)
    asked = {"clicks": "reward", "complaints": Metric(complaints(log), fewer_is_better=True, at_most_worse=0.06)}
    found = evaluate(log, policy, baseline="logged", metrics=asked)
    assert found["complaints"].judgement.verdict == "better"
    assert (
        "complaints: policy is not worse than logged by more than 0.06, with 95% confidence (jointly" in found.verdict
    )
    assert found.safe_to_deploy()
    strict = {**asked, "complaints": Metric(complaints(log), fewer_is_better=True, at_most_worse=1e-6)}
    refused = evaluate(log, policy, baseline="logged", metrics=strict)
    assert not refused.safe_to_deploy()
    assert refused.safe_to_deploy().reason.startswith("complaints: ")
    assert "does not show whether policy is worse than logged by more than 1e-06" in refused.verdict
    worse = Metric(1 - log.rewards, fewer_is_better=False, at_most_worse=0.01)
    assert (
        "is worse than logged by more than 0.01"
        in evaluate(log, policy, baseline="logged", metrics={"misses": worse}).verdict
    )
    assert "jointly for all metrics" in str(found)
    assert "verdict: complaints" in str(found)
    assert "worth" in evaluate(log, policy, metrics=asked).verdict


def test_joint_coverage_of_five_metrics() -> None:
    """At level .2 about 12 of 60 logs may miss anywhere; 22 or more with probability 2e-3."""
    missed = 0
    for seed in range(60):
        log = log_of(400, seed=seed)
        g = np.random.default_rng(seed)
        asked = {f"m{k}": (g.random(400) < 0.3) * 1.0 for k in range(5)}
        found = evaluate(log, policy, baseline="uniform", metrics=asked, delta=0.2)
        missed += any(not one.difference.low <= 0 <= one.difference.high for one in found.measured)
    assert missed < 22


def test_a_context_column_that_is_a_metric_is_no_context() -> None:
    log = log_of(1500)
    g = np.random.default_rng(0)
    columns = {"x": log.contexts[:, 0], "late": (g.random(1500) < 0.2) * 1.0}
    frame = o2pl.Interactions(
        Frame({name: _number(values) for name, values in columns.items()}, 1500), log.actions, log.rewards,
        log.propensities, (0, 1), log.n_actions,
    )  # fmt: skip
    seen = []

    def uniform(contexts: Any) -> Any:
        seen.append(list(contexts.columns))
        return np.full((len(contexts), log.n_actions), 1 / log.n_actions)

    found = evaluate(frame, uniform, metrics={"late": "late", "clicks": "reward"})
    assert seen
    assert all(names == ["x"] for names in seen)
    assert found["late"].value.low < 0.2 < found["late"].value.high


def _number(values: Any) -> Any:
    from o2pl.data.frames import FrameColumn

    return FrameColumn("number", np.asarray(values, float))


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ({}, "metrics: found {}, expected a dictionary"),
        ({"late": [1.0, 2.0]}, r"metrics, 'late': found shape \(2,\), expected one number per row \(300\)"),
        ({"late": "nowhere"}, "metrics, 'late': found no column 'nowhere', expected 'reward' or a context column"),
        ({"late": np.r_[np.ones(299), np.nan]}, "metrics, 'late', row 299: found nan, expected a finite number"),
        (
            {"late": Metric(np.full(300, 2.0), (0, 1))},
            r"metrics, 'late', row 0: found 2.0, expected a number in \[0, 1\]",
        ),
        ({"late": Metric("reward", at_most_worse=-1)}, "metrics, 'late', at_most_worse: found -1"),
        ({"late": ["a"] * 300}, "metrics, 'late': found values that are no numbers"),
    ],
)
def test_columns_that_cannot_be_used_are_named(metrics: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        evaluate(log_of(300), policy, metrics=metrics)


def test_what_does_not_go_together_is_refused() -> None:
    log = log_of(300)
    with pytest.raises(InvalidInput, match="metrics: found several policies"):
        evaluate(log, {"a": policy, "b": "uniform"}, metrics={"clicks": "reward"})
    with pytest.raises(InvalidInput, match="found no value_range"):
        evaluate(log, policy, metrics={"price": np.arange(300.0)}, at_any_time=True)
    with pytest.raises(InvalidInput, match="expected one of clicks"):
        evaluate(log, policy, metrics={"clicks": "reward"})["views"]
    with pytest.raises(InvalidInput, match="expected a baseline"):
        _ = evaluate(log, policy, metrics={"clicks": "reward"}).judgements


def test_a_log_that_cannot_tell_has_no_verdict() -> None:
    log = log_of(500, propensities=np.ones(500))
    found = evaluate(log, policy, baseline="logged", metrics={"clicks": "reward"}, propensities="logged")
    assert found["clicks"].judgement.verdict == "cannot be judged"
    assert "deterministic" in str(found)


def test_options_of_the_command_line() -> None:
    made = metrics_of(["reward", "late"], ["late"], ["late=0.01"])
    assert made == {"reward": Metric("reward"), "late": Metric("late", None, True, 0.01)}
    with pytest.raises(InvalidInput, match="--at-most-worse: found 'late', expected"):
        metrics_of(["late"], [], ["late"])
    with pytest.raises(InvalidInput, match="--metric: found no 'late'"):
        metrics_of(["reward"], ["late"], [])
