"""scikit-learn's own tools around our learners."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl.errors import InvalidInput

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from o2pl.adapters.sklearn import LoggedPolicy, feedback


def log(n: int = 600, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    actions, propensities = rng.integers(3, size=n), np.full(n, 1 / 3)
    best = np.where(X[:, 0] * X[:, 1] > 0, 0, 1)  # a product: linear policies cannot see it
    rewards = (rng.random(n) < np.where(actions == best, 0.9, 0.1)).astype(float)
    return X, feedback(actions, rewards, propensities)


def test_a_grid_search_picks_what_an_estimate_on_held_out_rows_prefers() -> None:
    X, y = log()
    search = GridSearchCV(
        LoggedPolicy(o2pl.O2PL(3, random_state=0)), {"learner__policy": ["linear", "quadratic"]}, cv=3
    ).fit(X, y)
    assert search.best_params_ == {"learner__policy": "quadratic"}
    fresh, other = log(seed=1)
    assert search.score(fresh, other) > 0.8
    assert search.predict(fresh).shape == (600,)
    np.testing.assert_allclose(search.predict_proba(fresh).sum(axis=1), 1)


def test_pipelines_and_clones() -> None:
    X, y = log()
    pipeline = make_pipeline(PolynomialFeatures(2), LoggedPolicy(o2pl.O2PL(3, policy="linear", random_state=0)))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.75
    policy = LoggedPolicy(o2pl.O2PL(3, penalty=0.7), estimator="dr", pessimism=1.0)
    twin = clone(policy)
    assert twin.learner is not policy.learner
    assert repr(twin.learner) == repr(policy.learner)
    assert (twin.estimator, twin.pessimism) == ("dr", 1.0)
    twin.set_params(learner__penalty=0.2)
    assert (twin.learner.penalty, policy.learner.penalty) == (0.2, 0.7)


def test_the_score_is_the_estimate_that_evaluate_gives() -> None:
    X, y = log()
    actions, rewards, propensities = y[:, 0].astype(int), y[:, 1], y[:, 2]
    fresh = o2pl.Interactions(X, actions, rewards, propensities, reward_range=(0, 1), n_actions=3)
    for name in ("ips", "snips", "dr"):
        policy = LoggedPolicy(o2pl.Bandit(3, random_state=0), estimator=name).fit(X, y)
        found = o2pl.evaluate(fresh, policy.learner_, estimators=[name])
        assert policy.score(X, y) == pytest.approx(found.value, abs=1e-12)
    assert policy.set_params(pessimism=2.0).score(X, y) < found.value
    assert LoggedPolicy().fit(X, y).score(X, y) == pytest.approx(0.9, abs=0.1)  # Bandit


def test_frames_and_real_valued_actions() -> None:
    pd = pytest.importorskip("pandas")
    X, y = log(200)
    frame = pd.DataFrame({"x": X[:, 0], "city": ["Rome", "Oslo"] * 100})
    assert cross_val_score(LoggedPolicy(o2pl.Bandit(3, random_state=0)), frame, y, cv=2).shape == (2,)
    rng = np.random.default_rng(0)
    actions = rng.normal(size=200)
    density = np.exp(-(actions**2) / 2) / np.sqrt(2 * np.pi)
    real = LoggedPolicy(o2pl.GaussianO2PL(random_state=0)).fit(X, feedback(actions, np.exp(-(actions**2)), density))
    assert 0 < real.score(X, feedback(actions, np.exp(-(actions**2)), density)) < 1


def test_actions_by_name() -> None:
    X, y = log(300)
    names = np.array(["loan", "card", "none"])[y[:, 0].astype(int)]
    named = feedback(names, y[:, 1], y[:, 2])
    learner = o2pl.O2PL(actions=["loan", "card", "none"], random_state=0)
    policy = LoggedPolicy(learner).fit(X, named)
    assert set(policy.predict(X)) <= set(names)
    numbered = LoggedPolicy(o2pl.O2PL(3, random_state=0)).fit(X, y)
    assert policy.score(X, named) == numbered.score(X, y)
    np.testing.assert_array_equal(policy.predict_proba(X), numbered.predict_proba(X))
    with pytest.raises(InvalidInput, match="reward: expected numbers"):
        feedback(names, ["much"] * 300, y[:, 2])


def test_what_is_wrong_is_said() -> None:
    X, y = log(50)
    with pytest.raises(InvalidInput, match=r"y: found shape \(50,\), expected three columns"):
        LoggedPolicy().fit(X, y[:, 0])
    with pytest.raises(InvalidInput, match=r"action, row 0: found 0\.5"):
        LoggedPolicy().fit(X, np.column_stack([np.full(50, 0.5), y[:, 1:]]))
    with pytest.raises(InvalidInput, match="estimator: found 'best'"):
        LoggedPolicy(estimator="best").fit(X, y)
    with pytest.raises(InvalidInput, match="expected three columns of equal length"):
        feedback([0, 1], [1.0], [0.5, 0.5])
