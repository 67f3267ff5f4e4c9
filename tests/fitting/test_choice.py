"""The choice among learners: held-out values against the truth, and intervals at their stated rate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.evaluation.cases import dropped_log

import o2pl
from o2pl.errors import InvalidInput
from o2pl.evaluation import held_out
from o2pl.evaluation.reward_models import fit_rewards
from o2pl.evaluation.values import columns_for_values
from o2pl.fitting.candidate_learners import Candidate
from o2pl.fitting.choice import FEW, Fit, fit, held_out_parts_for_choice
from o2pl.theory.inequality import refutes

K, D = 3, 3
TRUTH = np.random.default_rng(8).normal(size=(D, K))


def world(n: int, seed: int, noise: float = 1.0) -> Any:
    """Rewards of the best action by a linear rule, seldom of others; logged by a policy that knows a little."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)).astype(np.float32)
    means = 1 / (1 + np.exp(-2 * noise * (X @ TRUTH) + 1))
    q = np.exp(0.5 * X @ TRUTH)
    q = 0.7 * q / q.sum(axis=1, keepdims=True) + 0.3 / K
    actions = (rng.random((n, 1)) > np.cumsum(q, axis=1)).sum(axis=1)
    rewards = (rng.random(n) < means[np.arange(n), actions]).astype(float)
    log = o2pl.Interactions(X, actions, rewards, q[np.arange(n), actions], reward_range=(0, 1))
    return log, means


def linear(name: str = "bandit linear competing") -> Any:
    return next(one for one in o2pl.fitting.candidates_for(world(10, 0)[0], (0, 1)) if one.name == name)


def test_every_row_is_held_out_once_and_a_quarter_of_a_long_log() -> None:
    parts = held_out_parts_for_choice(100, 0)
    assert len(parts) == 3
    assert sorted(np.concatenate([own for own, _ in parts])) == list(range(100))
    for own, rest in parts:
        assert sorted([*own, *rest]) == list(range(100))
    ((own, rest),) = held_out_parts_for_choice(FEW, 0)
    assert len(own) == FEW // 4
    assert not set(own) & set(rest)
    with pytest.raises(InvalidInput, match="found 5 rows, expected at least 6"):
        held_out_parts_for_choice(5, 0)


def test_the_better_learner_is_chosen_and_its_value_is_that_on_fresh_rows() -> None:
    log, _ = world(3000, 1)
    poor = Candidate("poor", o2pl.O2PL(K, policy="linear", penalty=50.0, random_state=0))  # stays with the logger
    found = fit(log, candidates=[poor, linear()])
    assert found.chosen.name == "bandit linear competing"
    fresh, means = world(20000, 2)
    true = float((found.learner.predict_proba(fresh.contexts) * means).sum(axis=1).mean())
    assert found.chosen.low < true < found.chosen.high
    assert found.chosen.value == pytest.approx(true, abs=0.03)
    assert found.chosen.better
    assert found.chosen.gain == pytest.approx(found.chosen.value - found.logged, abs=1e-12)
    assert [one.name for one in found.candidates] == ["bandit linear competing", "poor"]
    assert found.learner.log_.actions.shape == (3000,)  # it learned from all rows


def test_values_are_the_doubly_robust_estimate_of_rows_that_were_held_out() -> None:
    """Beside a loop: with one candidate that never learns, the parts are the log's own rows."""
    log, _ = world(300, 3)
    fixed = Candidate("fixed", o2pl.O2PL(K, policy="linear", penalty=1e6, l2=1e9, random_state=0))  # uniform
    found = fit(log, candidates=[fixed], delta=0.05)
    values, weights, surprises = [], [], []
    for own, rest in held_out_parts_for_choice(300, 0):
        test, model = log[own], fit_rewards(log[own])
        learner = fixed.made().fit(log[rest])
        pi, m = learner.predict_proba(test.contexts), model.all_actions(slice(0, len(own)))
        for s in range(len(own)):
            a = test.actions[s]
            weight = pi[s, a] / test.propensities[s]
            values.append(sum(pi[s] * m[s]) + weight * (test.rewards[s] - m[s, a]))
            weights.append(weight)
            surprises.append(abs(test.rewards[s] - m[s, a]))
    assert found.chosen.value == pytest.approx(np.mean(values), abs=1e-9)
    lost = found.chosen.judgement.unsupported
    assert lost < 0.01
    one_more = np.sum(np.square(weights)) / np.sum(weights) * max(surprises) / 300
    reach = 1.959964 * np.hypot(np.std(values, ddof=1) / np.sqrt(300), one_more)
    assert -1e-6 <= np.mean(values) - reach - found.chosen.pessimistic <= lost + 1e-6


