"""The compiled softmax objective: logs of any number of blocks and panels, kept features or not, threads or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import o2pl
from o2pl.features.blocks import BLOCK, recipe
from o2pl.learners.kernels import softmax as kernels
from o2pl.learners.kernels.softmax import PANEL, SoftmaxValue
from o2pl.learners.members import QUADRATIC
from o2pl.objectives import Pessimistic, Phi, policy_value, ridge_control
from o2pl.oracles import LBFGS
from o2pl.oracles.quasi_newton import Curvature
from o2pl.policies import Softmax

K = 3


def problem(n: int, with_control: bool, d: int = 4) -> tuple[Any, Any, Any]:
    """Recipe, features and objective of a log whose weights are clipped here and there."""
    generator = np.random.default_rng(n)
    x = generator.normal(size=(n, d)).astype(np.float32)
    seen = QUADRATIC.observe(QUADRATIC.init(d), x)
    made, features = recipe(QUADRATIC, seen, x), QUADRATIC.transform(seen, x)
    actions, losses = generator.integers(K, size=n), -generator.random(n)
    control = ridge_control(made, actions, losses, K, -0.4, 2.0) if with_control else None
    propensities = generator.uniform(0.1, 1, n)
    return made, features, Pessimistic(actions, losses, propensities, 3.0, Phi(3.0, n, 5.0, 0.5, 0.7), -0.4, control)


@pytest.mark.parametrize("with_control", [False, True])
@pytest.mark.parametrize("n", [1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5, (PANEL + 1) * BLOCK + 1])
@pytest.mark.parametrize("held", [0, kernels.HELD])
def test_any_number_of_blocks_is_the_general_objective(
    n: int, with_control: bool, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "HELD", held)
    made, features, objective = problem(n, with_control)
    fast, general = SoftmaxValue(made, K, objective, 0.2), policy_value(Softmax(K), features, objective, 0.2)
    for seed in range(2):  # the second time features may be those that were kept
        params = np.random.default_rng(seed).normal(size=K * made.width)
        found, expected = fast(params), general(params)
        assert found[0] == pytest.approx(expected[0], rel=2e-5, abs=1e-6)
        np.testing.assert_allclose(found[1], expected[1], atol=2e-5)


def test_threads_change_nothing() -> None:
    n = 3 * PANEL * BLOCK + 100
    made, _, objective = problem(n, True)
    start = np.random.default_rng(0).normal(size=K * made.width)

    def solved(threads: int) -> tuple[Any, Any]:
        with threadpool_limits(threads, user_api="blas"):
            function = SoftmaxValue(made, K, objective, 0.2)
            found = function.descend(start, LBFGS(iterations=4), Curvature(4, len(start)))
            return (found.value, found.evaluations), np.append(found.params, function(start)[1])

    alone, together = solved(1), solved(3)
    assert alone[0] == together[0]
    np.testing.assert_array_equal(alone[1], together[1])


def test_a_replay_learner_is_not_lost_when_its_log_grows_or_is_read_back(tmp_path: Any) -> None:
    """Kernels know arrays by their addresses: those of a log that has grown, or was loaded, are others."""
    generator = np.random.default_rng(0)
    x, rewards = generator.normal(size=(700, 3)).astype(np.float32), generator.random((700, 2))
    whole, parts = (o2pl.O2PL(2, policy="linear", schedule="replay", random_state=3) for _ in range(2))
    expected = whole.run((x, rewards))
    for t in range(len(x)):
        if t in (15, 16, 17, 130, 333):
            parts.save(tmp_path / "learner")
            parts = o2pl.load(tmp_path / "learner")
        action, propensity = parts.act(x[t])
        assert (action, propensity) == (expected.actions[t], expected.propensities[t])
        parts.update(x[t], action, rewards[t, action], propensity)
    np.testing.assert_array_equal(parts.log_.contexts, x)
    np.testing.assert_array_equal(parts.predict_proba(x), whole.predict_proba(x))


@pytest.mark.parametrize(
    "row",
    [[0.1, 0.2, 0.3], (0.1, 0.2, 0.3), np.array([0.1, 0.2, 0.3]), np.arange(6, dtype=np.float32)[::2], "ints"],
    ids=["list", "tuple", "double", "strided", "ints"],
)
def test_contexts_of_any_kind_decide_as_rows_of_single_precision_do(row: Any) -> None:
    row = np.array([1, -2, 3]) if isinstance(row, str) else row
    expected, found = (o2pl.O2PL(3, policy="linear", schedule="replay", random_state=0) for _ in range(2))
    plain = np.asarray(row, np.float32)
    for t in range(60):
        decision = expected.act(plain)
        assert found.act(row) == decision
        reward = float(decision.action == t % 3)
        expected.update(plain, decision.action, reward, decision.propensity)
        found.update(row, np.int64(decision.action), reward, decision.propensity)
    np.testing.assert_array_equal(found.log_.contexts, expected.log_.contexts)
    np.testing.assert_array_equal(found.predict_proba(plain[None]), expected.predict_proba(plain[None]))
