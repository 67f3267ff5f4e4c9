"""LCB, its guarded form and SNIPS against loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from o2pl.errors import InvalidInput
from o2pl.features import Chain, Intercept
from o2pl.learners.incumbent import clone_of_incumbent
from o2pl.policies import Softmax
from o2pl.simulation.rivals.lower_bound import GuardedLowerBound, LowerBound, SelfNormalised
from o2pl.simulation.rivals.reductions import DirectMethod

WITH_ONE = Chain((Intercept(),))


def logged(n: int = 200, seed: int = 0, k: int = 3, d: int = 2, signal: float = 1.0) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    means = 0.5 + signal * np.clip(0.25 * X @ np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])[:, :k], -0.45, 0.45)
    q = np.full((n, k), 0.3 / k)
    q[np.arange(n), (X[:, 0] > 0).astype(int)] += 0.7
    actions = (rng.random((n, 1)) > np.cumsum(q, axis=1)).sum(axis=1)
    rewards = (rng.random(n) < means[np.arange(n), actions]).astype(float)
    return X, actions, rewards, q[np.arange(n), actions], means


def test_scores_are_lower_bounds_row_by_row() -> None:
    X, actions, rewards, propensities, _ = logged()
    actions = np.minimum(actions, 1)  # the third action has no rows
    settings = {"width": 0.7, "level": 0.2, "l2": 1.5, "features": WITH_ONE}
    scores = LowerBound(3, **settings).fit(X, actions, rewards, propensities).scores(X)
    features = WITH_ONE.transform(WITH_ONE.init(2), X).astype(float)
    for a in range(3):
        own = features[actions == a]
        A = own.T @ own + 1.5 * np.eye(3)
        theta = np.linalg.solve(A, own.T @ (rewards[actions == a] - 0.2))
        for s in range(0, len(X), 17):
            bound = 0.7 * np.sqrt(features[s] @ np.linalg.solve(A, features[s]))
            assert scores[s, a] == pytest.approx(0.2 + features[s] @ theta - bound, abs=1e-5)


def test_without_width_it_is_the_direct_method() -> None:
    X, actions, rewards, propensities, _ = logged(seed=1)
    found = LowerBound(3, width=0.0, level=0.1, l2=2.0).fit(X, actions, rewards, propensities)
    twin = DirectMethod(3, level=0.1, l2=2.0).fit(X, actions, rewards, propensities)
    assert np.allclose(found.scores(X), twin.scores(X), atol=1e-6)


def test_snips_finds_the_top_of_its_objective() -> None:
    X, actions, rewards, propensities, _ = logged(seed=2, n=120)
    found = SelfNormalised(3, l2=5.0, features=WITH_ONE).fit(X, actions, rewards, propensities)
    features = WITH_ONE.transform(WITH_ONE.init(2), X)

    def lost(theta: Any) -> Any:
        logits = features.astype(float) @ theta.reshape(3, 3).T
        pi = np.exp(logits - logits.max(axis=1, keepdims=True))
        w = (pi / pi.sum(axis=1, keepdims=True))[np.arange(120), actions] / propensities
        return -(w @ rewards) / w.sum() + 5.0 / 240 * theta @ theta

    best = minimize(lost, clone_of_incumbent(Softmax(3), features, actions), method="BFGS", options={"gtol": 1e-6})
    assert lost(found._weights.reshape(-1)) == pytest.approx(best.fun, abs=1e-4)


def test_the_guarded_form_deploys_the_chosen_width_or_nothing() -> None:
    X, actions, rewards, propensities, means = logged(1500, 3)
    found = GuardedLowerBound(3, random_state=0).fit(X, actions, rewards, propensities)
    assert found.deploy_
    assert found.verdict_.penalty in (0.0, 2.0, 8.0)
    same = LowerBound(3, width=found.verdict_.penalty).fit(X, actions, rewards, propensities)
    assert np.array_equal(found.predict(X), same.predict(X))
    assert np.array_equal(found.predict_proba(X).argmax(axis=1), same.predict(X))
    gain = means[np.arange(1500), found.predict(X)].mean() - rewards.mean()
    assert gain > 0.05
    X, actions, rewards, propensities, _ = logged(200, 4)
    assert not GuardedLowerBound(3, random_state=0).fit(X, actions, 0 * rewards, propensities).deploy_


def test_the_guarded_form_scales_with_the_rewards() -> None:
    X, actions, rewards, propensities, _ = logged(300, 5)
    unit = GuardedLowerBound(3, random_state=2).fit(X, actions, rewards, propensities)
    scaled = GuardedLowerBound(3, random_state=2, reward_range=(-1.0, 3.0))
    scaled.fit(X, actions, 4 * rewards - 1, propensities)
    assert scaled.verdict_.lower == pytest.approx(4 * unit.verdict_.lower)
    assert scaled.verdict_.penalty == unit.verdict_.penalty


@pytest.mark.parametrize("settings", [{"width": -1.0}, {"level": 2.0}, {"l2": 0.0}])
def test_bad_settings_are_refused(settings: Any) -> None:
    X, actions, rewards, propensities, _ = logged(30)
    with pytest.raises(InvalidInput, match=next(iter(settings))):
        LowerBound(3, **settings).fit(X, actions, rewards, propensities)
    for wrong in ({"folds": 1}, {"confidence": 0.0}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            GuardedLowerBound(3, **wrong).fit(X, actions, rewards, propensities)
