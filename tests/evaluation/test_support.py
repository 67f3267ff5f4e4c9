"""What a log hardly shows is found; what it shows is not taken for hidden."""

from __future__ import annotations

import numpy as np
from tests.evaluation.logged_softmax import softmax_log

from o2pl.data.interactions import Interactions
from o2pl.evaluation.support import largest_supported_weight, support_of


def test_two_actions_are_exact() -> None:
    log = softmax_log(400, 2, 3, 1.0, 0)
    support = support_of(log)
    assert support is not None
    found = support.propensities(log, slice(0, 400))
    exact = np.where(np.arange(2) == log.actions[:, None], log.propensities[:, None], 1 - log.propensities[:, None])
    assert (found <= exact + 1e-9).all()
    assert np.quantile(found / exact, 0.05) > 0.3


def test_an_action_that_is_never_played_somewhere_is_hidden_there() -> None:
    g = np.random.default_rng(0)
    x = g.normal(size=(3000, 2))
    q = np.where(x[:, :1] > 0.5, [[0.5, 0.5, 0.0]], [[0.3, 0.3, 0.4]])
    actions = (q.cumsum(axis=1) < g.random(3000)[:, None]).sum(axis=1)
    log = Interactions(x, actions, np.zeros(3000), q[np.arange(3000), actions], (0, 1), 3)
    support = support_of(log)
    assert support is not None
    hidden = support.propensities(log, slice(0, 3000))[:, 2] * largest_supported_weight(1 / log.propensities) < 1
    assert hidden[x[:, 0] > 0.7].mean() > 0.95
    assert hidden[x[:, 0] < 0.5].mean() < 0.02


def test_a_logger_that_explores_uniformly_shows_everything() -> None:
    g = np.random.default_rng(1)
    x = g.normal(size=(5000, 4))
    scores = np.exp(2 * x @ g.normal(size=(4, 4)))
    q = 0.8 * scores / scores.sum(axis=1, keepdims=True) + 0.05
    actions = np.minimum((q.cumsum(axis=1) < g.random(5000)[:, None]).sum(axis=1), 3)
    log = Interactions(x, actions, np.zeros(5000), q[np.arange(5000), actions], (0, 1), 4)
    support = support_of(log)
    assert support is not None
    found = support.propensities(log, slice(0, 5000))
    assert (found * largest_supported_weight(1 / log.propensities) < 1).mean() < 0.05


def test_uniform_draws_among_many_actions_show_everything() -> None:
    g = np.random.default_rng(2)
    x, actions = g.normal(size=(2000, 30)), g.integers(60, size=2000)
    log = Interactions(x, actions, np.zeros(2000), np.full(2000, 1 / 60), (0, 1), 60)
    support = support_of(log)
    assert support is not None
    assert support.propensities(log, slice(0, 2000)).min() == 1 / 60
    half = np.where(x[:, 0] > 0, 30, 60)  # actions on offer, uniform
    actions = (g.random(2000) * half).astype(int)
    log = Interactions(x, actions, np.zeros(2000), 1 / half, (0, 1), 60)
    support = support_of(log)
    assert support is not None
    assert support.least == 0


def test_the_largest_shown_weight() -> None:
    weights = np.r_[np.full(9, 100.0), np.full(991, 2.0)]
    assert largest_supported_weight(weights) == 6.0  # the tenth largest, times 3
    assert largest_supported_weight(-weights) == 6.0
    assert largest_supported_weight(np.full(5, 0.1)) == 3.0
    assert support_of(Interactions(np.zeros((3, 1)), np.array([0.1, 0.2, 0.3]), np.zeros(3), np.ones(3))) is None
