"""CRM and SCRM: the objective against a loop, gradients against differences, batches against direct solves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.simulation.rivals.slow_risk import slow_risk

from o2pl.errors import InvalidInput
from o2pl.features import Chain, Intercept
from o2pl.policies import Gaussian, Softmax, log_likelihood
from o2pl.simulation.rivals.counterfactual import CounterfactualRisk, solve_counterfactual
from o2pl.simulation.rivals.crm import CRM, SCRM

WITH_ONE = Chain((Intercept(),))


def direct_minimum(
    policy: Any,
    features: Any,
    actions: Any,
    losses: Any,
    propensities: Any,
    penalty: Any,
    clip: Any,
    tau: Any,
    l2: Any,
    start: Any,
) -> Any:
    """Minimise the slow objective by differences, for policies whose parameters are few."""

    def value(params: Any) -> Any:
        log_prob, _ = log_likelihood(policy, params, features, actions)
        slow = slow_risk(np.exp(log_prob.astype(float)), losses, propensities, penalty, clip, tau)
        return slow + l2 * params @ params / (2 * len(actions))

    return minimize(value, start, method="BFGS", options={"gtol": 1e-7}).x


def continuous_log(n: int, seed: int, policy: Any, params: Any) -> Any:
    """Loss (a - x)² - 3 at its lowest; actions from the policy."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1)).astype(np.float32)
    features = np.hstack([np.ones((n, 1), np.float32), X])
    actions, densities = policy.sample(policy.scores(params, features), params, rng.random(n))
    rewards = np.maximum(3 - (actions - X[:, 0]) ** 2, 0)
    return X, features, actions, rewards, densities


def test_crm_minimises_its_objective() -> None:
    policy = Gaussian(0.0, 0.7)
    X, features, actions, rewards, densities = continuous_log(120, 3, policy, np.array([0.3, 0.0]))
    learner = CRM(policy, penalty=0.5, clip=20.0, l2=0.2, features=WITH_ONE, reward_range=None)
    learner.fit(X, actions, rewards, densities)
    expected = direct_minimum(policy, features, actions, -rewards, densities, 0.5, 20.0, 0.0, 0.2, np.zeros(2))
    assert np.allclose(learner.params_, expected, atol=1e-3)
    assert learner.params_[1] > 0.5  # towards a = x
    assert np.allclose(learner.predict(X), features @ learner.params_, atol=1e-6)


@pytest.mark.parametrize("memory", ["last", "all"])
@pytest.mark.parametrize("growth", [1.0, 2.0])
def test_scrm_solves_after_each_batch_from_where_it_stood(growth: float, memory: str) -> None:
    policy = Gaussian(0.0, 0.6)
    settings = {"penalty": 0.3, "tau": 0.01, "l2": 0.1, "features": WITH_ONE, "reward_range": None}
    learner = SCRM(policy, batch=30, growth=growth, memory=memory, random_state=4, **settings)
    rng = np.random.default_rng(8)
    rows, params, ends = [], np.zeros(2), np.cumsum([30 * growth**m for m in range(3)]).astype(int)
    for t in range(1, ends[-1] + 1):
        x = rng.normal(size=1).astype(np.float32)
        decision = learner.act(x)
        assert decision.propensity == pytest.approx(
            math.exp(-0.5 * ((decision.action - params @ [1, x[0]]) / 0.6) ** 2) / (0.6 * math.sqrt(2 * math.pi)),
            rel=0.02,
        )
        reward = max(3 - (decision.action - x[0]) ** 2, 0.0)
        rows.append((x[0], decision.action, -reward, decision.propensity))
        learner.update(x, decision.action, reward, decision.propensity)
        if t in ends:
            first = 0 if memory == "all" else ([0, *ends])[list(ends).index(t)]
            x, a, losses, q = (np.array(column, float) for column in zip(*rows[first:], strict=True))
            features = np.stack([np.ones(len(x)), x], axis=1).astype(np.float32)
            params = direct_minimum(policy, features, a, losses, q, 0.3, math.inf, 0.01, 0.1, params)
            assert np.allclose(learner.params_, params, atol=2e-3)
    assert learner.params_[1] > 0.4  # towards a = x


def test_scrm_takes_a_first_batch_from_another_logger() -> None:
    learner = SCRM(Gaussian(0.0, 0.5), batch=10, growth=2.0, features=WITH_ONE, reward_range=None, random_state=0)
    X, _, actions, rewards, densities = continuous_log(200, 5, Gaussian(0.0, 1.0), np.zeros(2))
    learner.partial_fit(X, actions, rewards, densities)
    first = learner.params_
    assert first[1] > 0.4
    actions, densities = learner.sample(X[:20])
    rewards = np.maximum(3 - (actions - X[:20, 0]) ** 2, 0)
    for s in range(20):  # the second batch: 10 × 2 rows
        assert learner.params_ is first
        learner.update(X[s], actions[s], rewards[s], densities[s])
    assert learner.params_ is not first


