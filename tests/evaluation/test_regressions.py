"""Regressions against scikit-learn's on the same rows, and against what calibration means."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import o2pl
from o2pl.evaluation.regressions import (
    Link,
    fit_regression_group,
    regression_level,
    regression_pooled_means,
    regression_slope_evidence,
    regression_sums_outside,
)

FOLDS = 3


def rows(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    g = np.random.default_rng(seed)
    return g.normal([0.5, 0, -1], size=(n, 3)), g.random(n), np.arange(n) % FOLDS


def test_linear_slopes_are_those_of_a_ridge_with_a_free_intercept() -> None:
    X, noise, folds = rows()
    y = 0.2 * X[:, 0] + noise
    sums = regression_sums_outside(X, y, folds, FOLDS)
    link = Link(False, -10, 10)
    fitted = fit_regression_group(X, y, folds, sums, sums.mean, np.full(FOLDS, 7.0), link)
    for fold in range(FOLDS):
        model = Ridge(alpha=7.0).fit(X[folds != fold], y[folds != fold])
        np.testing.assert_allclose(fitted.slopes[fold], model.coef_, rtol=1e-8)
        assert fitted.levels[fold] == pytest.approx(model.intercept_, abs=1e-8)


def test_logistic_slopes_are_those_of_a_logistic_regression_with_a_free_intercept() -> None:
    X, noise, folds = rows()
    y = (noise < 1 / (1 + np.exp(1 - 3 * X[:, 0]))) * 1.0  # steep: Newton's first step alone would not do
    sums = regression_sums_outside(X, y, folds, FOLDS)
    fitted = fit_regression_group(X, y, folds, sums, sums.mean, np.full(FOLDS, 0.5), Link(True, 0, 1))
    for fold in range(FOLDS):
        model = LogisticRegression(C=2.0, tol=1e-10, max_iter=1000).fit(X[folds != fold], y[folds != fold])
        np.testing.assert_allclose(fitted.slopes[fold], model.coef_[0], atol=1e-4)
        assert fitted.levels[fold] == pytest.approx(model.intercept_[0], abs=1e-4)


@pytest.mark.parametrize("link", [Link(True, 0, 1), Link(False, 0, 1)], ids=["logistic", "cut"])
def test_the_mean_prediction_is_the_mean_asked_for(link: Link) -> None:
    scores = np.random.default_rng(0).normal(size=500) * 2
    for mean in (0.001, 0.3, 0.9):
        level = regression_level(scores, mean, link)
        assert link.reward(level + scores).mean() == pytest.approx(mean, abs=1e-9)


def test_links_turn_back() -> None:
    for link in (Link(True, 2, 6), Link(False, 2, 6)):
        np.testing.assert_allclose(link.reward(link.score(np.array([2.5, 4.0]))), [2.5, 4.0])
    assert Link(True, 2, 6).reward(Link(True, 2, 6).score(np.array([2.0, 6.0]))).tolist() == [2, 6]
    step = 1e-6
    for link in (Link(True, 2, 6), Link(False, 2, 6)):
        at = np.array([2.5, 9.0])
        np.testing.assert_allclose(
            link.slope(at), (link.reward(at + step) - link.reward(at - step)) / (2 * step), atol=1e-6
        )


@pytest.mark.parametrize("logistic", [True, False])
def test_the_size_of_the_slopes_is_found_from_the_rows(logistic: bool) -> None:
    """Many actions whose slopes have variance τ²: the penalty comes near 1/τ² (times the noise)."""
    g = np.random.default_rng(1)
    excess, unit = np.zeros(FOLDS), np.zeros(FOLDS)
    spread = 0.1
    for _ in range(150):
        X, folds = g.normal(size=(300, 4)), np.arange(300) % FOLDS
        scores = X @ (spread * g.normal(size=4))
        y = (g.random(300) < 1 / (1 + np.exp(-scores))) * 1.0 if logistic else scores + g.normal(size=300)
        sums = regression_sums_outside(X, y, folds, FOLDS)
        found = regression_slope_evidence(sums, sums.variance if logistic else np.ones(FOLDS), logistic)
        excess, unit = excess + found.excess, unit + found.unit
    np.testing.assert_allclose(excess / unit, spread**2, rtol=0.3)


def test_slopes_that_are_not_there_are_not_fitted() -> None:
    g = np.random.default_rng(3)
    X, folds = g.normal(size=(200, 6)), np.arange(200) % FOLDS
    y = (np.arange(200) % 10 == 0) * 1.0
    sums = regression_sums_outside(X, y, folds, FOLDS)
    fitted = fit_regression_group(X, y, folds, sums, sums.mean, np.full(FOLDS, np.inf), Link(True, 0, 1))
    assert not fitted.slopes.any()
    np.testing.assert_allclose(Link(True, 0, 1).reward(fitted.levels), sums.mean)


def test_means_of_few_rewards_lean_on_all_actions_and_others_stand() -> None:
    g = np.random.default_rng(0)
    link = Link(True, 0, 1)

    def sums(n: int, rewards: int) -> object:
        y = np.zeros(n)
        y[:rewards] = 1
        return regression_sums_outside(g.normal(size=(n, 1)), y, np.arange(n) % 2, 2)

    often, rare = sums(1000, 300), sums(10, 2)
    found = regression_pooled_means([often, rare, sums(1000, 300), sums(1000, 320)], link)  # type: ignore[list-item]
    np.testing.assert_array_equal(found[0], often.mean)
    assert np.all(found[1] > rare.mean + 0.05)
    assert np.all(found[1] < 0.32)


def test_features_that_never_vary_have_no_slope() -> None:
    """Without a penalty, their equations have many solutions."""
    rewards = np.random.default_rng(0).random(60)
    log = o2pl.Interactions([{"u": {"a": 1}}] * 60, np.arange(60) % 2, rewards, np.full(60, 0.5), reward_range=(0, 1))
    assert 0 < o2pl.evaluate(log, lambda rows: [0] * len(rows)).value < 1
