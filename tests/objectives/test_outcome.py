from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl._core import played_log_odds, prediction_sums
from o2pl.data.contexts import ActionSets
from o2pl.data.interactions import Interactions
from o2pl.objectives import PolicyValue
from o2pl.objectives.outcome import Outcome, OutcomeLog
from o2pl.oracles import LBFGS
from o2pl.policies import ActionWise, Softmax
from o2pl.policies.likelihood import probabilities

N, D, TAU = 40, 3, 0.7
each_kind = pytest.mark.parametrize("competing", [True, False])
each_case = pytest.mark.parametrize("case", [1, 2, 5, "sets"])
each_weights = pytest.mark.parametrize("weights", [None, np.linspace(0.1, 2, N)], ids=["alike", "weighed"])


def log_odds(scores: Any, offsets: Any, actions: Any, competing: bool) -> Any:
    out = np.empty((1, len(actions)))
    played_log_odds(scores[None].astype(float), offsets, actions, np.array([competing]), np.array([TAU]), out)
    return out[0]


def rows_of(case: Any) -> tuple[Any, Interactions]:
    """A policy and a log, with rewards between 0 and 1; of the action sets the first two are of one."""
    generator = np.random.default_rng(3)
    sizes = generator.integers(2, 6, size=N) if case == "sets" else np.full(N, case)
    contexts: Any = generator.normal(size=(N, D))
    if case == "sets":
        sizes[:2] = 1
        contexts = ActionSets(generator.normal(size=(sizes.sum(), D)), np.append(0, np.cumsum(sizes)))
    rewards = generator.random(N) * (generator.random(N) < 0.7)
    n_actions = None if case == "sets" else case
    rows = Interactions(contexts, generator.integers(sizes), rewards, np.full(N, 0.2), (0, 1), n_actions)
    return ActionWise() if case == "sets" else Softmax(case), rows


def function_of(case: Any, competing: bool, weights: Any = None) -> tuple[PolicyValue, Any]:
    """The objective, and parameters to look at; features are in double precision."""
    policy, rows = rows_of(case)
    log = Outcome(competing, l2=0.4, level_l2=5.0).prepare(rows, None, weights)
    params = 0.8 * np.random.default_rng(4).normal(size=policy.n_params(D))
    return PolicyValue(policy, rows.contexts, log, extra=1), np.append(params, TAU)


def slow_value(function: PolicyValue, params: Any, competing: bool, l2: float) -> float:
    """As the equations have it, row by row."""
    log, theta, tau = function.log, params[:-1], params[-1]
    weights = np.ones(N) if log.weights is None else log.weights
    total = 0.0
    for s in range(N):
        if isinstance(function.features, ActionSets):
            start, stop = function.features.offsets[s : s + 2]
            f = function.features.values[start:stop] @ theta
        else:
            f = theta.reshape(-1, D) @ function.features[s]
        a, r = log.actions[s], log.rewards[s]
        rivals = [math.exp(f[b]) for b in range(len(f)) if b != a]
        z = f[a] + tau
        if competing:
            z = f[a] - tau - (math.log(sum(rivals)) if rivals else 0.0)
        m = 1 / (1 + math.exp(-z))
        total -= weights[s] * (r * math.log(m) + (1 - r) * math.log(1 - m))
    level = 5.0 * tau**2 if competing else 0.0
    return float((total + 0.5 * l2 * theta @ theta + 0.5 * level) / weights.sum())


@each_kind
@each_case
@each_weights
def test_the_value_equals_a_loop(case: Any, competing: bool, weights: Any) -> None:
    function, params = function_of(case, competing, weights)
    expected = slow_value(function, params, competing, 0.4)
    assert function(params)[0] == pytest.approx(expected, rel=1e-5)
    assert replace(function, stretch=7)(params)[0] == pytest.approx(expected, rel=1e-5)


@each_kind
@each_case
@each_weights
def test_the_gradient_equals_differences(case: Any, competing: bool, weights: Any) -> None:
    function, params = function_of(case, competing, weights)
    gradient, h = function(params)[1], 1e-6
    for at in range(len(params) - (not competing)):
        step = h * np.eye(len(params))[at]
        up, down = (slow_value(function, params + sign * step, competing, 0.4) for sign in (1, -1))
        assert gradient[at] == pytest.approx((up - down) / (2 * h), abs=2e-6)
    if not competing:
        assert gradient[-1] == 0


def test_competing_actions_are_explained_by_the_log_odds_of_the_policy() -> None:
    function, params = function_of(5, True)
    pi = probabilities(Softmax(5), params[:-1], function.features)[np.arange(N), function.log.actions]
    scores = function.features @ params[:-1].reshape(5, D).T
    z = log_odds(scores.reshape(-1), np.arange(0, 5 * N + 1, 5), function.log.actions, True)
    np.testing.assert_allclose(z, np.log(pi / (1 - pi)) - TAU, rtol=1e-5)