def discrete_log(n: int = 400, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    actions = rng.integers(0, 3, n)
    best = np.where(X[:, 0] > 0, 1 + (X[:, 1] > 0), 0)
    rewards = (rng.random(n) < np.where(actions == best, 0.8, 0.2)).astype(float)
    return X, actions, rewards, np.full(n, 1 / 3), best


def test_crm_learns_a_discrete_policy_and_the_encoding_of_losses_matters() -> None:
    X, actions, rewards, propensities, best = discrete_log(1500)
    shares = {}
    for loss_range in ((-1.0, 0.0), (0.0, 1.0)):
        learner = CRM(Softmax(3), loss_range=loss_range, random_state=0).fit(X, actions, rewards, propensities)
        probabilities = learner.predict_proba(X)
        assert np.allclose(probabilities.sum(axis=1), 1)
        assert np.array_equal(probabilities.argmax(axis=1), learner.predict(X))
        shares[loss_range] = probabilities[np.arange(len(X)), best].mean()
    assert shares[-1.0, 0.0] > 0.8
    assert shares[0.0, 1.0] != pytest.approx(shares[-1.0, 0.0], abs=1e-3)


def test_of_several_penalties_the_one_with_the_lowest_loss_on_held_out_rows_is_used() -> None:
    policy, penalties = Softmax(3), [0.0, 1.0, 30.0]
    X, actions, rewards, propensities, _ = discrete_log(90, seed=2)
    features = np.hstack([np.ones((90, 1)), X]).astype(np.float32)
    risk = CounterfactualRisk(-rewards, propensities, tau=0.01)
    held = np.random.default_rng(1).permutation(90)[:30]
    kept = np.setdiff1d(np.arange(90), held)
    outside = []
    for penalty in penalties:
        inside = CounterfactualRisk(-rewards[kept], propensities[kept], penalty, tau=0.01)
        params = solve_counterfactual(policy, features[kept], actions[kept], inside, [penalty], np.zeros(9), 0.1).params
        log_prob, _ = log_likelihood(policy, params, features[held], actions[held])
        outside.append(slow_risk(np.exp(log_prob), -rewards[held], propensities[held], 0.0, math.inf, 0.01))
    assert len({round(value, 4) for value in outside}) == 3
    found = solve_counterfactual(policy, features, actions, risk, penalties, np.zeros(9), 0.1, held)
    assert found.penalty == penalties[int(np.argmin(outside))]
    learner = CRM(policy, penalty=penalties, random_state=3).fit(X, actions, rewards, propensities)
    assert learner.penalty_ in penalties


@pytest.mark.parametrize(
    ("learner", "named"),
    [
        (CRM("softmax"), "policy"),
        (CRM(Softmax(3), penalty=-1.0), "penalty"),
        (CRM(Softmax(3), penalty=[]), "penalty"),
        (CRM(Softmax(3), clip=0.0), "clip"),
        (CRM(Softmax(3), loss_range=(1, 0)), "loss_range"),
        (CRM(Softmax(3), start=[1.0]), "start"),
        (SCRM(Softmax(3), memory="none"), "memory"),
        (SCRM(Softmax(3), batch=0), "batch"),
        (SCRM(Softmax(3), growth=0.5), "growth"),
    ],
)
def test_settings_are_checked(learner: Any, named: str) -> None:
    teach = learner.fit if isinstance(learner, CRM) else learner.partial_fit
    with pytest.raises(InvalidInput, match=named):
        teach(np.ones((2, 2)), np.array([0, 1]), [0.0, 1.0], [0.5, 0.5])


def test_bad_rows_are_refused() -> None:
    for bad, named in (
        (([[1.0]], [3], [1.0], [0.5]), "action"),
        (([[1.0]], [0], [1.5], [0.5]), "reward"),
        (([[1.0]], [0], [1.0], [2.0]), "propensity"),
        (([[1.0]], [0, 1], [1.0], [0.5]), "length"),
        (([[np.inf]], [0], [1.0], [0.5]), "context"),
    ):
        with pytest.raises(InvalidInput, match=named):
            CRM(Softmax(3)).fit(*bad)
        with pytest.raises(InvalidInput, match=named):
            SCRM(Softmax(3)).partial_fit(*bad)
    with pytest.raises(InvalidInput, match="reward"):
        CRM(Gaussian(), reward_range=None).fit([[1.0]], [0.0], [np.inf], [1.0])
    with pytest.raises(AttributeError, match="no data"):
        CRM(Softmax(3)).predict([[1.0]])
    with pytest.raises(InvalidInput, match="continuous"):
        CRM(Gaussian()).fit([[1.0]], [0.0], [1.0], [1.0]).predict_proba([[1.0]])
