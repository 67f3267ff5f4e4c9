"""LinUCB and LinTS against ridge regressions solved from scratch and Thompson sampling done with whole vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare, norm

from o2pl import _core
from o2pl.features import Chain, Intercept, Standardise
from o2pl.simulation.rivals.linear import LinTS, LinUCB

RAW = Chain()


class SolvedRidges:
    """The slow reference: all rows kept, every quantity solved anew."""

    def __init__(self, n_actions: int, ridge: Any) -> None:
        self.rows: list[list[Any]] = [[] for _ in range(n_actions)]
        self.ridge = ridge

    def add(self, features: Any, action: Any, reward: Any) -> None:
        self.rows[action].append((np.asarray(features, float), reward))

    def posterior(self, action: Any, d: Any) -> Any:
        A, u = self.ridge * np.eye(d), np.zeros(d)
        for x, reward in self.rows[action]:
            A += np.outer(x, x)
            u += reward * x
        return A, np.linalg.solve(A, u)

    def scores(self, features: Any) -> Any:
        x = np.asarray(features, float)
        pairs = [self.posterior(k, len(x)) for k in range(len(self.rows))]
        return [x @ theta for _, theta in pairs], [math.sqrt(x @ np.linalg.solve(A, x)) for A, _ in pairs]


def running_standardised(seen: Any, x: Any, clip: float = 5.0) -> Any:
    """Mean 0 and deviation 1 over the contexts seen; nothing seen: as it is, cut."""
    if not seen:
        return np.clip(x, -clip, clip)
    deviation = np.std(seen, axis=0)
    fine = deviation > 1e-6 * np.abs(np.mean(seen, axis=0))
    scaled = (x - np.mean(seen, axis=0)) / np.where(fine, deviation, 1.0)
    return np.clip(np.where(fine, scaled, 0.0), -clip, clip)


@pytest.mark.parametrize("intercept", [False, True])
def test_linucb_equals_ridges_solved_from_scratch_on_features_that_never_see_the_future(intercept: bool) -> None:
    rng = np.random.default_rng(3)
    maps = (Standardise(), Intercept()) if intercept else (Standardise(),)
    learner = LinUCB(3, alpha=0.7, ridge=2.5, features=Chain(maps))
    seen: list[Any] = []
    reference = SolvedRidges(3, 2.5)

    def features(x: Any) -> Any:
        scaled = running_standardised(seen, x)
        return np.concatenate([[1.0], scaled]) if intercept else scaled

    for _ in range(150):
        x = rng.normal(size=4) * [1, 20, 0.1, 3] + [0, 50, 0, -7]
        means, deviations = reference.scores(features(x))
        bounds = np.array(means) + 0.7 * np.array(deviations)
        decision = learner.act(x)
        assert decision.propensity == 1.0
        assert bounds[decision.action] == pytest.approx(bounds.max(), abs=2e-3)  # features are float32
        found = learner._scores(learner._transform(x.astype(np.float32)[None]))
        assert np.allclose(found, (means, deviations), atol=2e-3)
        reward = float(rng.random() < 0.3 + 0.2 * decision.action)
        seen.append(x)
        reference.add(features(x), decision.action, reward)
        learner.update(x, decision.action, reward, decision.propensity)


@pytest.mark.parametrize("ridge", [0.25, 1.0, 4.0])
def test_the_bonus_of_an_untouched_action_is_alpha_norm_over_root_lambda(ridge: float) -> None:
    learner = LinUCB(3, alpha=1.3, ridge=ridge, features=RAW)
    x = np.array([3.0, -4.0])
    learner.update(x, 0, 0.0, 1.0)
    means, deviations = learner._scores(x)
    assert np.array_equal(means[1:], [0, 0])
    assert deviations[1:] == pytest.approx(5 / math.sqrt(ridge))
    assert deviations[0] == pytest.approx(math.sqrt(25 / (ridge + 25)))
    assert learner.act(x).action == 1  # an untouched one, the first of them


def test_ten_thousand_badly_scaled_updates_leave_the_inverse_exact() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 5)) * [1, 100, 0.01, 5, 1] + [1, 300, 0, 0, 1]
    y = rng.normal(size=len(X))
    inverse, weights = np.eye(5) / 0.5, np.zeros(5)
    for x, target in zip(X, y, strict=True):
        _core.absorb_row(inverse, weights, x, target)
    A = X.T @ X + 0.5 * np.eye(5)
    assert np.allclose(inverse @ A, np.eye(5), atol=1e-6)
    assert np.allclose(weights, np.linalg.solve(A, X.T @ y), rtol=1e-5, atol=1e-9)


def test_the_probability_of_being_best_has_its_closed_form_for_two() -> None:
    for gap, a, b in [(0.3, 1.0, 0.5), (-2.0, 0.01, 1.0), (0.0, 1e-4, 3.0), (5.0, 1.0, 1.0)]:
        expected = norm.cdf(gap / math.hypot(a, b))
        assert _core.best_probability(np.array([gap, 0.0]), np.array([a, b]), 0) == pytest.approx(expected, abs=1e-9)


def test_the_probabilities_of_being_best_sum_to_one_and_match_a_fine_grid() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        k = int(rng.integers(2, 9))
        means, deviations = rng.normal(size=k), 10 ** rng.uniform(-1.5, 1, size=k)
        found = [_core.best_probability(means, deviations, j) for j in range(k)]
        assert sum(found) == pytest.approx(1, abs=1e-8)
        z = np.linspace(means[0] - 9 * deviations[0], means[0] + 9 * deviations[0], 40_001)
        others = np.prod(norm.cdf((z[:, None] - means[1:]) / deviations[1:]), axis=1)
        grid = np.trapezoid(norm.pdf(z, means[0], deviations[0]) * others, z)
        assert found[0] == pytest.approx(grid, abs=1e-6)


def trained_sampler(seed: int) -> Any:
    rng = np.random.default_rng(5)
    learner = LinTS(3, scale=0.6, ridge=2.0, features=Chain((Intercept(),)), random_state=seed)
    reference = SolvedRidges(3, 2.0)
    for action, rows in ((0, 4), (1, 1), (2, 9)):
        for _ in range(rows):
            x, reward = rng.normal(size=2), float(rng.random())
            learner.update(x, action, reward, 0.5)
            reference.add(np.concatenate([[1.0], x.astype(np.float32)]), action, reward)
    return learner, reference


def test_lints_decides_as_thompson_sampling_with_whole_vectors() -> None:
    learner, reference = trained_sampler(seed=11)
    x, draws = np.array([0.4, -1.1]), 20_000
    features = np.concatenate([[1.0], x])
    rng = np.random.default_rng(12)
    scores = []
    for k in range(3):  # θ ~ N(θ_k, v² A⁻¹)
        A, theta = reference.posterior(k, 3)
        scores.append(rng.multivariate_normal(theta, 0.6**2 * np.linalg.inv(A), size=10 * draws) @ features)
    expected = np.bincount(np.argmax(scores, axis=0), minlength=3) / (10 * draws)
    decisions = [learner.act(x) for _ in range(draws)]
    counts = np.bincount([d.action for d in decisions], minlength=3)
    propensities = {d.action: d.propensity for d in decisions}
    assert sum(propensities.values()) == pytest.approx(1, abs=1e-8)
    assert chisquare(counts, draws * np.array([propensities[k] for k in range(3)])).pvalue > 1e-4
    assert np.allclose([propensities[k] for k in range(3)], expected, atol=0.006)  # 5 deviations of the simulation


def test_lints_without_width_or_without_features_is_certain() -> None:
    learner = LinTS(3, scale=0.0, features=RAW, random_state=0)
    learner.update([1.0, 0.0], 2, 1.0, 1.0)
    assert learner.act([1.0, 0.0]) == (2, 1.0)
    assert LinTS(3, features=RAW, random_state=0).act([0.0, 0.0]) == (0, 1.0)
    assert LinTS(4, features=RAW, random_state=0).act([1.0, 2.0]).propensity == pytest.approx(0.25)
