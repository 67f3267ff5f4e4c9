from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl.kernels.finite import ClassSums
from o2pl.objectives import Pessimistic, PessimisticLog, Phi, PolicyValue
from o2pl.oracles import Exhaustive
from o2pl.policies import FiniteClass, ThresholdClass
from o2pl.theory import clip_level, log_inverse_confidence


def finite_log(n: int, policies: Any, seed: int) -> tuple[Any, Any, Any, Any]:
    """Rows whose propensities are those of random members: weights below and above the clipping level."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, 1)).astype(np.float32)
    if isinstance(policies, FiniteClass):
        x = generator.integers(policies.table.shape[1], size=(n, 1)).astype(np.float32)
    actions = generator.integers(policies.n_actions, size=n)
    likelihoods = policies.likelihoods(x, actions)
    propensities = likelihoods[np.arange(n), generator.integers(policies.size, size=n)]
    losses = -generator.random(n) * (actions == 0)
    return x, actions, losses, propensities


CLASSES = [
    FiniteClass(np.random.default_rng(2).dirichlet(np.full(3, 0.3), size=(9, 2))),
    ThresholdClass(tuple(np.linspace(-1, 1, 15)), 0.15),
]


@pytest.mark.parametrize("policies", CLASSES)
@pytest.mark.parametrize("baseline", [0.0, -0.3])
def test_running_sums_equal_brute_force_after_every_row(policies: Any, baseline: float) -> None:
    x, actions, losses, propensities = finite_log(150, policies, 3)
    sums, numbers = ClassSums(policies.size), Pessimistic().numbers
    ever_clipped = released = 0
    for t in range(1, 151):
        alpha, before, row = clip_level(t), int(sums.counts[1]), slice(t - 1, t)
        sums.add(policies.likelihoods(x[row], actions[row]), losses[row], propensities[row], numbers)
        ever_clipped, released = max(ever_clipped, int(sums.counts[1])), released + (sums.counts[1] < before)
        penalty = Phi(alpha, t, log_inverse_confidence(t, 0.05))
        log = PessimisticLog(actions[:t], losses[:t], propensities[:t], alpha, penalty, baseline)
        found = Exhaustive()(PolicyValue(policies, x[:t], log))
        values = sums.values(baseline, penalty)
        assert values.min() == pytest.approx(found.value, abs=1e-10)
        assert values[int(np.argmax(found.params))] == pytest.approx(values.min(), abs=1e-10)
    assert sums.total == pytest.approx(losses.sum())
    assert ever_clipped > 0
    assert released > 0  # the schedule rose past some weights: both ways through the heap were taken


def test_rows_in_batches_are_rows_one_by_one() -> None:
    policies = CLASSES[0]
    x, actions, losses, propensities = finite_log(80, policies, 4)
    one, other, numbers = ClassSums(policies.size), ClassSums(policies.size), Pessimistic().numbers
    likelihoods = np.ascontiguousarray(policies.likelihoods(x, actions))
    one.add(likelihoods, losses, propensities, numbers)
    for start, stop in ((0, 1), (1, 30), (30, 80)):
        rows = slice(start, stop)
        other.add(likelihoods[rows], losses[rows], propensities[rows], numbers)
    penalty = Phi(clip_level(80), 80, 5.0)
    np.testing.assert_array_equal(one.values(-0.2, penalty), other.values(-0.2, penalty))


def test_the_lowest_wins_and_is_a_vertex() -> None:
    class Listed:
        def values(self) -> Any:
            return np.array([0.3, -1.0, 0.2])

    found, state = Exhaustive().step(Listed(), np.zeros(3), Exhaustive().init(3))
    assert (found.value, found.converged, found.evaluations) == (-1.0, True, 3)
    np.testing.assert_array_equal(found.params, [-np.inf, 0, -np.inf])
    assert state == {}
