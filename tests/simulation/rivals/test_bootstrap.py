"""The bootstrap ensemble: its counts, its members against slow fits on repeated rows, its propensities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare, poisson

from o2pl.errors import InvalidInput
from o2pl.features import Chain, Intercept
from o2pl.simulation.rivals.bootstrap import BootstrapEnsemble, bootstrap_counts
from o2pl.simulation.rivals.models import fit_models_per_action


def test_counts_are_poisson() -> None:
    counts = bootstrap_counts(np.random.default_rng(0).random(20_000)).astype(int)
    expected = np.append(poisson.pmf(np.arange(5), 1), poisson.sf(4, 1))
    assert chisquare(np.bincount(np.minimum(counts, 5), minlength=6), 20_000 * expected).pvalue > 1e-4


def test_a_member_is_a_model_of_its_rows_repeated() -> None:
    rng = np.random.default_rng(1)
    learner = BootstrapEnsemble(2, members=3, l2=0.7, features=Chain((Intercept(),)), growth=1.0, random_state=5)
    X, actions = rng.normal(size=(60, 2)).astype(np.float32), rng.integers(0, 2, 60)
    rewards = (rng.random(60) < 0.3 + 0.4 * (X[:, 0] > 0)).astype(float)
    for x, action, reward in zip(X, actions, rewards, strict=True):
        learner.update(x, int(action), float(reward), 0.5)
    level = (rewards.sum() + 3) / 63
    features = learner.features.transform({}, X)
    counts = np.array(learner._counts).astype(int)  # [n, members]
    assert len({tuple(column) for column in counts.T}) == 3
    for member in range(3):
        repeated = np.repeat(np.arange(60), counts[:, member])
        slow = fit_models_per_action(
            "logistic", features[repeated], actions[repeated], rewards[repeated], 2, 0.7, level
        )
        np.testing.assert_allclose(learner._weights[member], slow, atol=2e-3)


def test_propensities_are_shares_of_members() -> None:
    rng = np.random.default_rng(2)
    learner = BootstrapEnsemble(3, members=5, random_state=1)
    for _ in range(25):
        x = rng.normal(size=2)
        learner.update(x, int(rng.integers(3)), float(rng.random() < 0.5), 1 / 3)
    decisions = [learner.act([0.1, 0.2]) for _ in range(3000)]
    shares = {d.action: d.propensity for d in decisions}
    assert sum(shares.values()) == pytest.approx(1)
    assert all(share * 5 == pytest.approx(round(share * 5)) for share in shares.values())
    counts = [sum(d.action == action for d in decisions) for action in shares]
    if len(shares) > 1:
        assert chisquare(counts, 3000 * np.array(list(shares.values()))).pvalue > 1e-4


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InvalidInput, match="members"):
        BootstrapEnsemble(2, members=0).act([1.0])