def test_intervals_hold_all_together() -> None:
    """Where the truth is known, at most about δ of the logs may miss one of them."""
    missed, turned, runs = 0, 0, 30
    candidates = [linear(), linear("o2pl linear λ=1 l2=0.1")]
    for seed in range(runs):
        log, _ = world(400, 100 + seed)
        found = fit(log, candidates=candidates, delta=0.2)
        fresh, means = world(4000, 5000 + seed)
        assert found.candidates[0].pessimistic >= found.candidates[1].pessimistic
        turned += found.candidates[0].value < found.candidates[1].value
        for one in found.candidates:
            learner = next(each for each in candidates if each.name == one.name).made().fit(log)
            true = float((learner.predict_proba(fresh.contexts) * means).sum(axis=1).mean())
            # learned from all rows it is a little better than from two thirds of them
            missed += not one.low - 0.02 < true < one.high + 0.02
    assert turned > 0  # the choice is by the lower end, not by the estimate
    assert missed <= 12  # of 60, at level 0.2: P(Binomial(30, 0.2) > 12) < 0.005


def test_a_candidate_that_meets_no_reward_is_not_certain_of_its_value() -> None:
    """Clicks are rare and depend on nothing: all policies are worth the same."""
    missed = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        clicks = (rng.random(3000) < 0.004).astype(float)
        log = o2pl.Interactions(
            rng.normal(size=(3000, 3)), rng.integers(50, size=3000), clicks, np.full(3000, 0.02), (0, 1)
        )
        found = fit(log, candidates=[Candidate("independent", o2pl.Bandit(50, policy="linear", random_state=0))])
        missed += not found.chosen.low <= 0.004 <= found.chosen.high
        assert not found.chosen.better
    assert missed == 0


def test_large_weights_with_good_surprises_do_not_lower_the_interval() -> None:
    """One of ten actions pays. A row that plays it has a weight of 10."""
    missed = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        contexts, actions, directions = (
            rng.normal(size=(1500, 6)),
            rng.integers(10, size=1500),
            rng.normal(size=(6, 10)),
        )
        best = np.argmax(contexts @ directions, axis=1)
        log = o2pl.Interactions(contexts, actions, (actions == best) * 1.0, np.full(1500, 0.1), (0, 1))
        candidate = Candidate("linear", o2pl.Bandit(10, policy="linear", random_state=0))
        one = fit(log, candidates=[candidate]).chosen
        policies = [(candidate.made().fit(log[rest]), own) for own, rest in held_out_parts_for_choice(1500, 0)]
        true = np.mean([pi.predict_proba(contexts[own])[np.arange(500), best[own]] for pi, own in policies])
        missed += not one.low < true < one.high
    assert missed <= 1


def test_weights_that_overflow_leave_everything_open(monkeypatch: pytest.MonkeyPatch) -> None:
    log, _ = world(300, 3)
    monkeypatch.setattr(held_out, "columns_for_values", lambda *given: [
        one._replace(inputs=one.inputs._replace(weights=np.r_[np.inf, one.inputs.weights[1:]]))
        for one in columns_for_values(*given)
    ])  # fmt: skip
    found = fit(log, candidates=[linear()])
    assert (found.chosen.low, found.chosen.high) == (0, 1)
    assert found.judgement.verdict == "cannot be judged"


def test_actions_that_were_never_logged_are_worth_the_least() -> None:
    rng = np.random.default_rng(0)
    columns = (rng.normal(size=(200, 2)), rng.integers(2, size=200), rng.random(200), np.full(200, 0.5))
    log = o2pl.Interactions(*columns, reward_range=(0, 1), n_actions=4)
    everywhere = Candidate("uniform", o2pl.O2PL(4, policy="linear", penalty=1e6, l2=1e9, random_state=0))
    found = fit(log, candidates=[everywhere])
    assert found.chosen.low < found.chosen.value - 0.2  # half of what it does was never seen


def test_the_same_log_makes_the_same_learner_and_kept_parts_are_used(tmp_path: Path) -> None:
    log, _ = world(300, 4)
    store: dict[str, np.ndarray] = {}
    told = []

    def kept(name: Any, compute: Any) -> Any:
        if name not in store:
            store[name] = compute()
        return store[name]

    first = fit(log, candidates=[linear()], kept=kept, told=lambda *state: told.append(state))
    assert sorted(store) == [f"bandit linear competing, part {k}" for k in range(3)]
    assert told == [("bandit linear competing", k, 3) for k in (1, 2, 3)]
    again = fit(log, candidates=[linear()], kept=lambda name, compute: store[name])
    first.learner.save(tmp_path / "a")
    again.learner.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert first.candidates == again.candidates


