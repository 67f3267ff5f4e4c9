from __future__ import annotations

import numpy as np
import pytest

from o2pl.objectives import PessimisticLog, Phi, PolicyValue
from o2pl.oracles import LBFGS, MajoriseMinimise
from o2pl.policies import Softmax


def logged_softmax(scale: float, n: int = 300) -> PolicyValue:
    generator = np.random.default_rng(0)
    x, actions = generator.normal(size=(n, 4)), generator.integers(3, size=n)
    losses = -(generator.random(n) < 1 / (1 + np.exp(-x[np.arange(n), actions]))).astype(float)
    penalty = Phi(6.0, n, 8.0, 0.0, scale)
    return PolicyValue(Softmax(3), x, PessimisticLog(actions, losses, np.full(n, 1 / 3), 6.0, penalty, -0.5, l2=0.1))


@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_majorise_minimise_never_rises_and_ends_where_lbfgs_finds_nothing_lower(scale: float) -> None:
    exact = logged_softmax(scale)
    start = 0.5 * np.random.default_rng(1).normal(size=12)
    values = [exact(start)[0]]
    for rounds in range(1, 6):
        found = MajoriseMinimise(rounds=rounds)(exact, start)
        values.append(found.value)
    assert np.all(np.diff(values) <= 1e-12)
    assert values[1] < values[0] - 1e-3
    full = MajoriseMinimise(rounds=200)(exact, start)
    assert full.converged
    assert full.value == pytest.approx(exact(full.params)[0])
    further = LBFGS()(exact, full.params).value  # there are several minima: not from the same start
    assert full.value - 1e-4 < further <= full.value
    if scale == 1:  # the minimum is the logger itself, where σ̂ = 0 and the penalty has a kink: smoothness pays
        assert full.value < LBFGS()(exact, start).value + 1e-6


def test_a_step_is_a_call() -> None:
    exact, start, oracle = logged_softmax(0.1), np.zeros(12), MajoriseMinimise(rounds=3)
    found, state = oracle.step(exact, start, oracle.init(12))
    np.testing.assert_array_equal(found.params, oracle(exact, start).params)
    assert state == {}
