"""IPW-CSC, DM and DR against scikit-learn, loops and known truths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from o2pl.errors import InvalidInput
from o2pl.features import Chain, Intercept
from o2pl.simulation.rivals.reductions import DirectMethod, DoublyRobust, IPWClassifier

WITH_ONE = Chain((Intercept(),))


def logged(n: int = 400, seed: int = 0, k: int = 3, d: int = 4) -> Any:
    """Bernoulli rewards linear in the context, actions from a soft logger; with the true means [n, K]."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    means = np.clip(0.5 + 0.25 * X @ rng.normal(size=(d, k)), 0.05, 0.95)
    logits = X @ rng.normal(size=(d, k))
    q = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    q = 0.8 * q + 0.2 / k
    actions = (rng.random((n, 1)) > np.cumsum(q, axis=1)).sum(axis=1)
    rows = np.arange(n)
    rewards = (rng.random(n) < means[rows, actions]).astype(float)
    return X, actions, rewards, q[rows, actions], means


def with_one(X: Any) -> Any:
    return np.hstack([np.ones((len(X), 1)), X.astype(np.float32)])


def test_ipw_csc_is_scikit_learns_weighted_logistic_regression() -> None:
    X, actions, rewards, propensities, _ = logged()
    found = IPWClassifier(3, l2=2.0, features=WITH_ONE).fit(X, actions, rewards, propensities)
    rated = rewards > 0
    twin = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-8, max_iter=1000)
    twin.fit(with_one(X)[rated], actions[rated], sample_weight=(rewards / propensities)[rated])
    logits = found.scores(X)
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert np.allclose(probabilities, twin.predict_proba(with_one(X)), atol=2e-3)
    assert np.mean(found.predict(X) == twin.predict(with_one(X))) > 0.99


def test_a_model_per_arm_is_one_ridge_per_arm() -> None:
    X, actions, rewards, propensities, _ = logged()
    found = DirectMethod(3, l2=1.7, features=WITH_ONE, level=0.2).fit(X, actions, rewards, propensities)
    for k in range(3):
        twin = Ridge(alpha=1.7, fit_intercept=False).fit(with_one(X)[actions == k], rewards[actions == k] - 0.2)
        assert np.allclose(found.scores(X)[:, k], 0.2 + twin.predict(with_one(X)), atol=1e-5)


@pytest.mark.parametrize("link", ["ridge", "logistic"])
def test_the_additive_model_has_no_interactions(link: str) -> None:
    X, actions, rewards, propensities, _ = logged()
    found = DirectMethod(3, model="additive", link=link, l2=1.7, features=WITH_ONE, level=0.5)
    scores = found.fit(X, actions, rewards, propensities).scores(X)
    joint = [np.hstack([with_one(X), np.tile(np.eye(3)[k], (len(X), 1))]) for k in range(3)]
    played = np.hstack([with_one(X), np.eye(3)[actions]])
    if link == "ridge":
        twin = Ridge(alpha=1.7, fit_intercept=False).fit(played, rewards - 0.5)
        expected = np.stack([0.5 + twin.predict(rows) for rows in joint], axis=1)
    else:
        regression = LogisticRegression(C=1 / 1.7, fit_intercept=False, tol=1e-8, max_iter=1000).fit(played, rewards)
        expected = np.stack([regression.predict_proba(rows)[:, 1] for rows in joint], axis=1)
    assert np.allclose(scores, expected, atol=1e-3)
    assert len(set(found.predict(X))) == 1  # the same ranking for every context


def test_the_gains_of_dr_are_cross_fitted() -> None:
    X, actions, rewards, propensities, _ = logged(n=60)
    found = DoublyRobust(3, model_l2=0.9, folds=4, clip=3.0, features=WITH_ONE, random_state=7)
    features = with_one(X)
    gains = found._gains(features, actions, rewards, propensities)
    fold = np.random.default_rng(7).permutation(60) % 4
    for s in range(60):
        rest = fold != fold[s]
        level = rewards[rest].mean()
        for a in range(3):
            own = rest & (actions == a)
            G = features[own].T @ features[own] + 0.9 * np.eye(5)
            predicted = level + features[s] @ np.linalg.solve(G, features[own].T @ (rewards[own] - level))
            correction = min(1 / propensities[s], 3.0) * (rewards[s] - predicted) if a == actions[s] else 0.0
            assert gains[s, a] == pytest.approx(predicted + correction, abs=1e-9)


