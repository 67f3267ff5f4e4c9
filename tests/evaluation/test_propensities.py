"""Estimated propensities against the true ones, on every kind of action."""

from __future__ import annotations

import numpy as np
import pytest

import o2pl
from o2pl import ActionSets, InvalidInput
from o2pl.data.interactions import Interactions
from o2pl.evaluation.calibration import propensity_calibration
from o2pl.evaluation.propensities import deterministic_propensities, estimate_propensities


def softmax_log(n: int = 4000, strength: float = 1.0, seed: int = 0) -> tuple[Interactions, np.ndarray]:
    g = np.random.default_rng(seed)
    contexts = g.normal(size=(n, 2))
    scores = strength * contexts @ [[1.0, 0.0, -1.0], [0.0, 1.0, 0.5]]
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    actions = (shares.cumsum(axis=1) < g.random(n)[:, None]).sum(axis=1)
    log = Interactions(contexts, actions, g.random(n), None, reward_range=(0, 1), n_actions=3)
    return log, shares[np.arange(n), actions]


def test_estimates_are_near_the_truth_and_calibrated() -> None:
    log, truth = softmax_log()
    assert not log.has_propensities
    found = estimate_propensities(log)
    assert found.has_propensities
    assert np.sqrt(np.mean((found.propensities - truth) ** 2)) < 0.03
    assert propensity_calibration(found).p_value > 0.01
    assert not deterministic_propensities(found.propensities, False)
    o2pl.O2PL(3, random_state=0).fit(found)
    for wrong in (lambda: o2pl.Bandit(3).fit(log), lambda: o2pl.Bandit(3).fit((*tuple(log)[:3], None))):
        with pytest.raises(InvalidInput, match="found no propensities"):
            wrong()


def test_no_row_is_predicted_from_itself() -> None:
    """Every row has a column of its own: other rows say nothing of it, and only itself could make it seem likely."""
    g = np.random.default_rng(0)
    actions = g.integers(3, size=90)
    found = estimate_propensities((np.eye(90), actions, g.random(90), None)).propensities
    assert found.mean() < 0.36


def test_a_log_whose_contexts_decide_its_actions_is_seen_through() -> None:
    log, _ = softmax_log(strength=200.0)
    assert deterministic_propensities(estimate_propensities(log).propensities, False)
    greedy, _ = softmax_log(strength=200.0)  # the same, but 2 % of the rows by chance
    actions = np.where(np.arange(4000) % 50 == 0, (greedy.actions + np.arange(4000) // 50) % 3, greedy.actions)
    some = Interactions(greedy.contexts, actions, greedy.rewards, None)
    assert not deterministic_propensities(estimate_propensities(some).propensities, False)
    single = Interactions(log.contexts, np.zeros(4000, int), log.rewards, None, n_actions=3)
    assert deterministic_propensities(estimate_propensities(single).propensities, False)


def test_real_actions_and_action_sets() -> None:
    g = np.random.default_rng(0)
    contexts = g.normal(size=(4000, 1))
    actions = contexts[:, 0] + g.normal(size=4000)
    density = np.exp(-((actions - contexts[:, 0]) ** 2) / 2) / np.sqrt(2 * np.pi)
    found = estimate_propensities((contexts, actions, g.random(4000), None)).propensities
    inside = np.abs(actions) < 1.5
    assert np.corrcoef(found[inside], density[inside])[0, 1] > 0.85
    assert np.mean(found[inside]) == pytest.approx(np.mean(density[inside]), rel=0.1)
    sizes = g.integers(2, 5, 1500)
    sets = [g.normal(size=(k, 2)) for k in sizes]
    shares = [np.exp(one[:, 0]) / np.exp(one[:, 0]).sum() for one in sets]
    chosen = np.array([g.choice(len(p), p=p) for p in shares])
    found = estimate_propensities((ActionSets.of(sets), chosen, g.random(1500), None)).propensities
    truth = np.array([p[a] for p, a in zip(shares, chosen, strict=True)])
    assert np.sqrt(np.mean((found - truth) ** 2)) < 0.03
