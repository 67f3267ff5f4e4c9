from __future__ import annotations

import numpy as np
import pytest

from o2pl import O2PL
from o2pl.policies import ThresholdClass
from o2pl.simulation.worlds import Margin
from o2pl_reproduction.studies import exponent as module


def test_the_value_of_who_acts_is_exact() -> None:
    """The members found from the log give the propensities that it holds, and the acting policy's own value."""
    world, policies = Margin(1.0), ThresholdClass(module.thresholds(40, 0.3), 0.2)
    rounds = world.sample(2500, np.random.default_rng(0))  # more than one chunk

    def learner() -> O2PL:
        return O2PL.paper(policy=policies, penalty=0.1, clip=3.0, beta=world.beta, random_state=1)

    values = world.threshold_values(policies)
    whole = learner()
    whole.run((rounds.contexts, rounds.table))
    acting = module.acting_values(whole, values)
    assert acting[0] == values.mean()
    members = module.acting_values(whole, np.arange(40.0))[1:].astype(np.int64)
    likelihoods = policies.likelihoods(whole.log_.contexts, whole.log_.actions)[1:]
    np.testing.assert_array_equal(likelihoods[np.arange(2499), members], whole.log_.propensities[1:])
    slow = learner()
    grid = np.linspace(-0.9995, 0.9995, 2000)
    for t in range(200):
        if t and t % 20 == 0:  # the acting policy, asked on a grid, and its value by quadrature over x ~ U(-1, 1)
            ones = slow.predict_proba(grid[:, None])[:, 1]
            value = np.mean(ones * (0.5 + grid / 2) + (1 - ones) * (0.5 - grid / 2))
            assert acting[t] == pytest.approx(value, abs=1e-3)
        action, propensity = slow.act(rounds.contexts[t])
        slow.update(rounds.contexts[t], action, float(rounds.table[t, action]), propensity)
    assert len(set(acting[1:])) > 1  # it did learn


def test_the_best_threshold_is_not_on_the_grid() -> None:
    for offset in (0.1, 0.5, 0.9):
        grid = np.array(module.thresholds(1000, offset))
        assert len(grid) == 1000
        assert 0.0001 < np.abs(grid).min() < 0.002
        assert grid.min() > -1
        assert grid.max() < 1


def test_checkpoints_are_even_on_a_logarithmic_scale() -> None:
    at = module.log_checkpoints(100_000)
    assert at[-1] == 100_000
    assert 50 <= len(at) <= module.POINTS
    steps = np.diff(np.log(at[at > 1000]))
    assert steps.max() < 1.1 * steps.min()
