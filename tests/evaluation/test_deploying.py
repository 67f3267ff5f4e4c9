"""`safe_to_deploy`: yes where the gain is plain, seldom where there is none, and never on rows it cannot judge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.evaluation.cases import dropped_log

import o2pl
from o2pl.theory.inequality import refutes


def rows(n: int, seed: int, gap: float) -> tuple[Any, ...]:
    g = np.random.default_rng(seed)
    actions = g.integers(3, size=n)
    rewards = (g.random(n) < 0.3 + gap * (actions == 2)) * 10.0
    return g.normal(size=(n, 2)), actions, rewards, np.full(n, 1 / 3)


def learner(n: int, seed: int, gap: float) -> o2pl.O2PL:
    return o2pl.O2PL(3, policy="linear", reward_range=(0, 10), random_state=seed).fit(*rows(n, seed, gap))


def test_a_plain_gain_is_safe() -> None:
    good = learner(800, 0, 0.5)
    assert good.safe_to_deploy()
    assert good.safe_to_deploy("uniform")
    assert good.safe_to_deploy(fresh=rows(400, 1, 0.5))
    assert not good.safe_to_deploy(good, fresh=rows(400, 1, 0.5))
    assert not good.safe_to_deploy(fresh=rows(5, 1, 0.5))


def test_the_bound_is_that_of_evaluate() -> None:
    good, fresh = learner(300, 0, 0.5), rows(200, 1, 0.5)
    log = o2pl.Interactions(*fresh, reward_range=(0, 10))
    found = o2pl.evaluate(log, good, baseline="logged", at_any_time=True, delta=0.2)
    assert found.difference is not None
    verdict = good.safe_to_deploy(delta=0.1, fresh=fresh)
    assert verdict.bound == pytest.approx(found.difference.low, abs=1e-12)
    assert verdict.judgement.confidence == pytest.approx(0.9)


def test_no_gain_is_seldom_called_safe() -> None:
    """δ = .1, 200 logs in which all actions are equal; binomial test at 1e-3."""
    wrong = sum(bool(learner(100, seed, 0.0).safe_to_deploy(delta=0.1)) for seed in range(200))
    assert not refutes(wrong, 200, 0.1, 1e-3)


def test_what_cannot_be_judged() -> None:
    good = learner(100, 0, 0.5)
    with pytest.raises(o2pl.InvalidInput, match="baseline: found 'best', expected one of uniform, logged"):
        good.safe_to_deploy("best")
    with pytest.raises(o2pl.InvalidInput, match="delta"):
        good.safe_to_deploy(delta=1.0)
    with pytest.raises(o2pl.InvalidInput, match="expected at least two"):
        learner(1, 0, 0.5).safe_to_deploy()
    with pytest.raises(AttributeError, match="has seen no data"):
        o2pl.O2PL(3).safe_to_deploy()


def test_the_verdict_says_why() -> None:
    good = learner(800, 0, 0.5)
    yes = good.safe_to_deploy()
    assert yes.safe is True
    assert 0 < yes.bound < yes.estimate < 10
    assert 10 < yes.effective <= 400
    assert str(yes).startswith("safe to deploy: estimated gain over the baseline (logged)")
    few = good.safe_to_deploy(fresh=rows(40, 1, 0.3))
    assert "more rows are needed" in few.reason
    worse = good.safe_to_deploy(lambda x: np.full(len(x), 2), fresh=rows(300, 1, -0.3))
    assert not worse
    bad = learner(400, 0, 0.5).safe_to_deploy(fresh=rows(2000, 1, -0.3))
    assert (bad.safe, bad.estimate < 0) == (False, True)
    assert "it appears to be worse" in bad.reason


def greedy(n: int, exploration: Any) -> o2pl.Bandit:
    """Context 0: action 0 pays; context 1: action 1. Action 2 never does. Played online."""
    g = np.random.default_rng(0)
    x = g.integers(2, size=(n, 1)) * 1.0
    pays = np.column_stack([x[:, 0] == 0, x[:, 0] == 1, np.zeros(n)]) * 1.0
    bandit = o2pl.Bandit(3, exploration=exploration, random_state=0)
    bandit.run((x, pays))
    return bandit


def test_an_unexplored_log_has_no_support_and_says_what_to_do() -> None:
    def today(contexts: Any) -> Any:
        return np.full(len(contexts), 2)

    unexplored = greedy(3000, 0.0)
    for found in (
        unexplored.safe_to_deploy(today),
        o2pl.evaluate(unexplored, "logged", baseline=today, at_any_time=True).safe_to_deploy(),
    ):
        assert not found
        assert "the log is deterministic" in found.reason or "does not support the baseline" in found.reason
        assert "exploration=0.05" in found.reason
    explored = o2pl.evaluate(greedy(6000, 0.05), "logged", baseline=today, at_any_time=True).safe_to_deploy()
    assert explored
    assert explored.bound > 0.3


def test_it_takes_what_evaluate_takes() -> None:
    good, other = learner(800, 0, 0.5), learner(800, 1, 0.0)
    fresh = rows(400, 1, 0.5)
    log = o2pl.Interactions(*fresh, reward_range=(0, 10))
    plain = np.full((400, 3), 1 / 3)
    bounds = [
        good.safe_to_deploy(baseline, fresh=given).bound
        for given in (fresh, log)
        for baseline in ("uniform", plain, plain[:, 0], lambda x: plain[: len(x)], "logged")
    ]
    np.testing.assert_allclose(bounds[:2] + bounds[3:4] + bounds[5:7], bounds[0], atol=1e-12)
    assert bounds[2] == pytest.approx(bounds[0], rel=0.2)  # without the other probabilities there is no reward model
    own = good.safe_to_deploy(other, fresh=learner(300, 3, 0.5))  # a learner for its log
    assert np.isfinite(own.bound)
    named = o2pl.O2PL(actions=["c", "b", "a"], reward_range=(0, 10), random_state=0)
    words = np.array(["c", "b", "a"])[fresh[1]]
    named.fit(fresh[0], words, *fresh[2:])
    later = rows(400, 2, 0.5)
    log = o2pl.Interactions(later[0], np.array(["c", "b", "a"])[later[1]], *later[2:])  # numbered a, b, c
    assert named.safe_to_deploy("b", fresh=log)
    assert not named.safe_to_deploy("a", fresh=log)  # the best


def test_the_learner_against_a_rule_at_any_time_is_seldom_wrong() -> None:
    """δ = .1: a learner that learns as it goes, where all actions pay alike; looked at after every tenth row."""
    wrong = 0
    for seed in range(60):
        g = np.random.default_rng(seed)
        bandit = o2pl.Bandit(2, policy="linear", exploration=0.2, random_state=seed)
        bandit.run((g.normal(size=(200, 1)), (g.random((200, 2)) < 0.5) * 1.0))
        found = o2pl.evaluate(bandit, "logged", baseline=lambda x: np.zeros(len(x), int), at_any_time=True, delta=0.1)
        assert found.difference_sequence is not None
        wrong += bool((found.difference_sequence.lower[9::10] > 0).any())
    assert not refutes(wrong, 60, 0.1, 1e-3)


def test_better_at_first_and_worse_later_is_not_safe() -> None:
    """Better by .1 for 1,000 rows, worse by .05 for 4,000: the bound is for all rows, and below the estimate."""
    for seed in range(5):
        g = np.random.default_rng(seed)
        actions, at = g.integers(2, size=5000), np.arange(5000)
        means = 0.5 + np.where(at < 1000, 0.2, -0.1) * actions
        log = o2pl.Interactions(
            g.normal(size=(5000, 1)), actions, (g.random(5000) < means) * 1.0, np.full(5000, 0.5), (0, 1)
        )
        found = o2pl.evaluate(log, "logged", baseline=lambda x: np.zeros(len(x), int), at_any_time=True)
        assert not found.safe_to_deploy()
        assert found.difference is not None
        assert found.difference.low <= found.difference.value <= found.difference.high


def test_rows_that_the_logger_dropped_are_drawn_so_that_each_decision_counts_alike() -> None:
    weighted, once, _ = dropped_log(24_000)

    def third(contexts: Any) -> Any:
        return np.full(len(contexts), 2)

    for log, safe in ((weighted, True), (weighted.thinned(), True), (once, False)):
        assert bool(o2pl.evaluate(log, third, baseline="logged", at_any_time=True).safe_to_deploy()) == safe
