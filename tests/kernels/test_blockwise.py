"""Objectives block by block: the same numbers as of all rows at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl.data.contexts import ActionSets
from o2pl.data.interactions import Interactions
from o2pl.engine.member import LINEAR
from o2pl.kernels import fused_values, linear
from o2pl.kernels.blockwise import BlockwiseValue, added_blockwise
from o2pl.kernels.registry import MemberProblem, find_value
from o2pl.objectives.control import ridge_control
from o2pl.objectives.outcome import Outcome
from o2pl.objectives.pessimistic import Pessimistic, PolicyValue
from o2pl.objectives.terms import Totals
from o2pl.policies import ActionWise, Gaussian, Softmax

N, K = 5000, 3


def problem(objective: Any, policy: Any, kind: str) -> MemberProblem:
    rng = np.random.default_rng(0)
    contexts: Any = rng.normal(size=(N, 4)).astype(np.float32)
    if kind == "sets":
        contexts = ActionSets(rng.normal(size=(N * K, 4)).astype(np.float32), np.arange(0, N * K + 1, K))
    actions = rng.normal(size=N) if kind == "real" else rng.integers(K, size=N)
    propensities = np.full(N, 0.4)
    rows = Interactions.trusted(contexts, actions, rng.random(N), propensities, (0, 1), None if kind == "sets" else K)
    seen = LINEAR.init(4)
    return MemberProblem(policy, objective, LINEAR, seen, rows, 0, None, None, {})


CASES = {
    "competing": (Outcome(True), Softmax(K), "dense"),
    "independent": (Outcome(False), Softmax(K), "dense"),
    "pessimistic": (Pessimistic(baseline="mean", l2=0.1), Softmax(K), "dense"),
    "sets": (Pessimistic(baseline="mean"), ActionWise(), "sets"),
    "real": (Pessimistic(baseline="mean"), Gaussian(learn_scale=True), "real"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("control", [False, True])
def test_the_sums_of_blocks_are_those_of_the_log(case: str, control: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fused_values  # importing it registers the kernels
    monkeypatch.setattr(linear, "BLOCK", 2**10)
    given = problem(*CASES[case])
    rows, objective = given.rows, given.objective
    if control and case != "pessimistic":
        pytest.skip("the control variate is that of the pessimistic objective, of rows of numbers")
    losses, features = rows.losses, given.featurise()
    made = ridge_control(features, rows.actions, losses, K, objective.level(losses), 5.0) if control else None
    log = objective.prepare(rows, made)
    plain = PolicyValue(given.policy, features, log, objective.extra)
    blocks = BlockwiseValue(given, made, Totals.of(rows))
    if case != "sets":
        assert len(blocks.blocks) > 2
    rng = np.random.default_rng(1)
    params = 0.3 * rng.normal(size=given.policy.n_params(given.width) + objective.extra)
    value, gradient = blocks(params)
    expected, of_plain = plain(params)
    assert value == pytest.approx(expected, rel=2e-6)
    np.testing.assert_allclose(gradient, of_plain, atol=2e-6)
    fused = find_value(given._replace(log=log))
    if fused is not None and case != "real":
        assert value == pytest.approx(fused(params)[0], rel=1e-14)  # the same panels, added in the same order
    np.testing.assert_allclose(blocks.log.started(params), log.started(params), rtol=0, atol=1e-12)  # sums of blocks
    assert blocks.log.negligible == pytest.approx(log.negligible)


def test_sums_are_added_in_order_and_parts_stay_as_they_are() -> None:
    one: Any = (np.ones(2), [np.ones(3)])
    two: Any = (np.arange(2.0), [np.arange(3.0)])
    sums, (gradient,) = added_blockwise([one, two, two])
    assert sums.tolist() == [1, 3]
    assert gradient.tolist() == [1, 3, 5]
    assert one[0].tolist() == [1, 1]