@pytest.mark.parametrize("weights", [None, np.linspace(0.1, 2, N)], ids=["alike", "weighed"])
def test_the_level_of_independent_actions_is_the_log_odds_of_b_and_no_solve_moves_it(weights: Any) -> None:
    function, params = function_of(5, False, weights)
    w = np.ones(N) if weights is None else weights
    b = ((w * function.log.rewards).sum() + 3) / (w.sum() + 3)
    started = function.log.started(params)
    assert started[-1] == pytest.approx(math.log(b / (1 - b)))
    assert params[-1] == TAU  # those given stay as they are
    oracle = LBFGS(10, 1e-6)
    for solution in (oracle(function, started), oracle.step(function, started, oracle.init(len(started)))[0]):
        assert solution.params[-1] == started[-1]
        assert np.abs(solution.params - started).max() > 0.1
    competing, _ = function_of(5, True, weights)
    assert competing.log.started(params) is params
    assert oracle(competing, params).params[-1] != TAU


def test_b_is_held_within_its_ends() -> None:
    for rewards, end in ((np.zeros(10_000), 0.01), (np.ones(10_000), 0.99)):
        log = OutcomeLog(np.zeros(10_000, int), rewards, False, 1.0, 10.0)
        assert log.level == pytest.approx(math.log(end / (1 - end)))


@pytest.mark.parametrize(("n_actions", "share"), [(1, 1), (2, 1), (8, 1), (16, 0.5), (80, 0.1)])
def test_l2_falls_as_8_over_k_but_for_sets_which_share_their_weights(n_actions: int, share: float) -> None:
    rows = Interactions(np.zeros((2, 1)), [0, 0], [0, 1], [0.5, 0.5], (0, 1), n_actions)
    assert Outcome(l2=3.0).prepare(rows).l2 == pytest.approx(3 * share)
    sets = ActionSets(np.zeros((2 * n_actions, 1)), np.array([0, n_actions, 2 * n_actions]))
    assert Outcome(l2=3.0).prepare(Interactions(sets, [0, 0], [0, 1], [0.5, 0.5], (0, 1))).l2 == 3.0


@each_kind
def test_evidence_is_the_log_likelihood_of_predictions_held_from_the_ends(competing: bool) -> None:
    scores = np.array([[3.0, 1.0, -0.5], [0.0, 900.0, 0.0], [0.0, -900.0, 0.0], [0.2, 0.1, 0.0]])
    actions, rewards = np.array([0, 1, 1, 2]), np.array([1.0, 0.0, 1.0, 0.3])
    own, others = [3.0, 900.0, -900.0, 0.0], [math.log(math.exp(1) + math.exp(-0.5)), math.log(2), math.log(2)]
    others.append(math.log(math.exp(0.2) + math.exp(0.1)))
    z, level, slope = log_odds(scores.reshape(-1), np.arange(0, 13, 3), actions, competing), 0.2, 0.7
    expected = np.zeros(6)
    for s, found in enumerate(z):
        assert found == pytest.approx(own[s] - others[s] - TAU if competing else own[s] + TAU)
        x = min(max(found, -math.log(9999)), math.log(9999))
        m = 1 / (1 + math.exp(-(level + slope * x)))
        expected[1:] += np.array([rewards[s] - m, (rewards[s] - m) * x, *(m * (1 - m) * np.array([1, x, x * x]))])
        m = min(max(m, 1e-4), 1 - 1e-4)
        expected[0] += rewards[s] * math.log(m) + (1 - rewards[s]) * math.log(1 - m)
    sums = np.empty((6, 1))
    prediction_sums(z[None], rewards, np.array([level]), np.array([slope]), sums)
    np.testing.assert_allclose(sums[:, 0], expected)


@each_kind
@pytest.mark.parametrize("sets", [False, True])
@pytest.mark.parametrize("score", [40.0, -40.0, 900.0, -900.0])
def test_a_nearly_sure_action_loses_no_precision(competing: bool, sets: bool, score: float) -> None:
    """1 - π(a|x) = 2 exp(-40) is below what 1 less π can hold. A reward of neither 0 nor 1 keeps the loss large."""
    scores, offsets = np.array([[score, 0.0, 0.0]]), np.array([0, 3]) if sets else None
    log = OutcomeLog(np.array([0]), np.array([0.25]), competing, 0.0, 0.0, offsets)
    sums, (pulled,) = log.partial(scores.reshape(-1) if sets else scores, slice(None), np.zeros(1))
    z = score - math.log(2) if competing else score
    assert sums[0] == pytest.approx(max(z, 0) - 0.25 * z + math.log1p(math.exp(-abs(z))), rel=1e-14)
    c = (1.0 if score > 0 else 0.0) - 0.25
    np.testing.assert_allclose(pulled.reshape(-1), [c, *([-c / 2] * 2 if competing else [0, 0])], atol=1e-15)


def test_where_the_policy_is_sure_and_wrong_the_gradient_does_not_vanish() -> None:
    log = OutcomeLog(np.array([0]), np.array([1.0]), True, 0.0, 0.0)
    _, (pulled,) = log.partial(np.array([[-40.0, 0.0, -80.0]]), slice(None), np.zeros(1))
    np.testing.assert_allclose(pulled, [[-1, 1, math.exp(-80)]], rtol=1e-12)


def test_the_rate_of_a_union_is_tempered() -> None:
    assert [Outcome().rate(n) for n in (0, 8)] == [1, 1]
    assert Outcome().rate(899) == pytest.approx(0.1)


@pytest.mark.parametrize("setting", ["l2", "level_l2"])
def test_bad_settings_are_refused(setting: str) -> None:
    with pytest.raises(o2pl.InvalidInput, match=f"{setting}: found -1"):
        Outcome(**{setting: -1})
