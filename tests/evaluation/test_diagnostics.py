"""Diagnostics against loops and known distributions; the tests' levels and what they catch."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2
from tests.evaluation.logged_softmax import softmax_log

from o2pl import ActionSets
from o2pl.data.interactions import Interactions
from o2pl.evaluation.calibration import propensity_calibration
from o2pl.evaluation.diagnostics import (
    diagnostics_of_clip_fraction,
    diagnostics_of_drift,
    diagnostics_of_overlap,
    diagnostics_of_weight_tail,
    effective_sample_size,
)
from o2pl.evaluation.values import columns_for_values
from o2pl.learners.targets import as_target
from o2pl.theory.inequality import refutes

# -- weights


def test_effective_sample_size() -> None:
    w = np.random.default_rng(0).exponential(size=50)
    assert effective_sample_size(w) == pytest.approx(sum(w) ** 2 / sum(x * x for x in w))
    assert effective_sample_size(np.ones(40)) == pytest.approx(40)
    assert effective_sample_size(np.zeros(4)) == 0
    assert effective_sample_size(np.array([1.0, np.inf])) == 1
    assert effective_sample_size(np.array([1e300, 1e300])) == pytest.approx(2)  # w² is too large for a number


@pytest.mark.parametrize("exponent", [1.2, 2.0, 3.5])
def test_the_tail_of_a_pareto_sample_is_found(exponent: float) -> None:
    w = np.random.default_rng(0).pareto(exponent, 40_000) + 1
    found = diagnostics_of_weight_tail(w)
    assert abs(found.exponent - exponent) < 3.3 * found.error
    top = sorted(w)[-201:]  # √40,000 of them, and the one below
    assert found.exponent == pytest.approx(200 / sum(math.log(x / top[0]) for x in top[1:]))
    assert found.largest_share == pytest.approx(w.max() / w.sum())


def test_weights_without_a_tail() -> None:
    assert diagnostics_of_weight_tail(np.ones(1000)).exponent == math.inf
    assert diagnostics_of_weight_tail(np.r_[np.zeros(990), np.ones(10)]).exponent == 0  # hardly any row has weight
    assert math.isnan(diagnostics_of_weight_tail(np.ones(3)).exponent)


def test_clip_fraction() -> None:
    found = diagnostics_of_clip_fraction(np.array([0.5, 1.0, 2.0, 4.5]), 2.0)
    assert found == pytest.approx((0.25, 2.5 / 8))
    assert diagnostics_of_clip_fraction(np.array([np.inf, 1.0]), 2.0).weight == 1


def test_overlap_by_action() -> None:
    log = Interactions(np.zeros((4, 1)), [0, 0, 1, 0], np.ones(4), [0.5, 0.2, 0.5, 0.4], n_actions=3)
    policy = np.array([[0.5, 0.25, 0.25]] * 4)
    weights = policy[np.arange(4), log.actions] / log.propensities
    first, second, never = diagnostics_of_overlap(
        log, columns_for_values(log, [as_target(policy, log)], None)[0].mass, weights
    )
    assert first[:5] == ("0", 3, 0.75, 0.2, 0.5)
    assert first.effective == pytest.approx((1 + 2.5 + 1.25) ** 2 / (1 + 2.5**2 + 1.25**2))
    assert second[:5] == ("1", 1, 0.25, 0.5, 0.25)
    assert never == ("2", 0, 0.0, math.inf, 0.25, 0.0)
    assert diagnostics_of_overlap(log, None, weights) == ()


# -- propensities


def test_too_small_propensities_show_as_a_ratio_above_one() -> None:
    log = softmax_log(3000, 3, 2, 0.5, 0)
    found = propensity_calibration(Interactions(log.contexts, log.actions, log.rewards, log.propensities / 2))
    assert [cell.ratio for cell in found.actions] == pytest.approx([2, 2, 2], abs=0.2)


def test_real_valued_actions_and_action_sets_are_tested_too() -> None:
    g = np.random.default_rng(0)
    contexts = g.normal(size=(2000, 2))
    actions = contexts[:, 0] + 0.5 * g.normal(size=2000)
    density = np.exp(-2 * (actions - contexts[:, 0]) ** 2) / (0.5 * math.sqrt(2 * math.pi))
    assert propensity_calibration(Interactions(contexts, actions, actions, density)).p_value > 0.05
    assert propensity_calibration(Interactions(contexts, actions, actions, density / 1.3)).p_value < 1e-3
    sizes = g.integers(2, 6, 2000)
    sets = ActionSets.of([g.normal(size=(k, 2)) for k in sizes])
    chosen = g.integers(sizes)
    assert propensity_calibration(Interactions(sets, chosen, actions, 1 / sizes)).p_value > 0.05
    assert propensity_calibration(Interactions(sets, chosen, actions, np.full(2000, 0.2))).p_value < 1e-3


def test_few_rows_and_one_action_say_nothing() -> None:
    log = softmax_log(30, 3, 2, 1.0, 0)
    assert propensity_calibration(log) == (1.0, None, (), 0)
    one = Interactions(log.contexts, np.zeros(30, int), log.rewards, np.ones(30))
    assert propensity_calibration(one).p_value == 1


# -- drift


def test_drift_is_found_and_seldom_imagined() -> None:
    imagined = 0
    for seed in range(200):
        log = softmax_log(600, 2, 2, 0.1, seed)
        imagined += diagnostics_of_drift(log, log.rewards).p_value < 0.05
    assert not refutes(imagined, 200, 0.05, 1e-3)
    assert imagined > 1  # and a test that never speaks would not be one
    log = softmax_log(1000, 2, 2, 0.1, 0)
    stretches = np.split(log.rewards, 10)
    within = sum(((one - one.mean()) ** 2).sum() for one in stretches) / 990
    statistic = sum(100 * (one.mean() - log.rewards.mean()) ** 2 for one in stretches) / within
    assert diagnostics_of_drift(log, log.rewards).p_value == pytest.approx(chi2.sf(statistic, 9))
    found = diagnostics_of_drift(log, log.rewards + np.linspace(0, 1, 1000))
    assert found.p_value < 1e-6
    assert len(found.means) == 10
    assert found.context_p_value > 0.01
    moved = Interactions(
        log.contexts + np.linspace(0, 1, 1000)[:, None] * [0, 1], log.actions, log.rewards, log.propensities
    )
    assert diagnostics_of_drift(moved, log.rewards).context_p_value < 1e-6
    assert diagnostics_of_drift(moved, log.rewards).column == 1
    assert math.isnan(diagnostics_of_drift(softmax_log(60, 2, 2, 0.1, 0), np.ones(60)).p_value)


def test_action_sets_have_no_column_that_moved() -> None:
    generator = np.random.default_rng(0)
    sets = ActionSets.of([generator.normal(size=(2, 2)) for _ in range(200)])
    log = Interactions(sets, generator.integers(2, size=200), generator.random(200), np.full(200, 0.5))
    assert diagnostics_of_drift(log, log.rewards).column == -1
