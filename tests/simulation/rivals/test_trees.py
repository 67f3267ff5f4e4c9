"""Boosted trees: uniform at first, then ε-greedy on scikit-learn's model of the whole history."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from o2pl.errors import InvalidInput
from o2pl.simulation.rivals.trees import BoostedTrees


def test_it_plays_what_the_model_of_the_history_says() -> None:
    rng = np.random.default_rng(0)
    learner = BoostedTrees(3, epsilon=0.0, trees=10, leaves=7, warm_start=4, growth=1.5, reward_range=(-1.0, 1.0))
    rows: list[Any] = []
    fitted, next_fit = 0, 12
    for t in range(80):
        x = rng.normal(size=2).astype(np.float32)
        decision = learner.act(x)
        if t < 12:
            assert decision.propensity == pytest.approx(1 / 3)
        else:
            X = np.array([[*c, a] for c, a, _ in rows[:fitted]])
            model = HistGradientBoostingRegressor(
                max_iter=10, max_leaf_nodes=7, min_samples_leaf=5, categorical_features=[2], early_stopping=False
            ).fit(X, [(r + 1) / 2 for _, _, r in rows[:fitted]])
            predicted = model.predict(np.array([[*x, k] for k in range(3)]))
            assert (decision.action, decision.propensity) == (predicted.argmax(), 1.0)
        reward = 1.0 if decision.action == (x[0] > 0) + (x[1] > 0) else -1.0
        learner.update(x, decision.action, reward, decision.propensity)
        rows.append((x.astype(float), decision.action, reward))
        if len(rows) >= next_fit:
            fitted, next_fit = len(rows), int(np.ceil(1.5 * len(rows)))


def test_it_learns_what_no_linear_model_can() -> None:
    """The right action is the sign of x₁x₂: uniform play earns .5."""
    rng = np.random.default_rng(1)
    learner, earned = BoostedTrees(2, random_state=0), []
    for _ in range(600):
        x = rng.normal(size=2)
        decision = learner.act(x)
        earned.append(float(decision.action == (x[0] * x[1] > 0)))
        learner.update(x, decision.action, earned[-1], decision.propensity)
    assert np.mean(earned[300:]) > 0.8


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InvalidInput, match="n_actions"):
        BoostedTrees(300).act([1.0])
    with pytest.raises(InvalidInput, match="trees"):
        BoostedTrees(2, trees=0).act([1.0])