def test_propensities_that_are_wrong_are_said() -> None:
    log, _ = world(2000, 5)
    too_small = o2pl.Interactions(log.contexts, log.actions, log.rewards, np.full(2000, 0.1), reward_range=(0, 1))
    found = fit(too_small, candidates=[linear()])
    assert any("do not match the actions" in warning for warning in found.warnings)
    too_large = o2pl.Interactions(log.contexts, log.actions, log.rewards, np.full(2000, 0.9), reward_range=(0, 1))
    assert "hardly shows" in str(fit(too_large, candidates=[linear()]))  # as if actions had not been available
    assert not fit(log, candidates=[linear()]).warnings


def test_every_kind_of_log_can_be_learned_from() -> None:
    rng = np.random.default_rng(0)
    n = 90
    rewards, propensities = rng.random(n), np.full(n, 0.5)
    pages = [
        ({"user": ["ann", "bob"][k % 2]}, [{"kind": "news"}, {"kind": "sport", "price": float(k)}]) for k in range(n)
    ]
    for contexts in (
        [{"age": float(k), "city": "Rome"} for k in range(n)],
        pages,
        o2pl.ActionSets.of([rng.normal(size=(2, 3)) for _ in range(n)]),
    ):
        log = o2pl.Interactions(contexts, rng.integers(2, size=n), rewards, propensities)
        found = fit(log)
        assert isinstance(found, Fit)
        assert len(found.learner.predict_proba(contexts)) == (n if isinstance(contexts[0], dict) else 2 * n)
    actions = rng.normal(size=n)
    density = np.exp(-(actions**2) / 2) / np.sqrt(2 * np.pi)
    continuous = o2pl.Interactions(rng.normal(size=(n, 2)), actions, rewards, density)
    assert isinstance(fit(continuous).learner, o2pl.GaussianO2PL)


def test_rows_that_the_logger_dropped_are_weighted() -> None:
    """The third action is the best of the whole log, and the worst of what was kept."""
    weighted, once, truth = dropped_log(9000)
    right, wrong = (fit(log, candidates=[linear().learner]) for log in (weighted, once))
    assert right.chosen.low < truth < right.chosen.high
    assert right.chosen.better
    assert wrong.chosen.value > truth + 0.05  # of another action, on rows that are not like the whole log
    assert right.logged == pytest.approx(np.mean([[0.2, 0.3, 0.8], [0.6, 0.3, 0.1]]), abs=0.02)
    assert abs(wrong.logged - right.logged) > 0.02
    assert right.chosen.effective < 0.8 * wrong.chosen.effective


def test_no_action_matters_and_the_reward_model_is_wrong() -> None:
    """Rewards depend on a product of columns that no model here has; a logger with a floor. Binomial test at 1e-3."""
    wrong, logs = 0, 25
    for seed in range(logs):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(1500, 4))
        scores = np.exp(1.5 * x @ np.random.default_rng(5).normal(size=(4, 4)))
        q = 0.95 * scores / scores.sum(axis=1, keepdims=True) + 0.0125
        actions = np.minimum((q.cumsum(axis=1) < rng.random(1500)[:, None]).sum(axis=1), 3)
        rewards = (rng.random(1500) < np.where(x[:, 0] * x[:, 3] > 0, 0.9, 0.1)) * 1.0
        log = o2pl.Interactions(x, actions, rewards, q[np.arange(1500), actions], (0, 1))
        learner = o2pl.Bandit(4, policy="linear", random_state=0)
        wrong += fit(log, candidates=[learner], seed=seed).chosen.better
    assert not refutes(wrong, logs, 0.025, 1e-3)


def test_a_deterministic_log_is_refused_as_everywhere() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 2))
    actions = (x[:, 0] > 0) * 1
    log = o2pl.Interactions(x, actions, (rng.random(900) < 0.5) * 1.0, np.ones(900), (0, 1))
    found = fit(log, candidates=[o2pl.O2PL(2, policy="linear", random_state=0)])
    assert found.judgement.verdict == "cannot be judged"
    policy = found.learner
    same = o2pl.evaluate(log, policy, baseline="logged", propensities="logged").doubt
    assert found.judgement.reason == same
    assert any("deterministic" in warning for warning in found.warnings)
