from __future__ import annotations

import numpy as np
import pyarrow as pa
from tests.evaluation.cases import log_of, policy

import o2pl
from o2pl import Interactions
from o2pl.evaluation.evaluate import evaluate


def test_wrong_propensities_are_said() -> None:
    log = log_of(propensities=np.full(2000, 1 / 3))
    for choice in ("auto", "logged"):
        result = evaluate(log, policy, baseline="logged", propensities=choice)
        assert any("do not match the actions" in warning for warning in result.warnings)
    sure = evaluate(log_of(propensities=np.ones(2000)), policy, baseline="logged", propensities="logged")
    assert any("100% of the rows have propensity 1" in warning for warning in sure.warnings)
    assert sure.doubt.startswith("the log is deterministic: nearly all propensities are 1")
    better = evaluate(log_of(propensities=np.ones(2000)), policy, baseline="logged")
    assert "every logged propensity is 1, but the log contains several actions" in better.warnings[0]
    assert not better.doubt


def test_heavy_weights_and_few_useful_rows_are_said() -> None:
    log = log_of(5000)
    rare = evaluate(
        log,
        np.where(np.arange(5000) < 20, 1.0, 1e-9)[:, None] * [0, 0, 1.0]
        + [[1, 0, 0]] * 5000
        - np.where(np.arange(5000) < 20, 1.0, 1e-9)[:, None] * [1.0, 0, 0],
    )
    assert rare.diagnostics.effective > 30
    one = np.full(5000, 1e-9)
    one[7] = 1.0
    result = evaluate(log, one)
    assert any("have an effective sample size of 1 for this policy" in warning for warning in result.warnings)
    assert any(warning.startswith("One row has") for warning in result.warnings)


def test_warnings_call_columns_by_their_names() -> None:
    generator = np.random.default_rng(0)
    n = 4000
    age, hour = generator.normal(size=n), generator.normal(size=n) + np.linspace(0, 2, n)
    actions = (generator.random(n) < 1 / (1 + np.exp(-2 * age))).astype(int)
    frame = pa.table({"hour": hour, "age": age})
    log = Interactions(frame, actions, np.ones(n), np.full(n, 0.5), reward_range=(0, 1))
    said = " ".join(evaluate(log, "uniform").warnings)
    assert "in rows with age " in said
    assert "The contexts change over the log" in said
    assert "hour most" in said
    assert "column" not in said
    own = o2pl.Bandit(2, random_state=0).fit(frame, actions, np.ones(n), np.full(n, 0.5)).log_
    assert own.context_names == ("hour", "age")
    assert "in rows: age " in str(o2pl.describe(log))


def test_where_rewards_change_the_verdict_says_for_which_rows_it_holds() -> None:
    log = log_of(3000)
    later = np.arange(3000) > 1000
    changed = log.changed(rewards=np.where(later, log.rewards, 1 - log.rewards))
    said = o2pl.evaluate(changed, policy, baseline="logged")
    assert said.judgement.condition == ", on average over these 3,000 rows, along which rewards change"
    assert said.judgement.condition in said.verdict
    assert said.judgement.condition in said.safe_to_deploy().reason
    assert "rewards change" not in o2pl.evaluate(log, policy, baseline="logged").verdict
