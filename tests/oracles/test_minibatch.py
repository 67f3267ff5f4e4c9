from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.objectives import Pessimistic, PolicyValue
from o2pl.oracles import LBFGS, Minibatch
from o2pl.policies import Softmax


def a_log(n: int = 600) -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(n, 3)).astype(np.float32)
    actions = generator.integers(2, size=n)
    rewards = (generator.random(n) < 1 / (1 + np.exp(-3 * x[:, 0] * (2 * actions - 1)))).astype(float)
    rows = Interactions(x, actions, rewards, np.full(n, 0.5), (0, 1), 2)
    return PolicyValue(Softmax(2), x, Pessimistic(0.1, l2=1.0, baseline="mean").prepare(rows)), rows


def test_it_comes_near_the_minimum_of_the_whole_log() -> None:
    function, _ = a_log()
    exact = LBFGS()(function, np.zeros(6))
    oracle = Minibatch(passes=60, batch=100, most=2000, step_size=0.05)
    found, kept = oracle.step(function, np.zeros(6), oracle.init(6))
    assert function(found.params)[0] < exact.value + 2e-3
    assert function(np.zeros(6))[0] > exact.value + 0.1
    assert int(kept["steps"][0]) == found.evaluations == 360


def test_a_step_goes_on_from_the_one_before() -> None:
    function, _ = a_log(50)
    oracle = Minibatch(least=10, most=10, batch=8)
    once, kept = oracle.step(function, np.zeros(6), oracle.init(6))
    twice, more = oracle.step(function, once.params, kept)
    assert int(more["steps"][0]) == 20
    again, _ = oracle.step(function, once.params, {name: array.copy() for name, array in kept.items()})
    np.testing.assert_array_equal(again.params, twice.params)  # what is saved is all there is
    fresh, _ = oracle.step(function, once.params, oracle.init(6))
    assert (fresh.params != twice.params).any()


@pytest.mark.parametrize("rows", [1, 5, 64, 100])
def test_all_rows_come_equally_often(rows: int) -> None:
    batches = Minibatch(batch=16)._batches(rows, 50, 0)
    assert batches.shape == (50, 16)
    counts = np.bincount(batches.reshape(-1), minlength=rows)
    assert counts.max() - counts.min() <= 1


def test_a_batch_of_all_rows_is_the_whole() -> None:
    function, _ = a_log(80)
    params = np.random.default_rng(1).normal(size=6)
    value, gradient = function.batch(params, np.arange(80)[::-1])
    expected, slow = function(params)
    assert value == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(gradient, slow, atol=1e-9)
    twice = function.batch(params, np.concatenate([np.arange(80), np.arange(80)]))
    assert twice[0] == pytest.approx(expected, rel=1e-9)


def test_offline_looks_more_often() -> None:
    assert Minibatch(passes=2).offline().passes > 2


def test_settings_are_checked() -> None:
    with pytest.raises(InvalidInput, match="batch"):
        Minibatch(batch=0)
    with pytest.raises(InvalidInput, match="step_size"):
        Minibatch(step_size=0)
