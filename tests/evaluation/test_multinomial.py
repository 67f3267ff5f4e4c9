"""Multinomial regression against scikit-learn's."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from o2pl.engine.member import LINEAR
from o2pl.evaluation.multinomial import fit_multinomial


def test_probabilities_are_those_of_a_penalised_multinomial_regression() -> None:
    g = np.random.default_rng(0)
    contexts = g.normal(size=(900, 3)).astype(np.float32)
    scores = contexts @ g.normal(size=(3, 4))
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    actions = (shares.cumsum(axis=1) < g.random(900)[:, None]).sum(axis=1)
    fitted = fit_multinomial(contexts, actions, 4)
    features = LINEAR.transform(LINEAR.observe(LINEAR.init(3), contexts), contexts)
    model = LogisticRegression(C=1.0, fit_intercept=False, max_iter=2000, tol=1e-8).fit(features, actions)
    np.testing.assert_allclose(fitted(contexts), model.predict_proba(features), atol=5e-3)
    again = fit_multinomial(contexts, actions, 4, fitted)
    np.testing.assert_allclose(again(contexts), model.predict_proba(features), atol=5e-3)
    assert fitted(contexts[:5] * 1e30).shape == (5, 4)
