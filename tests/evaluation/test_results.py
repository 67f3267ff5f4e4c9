"""What an `Evaluation` says, for logs without propensities and with wrong ones."""

from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.cases import MEANS, POLICY, log_of, policy

from o2pl import InvalidInput
from o2pl.evaluation.evaluate import evaluate


def test_a_log_without_propensities_is_evaluated_with_estimates() -> None:
    log = log_of(propensities=None)
    result = evaluate(log, policy, baseline="logged")
    assert result.why_estimated == "the log has none"
    assert result.sensitivity is not None
    assert result.interval[0] < POLICY @ MEANS < result.interval[1]
    true = evaluate(log_of(), policy, baseline="logged")
    assert result.difference is not None
    assert true.difference is not None
    assert result.difference.value == pytest.approx(true.difference.value, abs=0.02)
    assert "is better than logged, with 95% confidence, as long as the true odds are within a factor" in result.verdict
    assert 1.2 < result.sensitivity.flips < 5
    assert not result.doubt
    few = evaluate(log_of(600, propensities=None), policy, baseline="logged")
    assert few.sensitivity is not None
    assert few.sensitivity.ranges[0].low > 0 > few.sensitivity.at(2.0).low
    assert not few.safe_to_deploy()
    assert few.safe_to_deploy(tolerance=1.0)
    assert "the verdict changes at Γ" in str(result)
    assert "estimated, p = " in str(result)
    assert "odds of the actions" in result._repr_html_()
    alone = evaluate(log, policy)
    assert "if the true odds are off by up to a factor of 1.5" in alone.verdict
    with pytest.raises(InvalidInput, match="'logged' with a log that has none"):
        evaluate(log, policy, propensities="logged")


def test_wrong_propensities_are_replaced_by_estimates_unless_asked_for() -> None:
    wrong = log_of(propensities=np.full(2000, 1 / 3))
    result = evaluate(wrong, policy, baseline="logged")
    assert result.why_estimated.startswith("the logged propensities do not match the actions: p = ")
    assert result.interval[0] < POLICY @ MEANS < result.interval[1]
    assert "within a factor" in result.verdict
    kept = evaluate(wrong, policy, baseline="logged", propensities="logged")
    assert kept.doubt == "the logged propensities do not match the actions"
    assert not kept.safe_to_deploy(tolerance=1)
    asked = evaluate(log_of(), policy, propensities="estimated")
    assert asked.why_estimated == "as requested"
    assert evaluate(log_of(), policy).sensitivity is None
    with pytest.raises(InvalidInput, match="expected 'auto', 'logged' or 'estimated'"):
        evaluate(log_of(), policy, propensities="guessed")


def test_only_deterministic_logs_and_those_without_support_are_refused() -> None:
    g = np.random.default_rng(0)
    contexts = g.normal(size=(3000, 2))
    actions = (contexts[:, 0] > 0).astype(int)
    columns = {"contexts": contexts, "actions": actions, "rewards": g.random(3000)}
    for propensities in (None, np.ones(3000)):
        result = evaluate(log_of(3000, **columns, propensities=propensities), policy, baseline="logged")
        assert "the log is deterministic" in result.verdict
        assert not result.safe_to_deploy()
    one = log_of(actions=np.zeros(2000, int), propensities=np.ones(2000))
    never = evaluate(one, lambda x: np.tile([0.0, 0.0, 1.0], (len(x), 1)))
    assert never.doubt.startswith("the log does not support it: 2,000 rows have an effective sample size of 0")


def test_the_true_difference_is_inside_the_range_of_the_right_gamma() -> None:
    """A logger that sees what is not in the contexts: odds off by √2 either way; Γ = 1.5 covers it."""
    missed = 0
    for seed in range(10):
        g = np.random.default_rng(seed)
        n = 6000
        hidden = g.integers(2, size=n)
        odds = np.where(hidden == 1, 2**0.5, 2**-0.5)
        share = odds / (1 + odds)
        actions = (g.random(n) < share).astype(int)
        rewards = (g.random(n) < 0.1 + 0.75 * hidden + 0.1 * actions) * 1.0
        log = log_of(
            n, contexts=g.normal(size=(n, 1)), actions=actions, rewards=rewards, propensities=None, n_actions=2
        )
        result = evaluate(log, lambda x: np.tile([0.0, 1.0], (len(x), 1)), baseline=np.tile([1.0, 0.0], (n, 1)))
        assert result.sensitivity is not None
        assert result.sensitivity.ranges[0].low > 0.1  # without sensitivity it would be wrong
        missed += not result.sensitivity.at(1.5).low <= 0.1 <= result.sensitivity.at(1.5).high
    assert missed == 0
