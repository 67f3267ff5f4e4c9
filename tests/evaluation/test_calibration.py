from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.logged_softmax import softmax_log

from o2pl import O2PL, evaluate
from o2pl.data.interactions import Interactions
from o2pl.evaluation.calibration import propensity_calibration
from o2pl.evaluation.evaluated_logs import as_evaluated_log
from o2pl.theory.inequality import refutes


@pytest.mark.parametrize(("n", "k", "d", "sharp"), [(400, 3, 2, 0.5), (1000, 6, 3, 1.0), (800, 3, 4, 2.0)])
def test_right_propensities_are_seldom_refused(n: int, k: int, d: int, sharp: float) -> None:
    """Level .05 in 60 logs each, also with propensities down to 1e-7; binomial test at 1e-3."""
    refused = sum(propensity_calibration(softmax_log(n, k, d, sharp, seed)).p_value < 0.05 for seed in range(60))
    assert not refutes(refused, 60, 0.05, 1e-3)


def test_a_learners_own_log_is_not_refused() -> None:
    g = np.random.default_rng(0)
    refused = 0
    for seed in range(15):
        contexts = g.normal(size=(800, 2))
        rewards = (g.random((800, 3)) < 1 / (1 + np.exp(-contexts @ g.normal(size=(2, 3))))) * 1.0
        learner = O2PL(3, policy="linear", random_state=seed)
        learner.run((contexts, rewards))
        refused += propensity_calibration(as_evaluated_log(learner)).p_value < 0.05
    assert not refutes(refused, 15, 0.05, 1e-3)


FAULTS = {
    "too flat": lambda log, q: softmax_log(3000, 4, 3, 1.0, 0, fault=0.5).propensities,
    "uniform although it was not": lambda log, q: np.full(3000, 0.25),
    "halved": lambda log, q: q / 2,
    "of the row before": lambda log, q: np.roll(q, 1),
}


@pytest.mark.parametrize("name", FAULTS)
def test_wrong_propensities_are_found(name: str) -> None:
    log = softmax_log(3000, 4, 3, 1.0, 0)
    assert propensity_calibration(log).p_value > 0.05
    wrong = FAULTS[name](log, log.propensities)
    faulty = Interactions(log.contexts, log.actions, log.rewards, wrong)
    assert propensity_calibration(faulty).p_value < 1e-6


def test_propensities_that_are_too_large_show_in_the_mean_weight() -> None:
    """The test counts plays that are too many. Too few may come from actions that were not available."""
    log = softmax_log(3000, 4, 3, 1.0, 0)
    faulty = log.changed(propensities=np.maximum(log.propensities, 0.5))
    found = evaluate(faulty, "uniform", baseline="logged", propensities="logged")
    assert found.diagnostics.mean_weight < 0.8
    assert found.unsupported > 0.1
    assert found.judgement.verdict == "cannot be judged"


@pytest.mark.parametrize("kind", ["changes", "excluded actions"])
@pytest.mark.parametrize(("n", "k", "d"), [(500, 5, 20), (1000, 10, 30)])
def test_it_keeps_its_level_for_many_columns_and_a_logger_that_changes(n: int, k: int, d: int, kind: str) -> None:
    """Level .01 in 40 logs with exact propensities."""
    refused = 0
    for seed in range(40):
        g = np.random.default_rng(seed)
        x = g.normal(size=(n, d))
        first, second = (np.random.default_rng(one).normal(size=(d, k)) / d**0.5 for one in (1, 2))
        second = second if kind == "changes" else first
        scores = 1.5 * np.where((np.arange(n) < n // 2)[:, None], x @ first, x @ second)
        q = 0.95 * np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True) + 0.05 / k
        if kind == "excluded actions":
            q[:, 1:] *= g.random((n, k - 1)) > 0.3
            q /= q.sum(axis=1, keepdims=True)
        actions = np.minimum((q.cumsum(axis=1) < g.random(n)[:, None]).sum(axis=1), k - 1)
        log = Interactions(x, actions, np.zeros(n), q[np.arange(n), actions], (0, 1), k)
        refused += propensity_calibration(log).p_value < 0.01
    assert not refutes(refused, 40, 0.01, 1e-3)