def test_the_gains_of_dr_are_unbiased_even_with_a_useless_model() -> None:
    """z-test at 1e-4: the mean of Γ(a) - μ(a) over many logs is 0, with models shrunk to a constant."""
    errors = []
    for seed in range(200):
        X, actions, rewards, propensities, means = logged(n=50, seed=seed)
        found = DoublyRobust(3, model_l2=1e9, features=WITH_ONE, random_state=seed)
        errors.append((found._gains(with_one(X), actions, rewards, propensities) - means).mean(axis=0))
    z = np.mean(errors, axis=0) / (np.std(errors, axis=0) / np.sqrt(len(errors)))
    assert np.abs(z).max() < 3.9


def test_dr_stops_where_the_gradient_of_its_value_vanishes() -> None:
    X, actions, rewards, propensities, _ = logged(n=150)
    found = DoublyRobust(3, l2=2.0, features=WITH_ONE, random_state=1).fit(X, actions, rewards, propensities)
    features = with_one(X)
    gains = found._gains(features, actions, rewards, propensities)

    def value(W: Any) -> Any:
        logits = features @ W.T
        pi = np.exp(logits - logits.max(axis=1, keepdims=True))
        pi /= pi.sum(axis=1, keepdims=True)
        return np.mean((pi * gains).sum(axis=1)) - 2.0 * np.sum(W**2) / (2 * len(X))

    best = value(found._weights)
    rng = np.random.default_rng(0)
    assert best > value(np.zeros((3, 5))) + 0.01
    for _ in range(20):
        step = rng.normal(size=(3, 5)) * 1e-3
        assert abs(value(found._weights + step) - value(found._weights - step)) / np.linalg.norm(2 * step) < 1e-4


@pytest.mark.parametrize(
    "learner",
    [IPWClassifier(3), DirectMethod(3), DirectMethod(3, link="logistic"), DoublyRobust(3, random_state=0)],
    ids=["ipw", "dm", "dm-logistic", "dr"],
)
def test_each_improves_on_its_logger_and_deploys_greedily(learner: Any) -> None:
    X, actions, rewards, propensities, means = logged(n=3000)
    learner.fit(X, actions, rewards, propensities)
    probabilities = learner.predict_proba(X)
    assert np.array_equal(probabilities.argmax(axis=1), learner.predict(X))
    assert set(np.unique(probabilities)) == {0.0, 1.0}
    value = (probabilities * means).sum(axis=1).mean()
    assert value > rewards.mean() + 0.6 * (means.max(axis=1).mean() - rewards.mean())


@pytest.mark.parametrize(
    "make",
    [IPWClassifier, DirectMethod, lambda k: DirectMethod(k, model="additive", link="logistic"), DoublyRobust],
    ids=["ipw", "dm", "dm-additive", "dr"],
)
def test_poor_logs_are_taken_and_bad_ones_refused(make: Any) -> None:
    one = make(4).fit([[1.0, 2.0]], [1], [1.0], [0.5])
    assert one.predict([[1.0, 2.0]])[0] in range(4)
    make(4).fit([[1.0, 2.0], [2.0, 1.0]], [1, 2], [0.0, 0.0], [0.5, 0.5]).predict([[0.0, 0.0]])  # no reward at all
    bad: Any
    for bad in (
        ([[1.0, 2.0]], [4], [1.0], [0.5]),
        ([[1.0, 2.0]], [1], [2.0], [0.5]),
        ([[1.0, 2.0]], [1], [1.0], [0.0]),
        ([[1.0, np.nan]], [1], [1.0], [0.5]),
        ([[1.0, 2.0]], [1, 0], [1.0], [0.5]),
        (np.empty((0, 2)), np.empty(0, int), [], []),
    ):
        with pytest.raises(InvalidInput):
            make(4).fit(*bad)
    with pytest.raises(InvalidInput, match="found shape"):
        one.predict([[1.0, 2.0, 3.0]])
    with pytest.raises(AttributeError, match="call fit"):
        make(4).predict([[1.0]])


def test_settings_are_checked() -> None:
    log = ([[1.0], [2.0]], [0, 1], [1.0, 0.0], [0.5, 0.5])
    for bad in (
        IPWClassifier(2, l2=0.0),
        IPWClassifier(0),
        DirectMethod(2, model="both"),
        DirectMethod(2, link="probit"),
        DirectMethod(2, level=2.0),
        DoublyRobust(2, folds=1),
        DoublyRobust(2, clip=-1.0),
    ):
        with pytest.raises(InvalidInput, match="found"):
            bad.fit(*log)
