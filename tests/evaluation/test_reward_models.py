"""Cross-fitted models against scikit-learn's ridge on the other folds, and against integrals done by force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from o2pl import ActionSets, GaussianO2PL
from o2pl.data.interactions import Interactions
from o2pl.evaluation.reward_models import fit_rewards
from o2pl.evaluation.values import columns_for_values
from o2pl.features import Standardise
from o2pl.learners.targets import as_target


def discrete_log(n: int = 300, k: int = 3, seed: int = 0) -> Interactions:
    g = np.random.default_rng(seed)
    contexts, actions = g.normal(size=(n, 2)), g.integers(k, size=n)
    rewards = np.clip(0.5 + 0.1 * contexts[:, 0] * (actions == 1) + 0.1 * g.normal(size=n), 0, 1)
    return Interactions(contexts, actions, rewards, np.full(n, 1 / k), reward_range=(0, 1), n_actions=k)


def features_of(log: Interactions) -> np.ndarray:
    scale = Standardise()
    return scale.transform(scale.observe(scale.init(2), log.contexts), log.contexts).astype(np.float64)


def test_each_fold_is_predicted_by_a_ridge_on_the_others() -> None:
    log = discrete_log()
    model = fit_rewards(log, folds=4, penalty=2.0, seed=3)
    features = features_of(log)
    got, played = model.all_actions(slice(0, len(log))), model.played(slice(0, len(log)))
    assert sorted(np.unique(model.folds)) == [0, 1, 2, 3]
    for fold in range(4):
        mine = model.folds == fold
        for action in range(3):
            rows = ~mine & (log.actions == action)
            reference = Ridge(alpha=2.0).fit(features[rows], log.rewards[rows]).predict(features)
            np.testing.assert_allclose(got[mine, action], reference[mine], atol=1e-8)
            here = mine & (log.actions == action)
            np.testing.assert_allclose(played[here], reference[here], atol=1e-8)


def rare_log(n: int = 12000, k: int = 3, seed: int = 0, cost: float = 1.0) -> Interactions:
    """Rewards in 4 % of the rows; with contexts that matter."""
    g = np.random.default_rng(seed)
    contexts, actions = g.normal(size=(n, 2)), g.integers(k, size=n)
    rewards = cost * (g.random(n) < 0.02 * (1 + actions) * np.exp(contexts[:, 0] - 0.5))
    return Interactions(contexts, actions, rewards, np.full(n, 1 / k), reward_range=(0, cost), n_actions=k)


@pytest.mark.parametrize("kind", ["two rewards", "two rewards of 0 and 5", "many rewards"])
def test_the_mean_prediction_is_the_mean_reward_per_fold_and_action(kind: str) -> None:
    log = rare_log(cost=5.0 if kind.endswith("5") else 1.0)
    if kind == "many rewards":  # most of them 0: a ridge would go below 0, and be biased if it were just cut
        size = np.random.default_rng(1).beta(2, 3, len(log))
        log = Interactions(
            log.contexts, log.actions, log.rewards * size, log.propensities, reward_range=(0, 1), n_actions=3
        )
    model = fit_rewards(log)
    assert model.link.logistic == (kind != "many rewards")
    assert np.abs(model.slopes).max() > 0
    for fold in range(5):
        as_if = replace(model, folds=np.full(len(log), fold))  # this fold's model, for all rows
        predicted = as_if.played(slice(0, len(log)))
        low, high = log.reward_range or (0, 0)
        assert (predicted >= low).all()
        assert (predicted <= high).all()
        for action in range(3):
            rows = (model.folds != fold) & (log.actions == action)
            assert predicted[rows].mean() == pytest.approx(log.rewards[rows].mean(), rel=1e-6)


def test_dr_is_never_worse_than_ips_by_more_than_noise() -> None:
    """Rare rewards, many actions, skewed logger: squared errors over seeds, of DR against IPS."""
    errors = []
    for seed in range(30):
        g = np.random.default_rng(seed)
        shares = np.exp(np.linspace(-2, 2, 30))
        shares /= shares.sum()
        actions = g.choice(30, 1500, p=shares)
        means = 0.005 + 0.03 * (np.arange(30) % 7 == 0)
        rewards = (g.random(1500) < means[actions]) * 1.0
        log = Interactions(g.normal(size=(1500, 3)), actions, rewards, shares[actions], reward_range=(0, 1))
        target = as_target(np.full((1500, int(log.n_actions or 0)), 1 / int(log.n_actions or 1)), log)
        found = columns_for_values(log, [target], fit_rewards(log))[0].inputs
        assert found.expected is not None
        assert found.played is not None
        weights = found.weights
        ips = np.mean(weights * rewards)
        dr = np.mean(found.expected + weights * (rewards - found.played))
        errors.append([ips - means.mean(), found.expected.mean() - means.mean(), dr - means.mean()])
    root = np.sqrt(np.mean(np.square(errors), axis=0))
    assert root[2] < 1.05 * root[0]
    assert abs(np.mean(errors, axis=0)[1]) < 0.002  # the model alone: nearly unbiased, where a cut ridge is not


def test_a_row_is_not_predicted_from_itself() -> None:
    log = discrete_log()
    before = fit_rewards(log).played(slice(0, 300))
    other = log.rewards.copy()
    other[17] = 1 - other[17]
    after = fit_rewards(Interactions(log.contexts, log.actions, other, log.propensities, reward_range=(0, 1)))
    assert after.played(slice(0, 300))[17] == before[17]
    assert not np.array_equal(after.played(slice(0, 300)), before)


def test_expected_reward_of_a_policy_is_the_weighted_sum() -> None:
    log = discrete_log()
    probabilities = np.random.default_rng(1).dirichlet(np.ones(3), 300)
    model = fit_rewards(log)
    found = columns_for_values(log, [as_target(probabilities, log)], model)[0].inputs
    assert found.expected is not None
    assert found.played is not None
    m = model.all_actions(slice(0, 300))
    slow = [sum(probabilities[s, a] * m[s, a] for a in range(3)) for s in range(300)]
    np.testing.assert_allclose(found.expected, slow)
    assert (
        columns_for_values(log, [as_target("logged", log)], model)[0].inputs.expected is None
    )  # π of other actions is not known


def test_actions_that_the_log_does_not_know_are_worth_the_mean() -> None:
    log = discrete_log()
    probabilities = np.zeros((300, 5))
    probabilities[:, 4] = 1
    model = fit_rewards(log)
    found = columns_for_values(log, [as_target(probabilities, log)], model)[0].inputs
    assert found.expected is not None
    assert found.played is not None
    np.testing.assert_allclose(found.expected, model.means[model.folds])


def test_real_valued_actions_are_integrated_exactly() -> None:
    g = np.random.default_rng(0)
    contexts = g.normal(size=(400, 2))
    actions = contexts[:, 0] + g.normal(size=400)
    density = np.exp(-((actions - contexts[:, 0]) ** 2) / 2) / np.sqrt(2 * np.pi)
    rewards = 3 - (actions - 1) ** 2 + 0.1 * g.normal(size=400)
    log = Interactions(contexts, actions, rewards, density)
    assert log.continuous
    learner = GaussianO2PL(scale=0.7, reward_range=(-20, 4)).fit(
        contexts[:50], actions[:50], rewards[:50], density[:50]
    )
    model = fit_rewards(log, penalty=1e-6)
    target = as_target(learner, log)
    found = columns_for_values(log, [target], model)[0].inputs
    assert found.expected is not None
    assert found.played is not None
    mean = learner.predict(contexts)
    np.testing.assert_allclose(found.played, 3 - (actions - 1) ** 2, atol=0.2)
    np.testing.assert_allclose(found.expected, 3 - (mean - 1) ** 2 - 0.49, atol=0.2)
    fine = (np.arange(4000) + 0.5) / 4000  # the same integral by its quantiles, in one row
    from scipy.special import ndtri

    nodes = mean[7] + 0.7 * ndtri(fine)
    one = Interactions(np.repeat(contexts[7:8], 4000, 0), nodes, np.zeros(4000), np.ones(4000))
    moved = replace(model, log=one, folds=np.full(4000, model.folds[7]))
    one.__dict__["action_scale"] = log.action_scale
    assert found.expected[7] == pytest.approx(float(moved.played(slice(0, 4000)).mean()), abs=2e-3)


def test_action_sets() -> None:
    g = np.random.default_rng(0)
    sizes = g.integers(2, 5, 300)
    sets = ActionSets.of([g.normal(size=(k, 2)) for k in sizes])
    actions = g.integers(sizes)
    played = sets.values[sets.offsets[:-1] + actions]
    log = Interactions(sets, actions, played[:, 0] * 2.0, 1 / sizes)
    model = fit_rewards(log, penalty=1e-6)
    found = columns_for_values(log, [as_target("uniform", log)], model)[0].inputs
    assert found.expected is not None
    assert found.played is not None
    slow = [sets.values[sets.offsets[s] : sets.offsets[s + 1], 0].mean() * 2 for s in range(300)]
    near = [np.abs(sets.values[sets.offsets[s] : sets.offsets[s + 1]]).max() < 2 for s in range(300)]  # nothing is cut
    np.testing.assert_allclose(found.expected[near], np.array(slow)[near], atol=1e-3)
    np.testing.assert_allclose(found.played[near], log.rewards[near], atol=1e-3)
