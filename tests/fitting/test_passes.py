"""Passes are kept as they are found, and reported with what the objective is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from o2pl.data.interactions import Interactions
from o2pl.engine.member import LINEAR
from o2pl.fitting.pass_checkpoints import PassCheckpoints
from o2pl.fitting.passes import BlockPasses, Pass, mapped_control_for_passes
from o2pl.kernels.registry import MemberProblem
from o2pl.objectives.control import ridge_control
from o2pl.objectives.outcome import Outcome
from o2pl.objectives.pessimistic import VARIANCE, Pessimistic, PolicyValue
from o2pl.policies import Softmax

N, K = 3000, 3


def problem(objective: Any) -> MemberProblem:
    rng = np.random.default_rng(0)
    rows = Interactions(rng.normal(size=(N, 4)), rng.integers(K, size=N), rng.random(N), np.full(N, 1 / 3), (0, 1), K)
    return MemberProblem(
        Softmax(K), objective, LINEAR, LINEAR.observe(LINEAR.init(4), rows.contexts), rows, 0, None, None, {}
    )


def test_a_pass_that_was_made_is_not_made_again(tmp_path: Path) -> None:
    given, passed = problem(Outcome()), list[Pass]()
    params = np.random.default_rng(1).normal(size=Softmax(K).n_params(5) + 1)
    points, values = [params, 2 * params], []
    for _ in range(2):
        _, function = BlockPasses(tmp_path, PassCheckpoints(tmp_path / "work", "x"), passed.append).prepared(
            given, None
        )
        values.append([function(point) for point in points])
    for (value, gradient), (again, of_again) in zip(*values, strict=True):
        assert value == again
        np.testing.assert_array_equal(gradient, of_again)
    assert [one.number for one in passed] == [1, 2, 1, 2]
    assert [one.seconds > 0 for one in passed] == [True, True, False, False]
    # Of other parameters nothing is taken over.
    _, function = BlockPasses(tmp_path, PassCheckpoints(tmp_path / "work", "x"), passed.append).prepared(given, None)
    assert function(3 * params)[0] != values[0][0][0]
    assert passed[-1].seconds > 0


def test_a_pass_says_objective_penalty_and_how_many_weights_are_clipped(tmp_path: Path) -> None:
    objective, passed = Pessimistic(penalty=0.5, clip=2.0), list[Pass]()
    given = problem(objective)
    params = np.random.default_rng(1).normal(size=Softmax(K).n_params(5))
    _, function = BlockPasses(tmp_path, PassCheckpoints(tmp_path / "work", "x"), passed.append).prepared(given, None)
    value, _ = function(params)
    plain = PolicyValue(given.policy, given.featurise(), objective.prepare(given.rows))
    sums, _ = plain.sums(params)
    (one,) = passed
    assert one.objective == value == pytest.approx(plain(params)[0])
    assert one.penalty == pytest.approx(plain.log.penalty(sums[VARIANCE] / N)[0])
    scores, _ = given.policy.forward(params, given.featurise(), given.rows.actions)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    played = (powers / powers.sum(axis=1, keepdims=True))[np.arange(N), given.rows.actions]
    assert one.clipped == pytest.approx((played * 3 > 2).mean(), abs=1e-3)
    assert 0 < one.clipped < 1
    assert one.rows == N


def test_the_control_variate_is_that_of_all_rows_at_once(tmp_path: Path) -> None:
    given = problem(Pessimistic())
    rows, features = given.rows, given.featurise()
    level = float(rows.losses.mean())
    expected = ridge_control(features, rows.actions, rows.losses, K, level, 5.0)
    passes = BlockPasses(tmp_path / "control", PassCheckpoints(tmp_path / "work", "x"))
    found = passes.control(given.featurise, rows, K, level, 5.0)
    for one in (
        found,
        mapped_control_for_passes(tmp_path / "control", K, N),
    ):  # as it is written, and as workers read it
        np.testing.assert_allclose(one.by_action, expected.by_action, atol=1e-6)
        np.testing.assert_allclose(one.played, expected.played, atol=1e-6)
