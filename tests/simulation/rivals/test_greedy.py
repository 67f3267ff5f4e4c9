"""Uniform and ε-greedy: models against slow fits, probabilities against frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from o2pl.engine.member import QUADRATIC
from o2pl.features import Chain, Intercept
from o2pl.simulation.rivals.greedy import EpsilonGreedy, Uniform

WITH_ONE = Chain((Intercept(),))


def test_greedy_ridge_plays_what_models_of_the_whole_history_say() -> None:
    rng = np.random.default_rng(2)
    learner = EpsilonGreedy(3, l2=0.5, features=WITH_ONE, growth=1.0, reward_range=(-1.0, 3.0))
    history: list[Any] = []
    for _ in range(120):
        x = rng.normal(size=2).astype(np.float32)
        share = [(r + 1) / 4 for _, _, r in history]
        level = (sum(share) + 3) / (len(share) + 3)  # three best rewards before the first
        predictions = []
        for k in range(3):
            own = np.array([[1.0, *c] for c, a, _ in history if a == k]).reshape(-1, 3)
            targets = np.array([(r + 1) / 4 - level for _, a, r in history if a == k])
            theta = np.linalg.solve(own.T @ own + 0.5 * np.eye(3), own.T @ targets)
            predictions.append(level + theta @ [1.0, *x])
        decision = learner.act(x)
        assert decision.propensity == 1.0
        assert predictions[decision.action] == pytest.approx(max(predictions), abs=1e-5)
        reward = 3.0 if rng.random() < 0.2 + 0.3 * (decision.action == 1) else -1.0
        history.append((x.astype(float), decision.action, reward))
        learner.update(x, decision.action, reward, 1.0)


def test_an_action_that_failed_falls_behind_those_not_tried() -> None:
    learner = EpsilonGreedy(4)
    tried = []
    for _ in range(4):
        tried.append(learner.act([1.0, 2.0]).action)
        learner.update([1.0, 2.0], tried[-1], 0.0, 1.0)
    assert sorted(tried) == [0, 1, 2, 3]


def test_fits_follow_the_geometric_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, fits = EpsilonGreedy(2, growth=1.5), []
    original = EpsilonGreedy._fit
    monkeypatch.setattr(EpsilonGreedy, "_fit", lambda self: (fits.append(len(self._log)), original(self))[1])
    for t in range(20):
        learner.update([float(t)], t % 2, 1.0, 1.0)
    assert fits == [1, 2, 3, 5, 8, 12, 18]


@pytest.mark.parametrize("model", ["ridge", "logistic"])
def test_epsilon_greedy_propensities_are_frequencies(model: str) -> None:
    learner = EpsilonGreedy(4, epsilon=0.3, model=model, features=QUADRATIC, random_state=1)
    rng = np.random.default_rng(0)
    for _ in range(30):
        x = rng.normal(size=2)
        learner.update(x, int(rng.integers(4)), float(x[0] > 0), 0.25)
    decisions = [learner.act([0.5, 1.0]) for _ in range(5000)]
    counts = np.bincount([d.action for d in decisions], minlength=4)
    propensities = {d.action: d.propensity for d in decisions}
    assert sorted(propensities.values()) == pytest.approx([0.075, 0.075, 0.075, 0.775])
    assert chisquare(counts, 5000 * np.array([propensities[k] for k in range(4)])).pvalue > 1e-4


def test_uniform_is_uniform() -> None:
    learner = Uniform(5, random_state=3)
    decisions = [learner.act([0.0]) for _ in range(5000)]
    assert {d.propensity for d in decisions} == {0.2}
    assert chisquare(np.bincount([d.action for d in decisions], minlength=5)).pvalue > 1e-4
