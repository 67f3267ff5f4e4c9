from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.logged_softmax import softmax_log

from o2pl import O2PL
from o2pl.evaluation.calibration import propensity_calibration
from o2pl.evaluation.logs import as_log
from o2pl.interactions import Interactions
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
        refused += propensity_calibration(as_log(learner)).p_value < 0.05
    assert not refutes(refused, 15, 0.05, 1e-3)


FAULTS = {
    "too flat": lambda log, q: softmax_log(3000, 4, 3, 1.0, 0, fault=0.5).propensities,
    "uniform although it was not": lambda log, q: np.full(3000, 0.25),
    "halved": lambda log, q: q / 2,
    "of the row before": lambda log, q: np.roll(q, 1),
    "raised to a floor": lambda log, q: np.maximum(q, 0.5),
}


@pytest.mark.parametrize("name", FAULTS)
def test_wrong_propensities_are_found(name: str) -> None:
    log = softmax_log(3000, 4, 3, 1.0, 0)
    assert propensity_calibration(log).p_value > 0.05
    wrong = FAULTS[name](log, log.propensities)
    faulty = Interactions(log.contexts, log.actions, log.rewards, wrong)
    assert propensity_calibration(faulty).p_value < 1e-6
