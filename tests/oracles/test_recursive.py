from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl import _core
from o2pl.objectives import PolicyValue, SquaresLog
from o2pl.oracles import LBFGS, Recursive
from o2pl.oracles.recursive import recursive_prior_draws
from o2pl.policies import Cells, Curve

POLICY = Curve(Cells((0.0, 1.0), 4), inputs=2, degree=2, draws=3)


def function(n: int, weights: Any = None, shift: float = 0.0, seed: int = 0) -> PolicyValue:
    generator = np.random.default_rng(seed)
    x = np.column_stack([np.ones(200), generator.normal(size=(200, 2)) + shift])[:n]
    actions = generator.random(200)[:n]
    rewards = 0.5 - (actions - 0.4 - 0.1 * x[:, 1]) ** 2 + 0.1 * generator.normal(size=200)[:n]
    return PolicyValue(POLICY, x, SquaresLog(actions, rewards, 1.5, None if weights is None else weights[:n]))


@pytest.mark.parametrize("weighed", [False, True])
def test_it_finds_the_minimum(weighed: bool) -> None:
    made = function(200, np.random.default_rng(1).random(200) if weighed else None)
    found = Recursive().step(made, np.empty(0), {})[0].params
    start = np.zeros(len(found))
    slow = LBFGS(iterations=500, tolerance=1e-10).step(made, start, LBFGS().init(len(start)))[0].params
    np.testing.assert_allclose(POLICY.centre(found), POLICY.centre(slow), atol=1e-6)


def test_rows_may_come_in_any_number_of_steps() -> None:
    at_once = Recursive().step(function(200), np.empty(0), {})[1]
    state: Any = {}
    for n in (1, 2, 50, 51, 199, 200):
        before = {name: array.copy() for name, array in state.items()}
        solution, after = Recursive().step(function(n), np.empty(0), state)
        for name, array in before.items():
            np.testing.assert_array_equal(state[name], array)  # a state is a value
        state = after
    for name, array in at_once.items():
        np.testing.assert_array_equal(state[name], array)
    assert solution.evaluations == 1


@pytest.mark.parametrize("change", [{"shift": 0.1}, {"seed": 1}])
def test_it_begins_anew_where_rows_have_changed(change: Any) -> None:
    state = Recursive().step(function(100), np.empty(0), {})[1]
    again, anew = (Recursive().step(function(200, **change), np.empty(0), known)[1] for known in (state, {}))
    for name, array in anew.items():
        np.testing.assert_array_equal(again[name], array)


def test_draws_are_as_far_apart_as_the_rows_leave_possible() -> None:
    generator, S, D = np.random.default_rng(0), 4000, 3
    Z = generator.normal(size=(30, D)) * [1, 3, 0.2]
    P, theta, draws, noise = np.eye(D), np.zeros(D), recursive_prior_draws(S, D), np.ones(2)
    _core.learn_rows(Z, generator.normal(size=30), np.empty(0), 0, P, theta, draws, noise)
    expected = np.linalg.inv(np.eye(D) + Z.T @ Z)
    np.testing.assert_allclose(np.tril(P), np.tril(expected), atol=1e-10)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(draws.T @ draws / S / scale, expected / scale, atol=0.07)


def test_the_noise_is_found() -> None:
    made = function(200)
    for scale in (1.0, 0.1):
        log = SquaresLog(made.log.actions, 0.5 + scale * np.random.default_rng(3).normal(size=200), 1.5)
        noise = Recursive().step(PolicyValue(POLICY, made.features, log), np.empty(0), {})[1]["noise"]
        assert noise[0] / noise[1] == pytest.approx(scale**2, rel=0.5)  # the prior counts a little


def test_signs_are_as_good_as_chance() -> None:
    signs = _core.signs(0, 5000, 8)
    assert set(signs.reshape(-1)) == {-1.0, 1.0}
    assert np.abs(signs.mean(axis=0)).max() < 0.05
    assert np.abs(np.corrcoef(signs.T) - np.eye(8)).max() < 0.06
    assert np.abs((signs[1:] * signs[:-1]).mean(axis=0)).max() < 0.05
