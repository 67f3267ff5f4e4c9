"""Inverse-gap weighting: the two rules by their formulas, written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl.errors import InvalidInput
from o2pl.features import Chain, Intercept
from o2pl.simulation.rivals.inverse_gap import InverseGap, inverse_gap
from o2pl.simulation.rivals.models import fit_models_per_action, predict_models_per_action


def test_square_by_hand() -> None:
    p = inverse_gap("square", np.array([0.2, 0.7, 0.4]), 10.0)
    np.testing.assert_allclose(p, [1 / (3 + 5), 1 - 1 / 8 - 1 / 6, 1 / (3 + 3)])


def test_fast_by_hand() -> None:
    """Losses .8, .3, .6: p = .3 / (.9 + 10 · .5) and .3 / (.9 + 10 · .3)."""
    p = inverse_gap("fast", np.array([0.2, 0.7, 0.4]), 10.0)
    np.testing.assert_allclose(p, [0.3 / 5.9, 1 - 0.3 / 5.9 - 0.3 / 3.9, 0.3 / 3.9])


@pytest.mark.parametrize("rule", ["square", "fast"])
def test_they_are_probabilities(rule: str) -> None:
    rng = np.random.default_rng(0)
    for gamma in (0.0, 1.0, 1e6):
        for predicted in (rng.random(7), np.full(7, 0.5), np.r_[1.0, np.zeros(6)], np.ones(7)):
            p = inverse_gap(rule, predicted.copy(), gamma)
            assert p.min() >= 0
            assert p.sum() == pytest.approx(1)
            assert p.argmax() == predicted.argmax()
    np.testing.assert_allclose(inverse_gap(rule, rng.random(5), 0.0), 0.2)  # no γ: uniform


def test_gamma_grows_with_the_rows_and_models_are_of_the_whole_history() -> None:
    rng = np.random.default_rng(1)
    learner = InverseGap(3, gamma=4.0, exponent=0.7, l2=0.5, features=Chain((Intercept(),)), growth=1.0, random_state=0)
    history: list[Any] = []
    for _ in range(40):
        x = rng.normal(size=2).astype(np.float32)
        X = np.array([[1.0, *c] for c, _, _ in history]).reshape(-1, 3)
        actions, rewards = (np.array([row[place] for row in history]) for place in (1, 2))
        level = (rewards.sum() + 3) / (len(history) + 3)
        weights = fit_models_per_action("logistic", X, actions, rewards, 3, 0.5, level) if history else np.zeros((3, 3))
        predicted = predict_models_per_action("logistic", weights, np.array([[1.0, *x]]), level)[0]
        expected = inverse_gap("square", predicted, 4.0 * len(history) ** 0.7)
        decision = learner.act(x)
        assert decision.propensity == pytest.approx(expected[decision.action], abs=1e-3)
        reward = float(rng.random() < 0.2 + 0.5 * (decision.action == 1))
        history.append((x.astype(float), decision.action, reward))
        learner.update(x, decision.action, reward, decision.propensity)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InvalidInput, match="rule: found 'cube'"):
        InverseGap(2, rule="cube").act([1.0])
    with pytest.raises(InvalidInput, match="gamma"):
        InverseGap(2, gamma=-1.0).act([1.0])
