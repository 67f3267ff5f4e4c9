"""The fused objectives of `ActionWise` and `Gaussian` beside `policy_value`; single decisions beside the batch's."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import o2pl
from o2pl.compiled import exp_any
from o2pl.features import Chain, Intercept, Standardise
from o2pl.interactions import Interactions, Log
from o2pl.learners.kernels.actionwise import ActionWiseValue, blocks_of_sets
from o2pl.learners.kernels.gaussian import GaussianValue
from o2pl.learners.kernels.one_pass import ROWS, block_bounds, packed
from o2pl.learners.members import Member, MemberState
from o2pl.learners.settings import Settings
from o2pl.objectives import Pessimistic, Phi, policy_value
from o2pl.oracles.lbfgs import LBFGS
from o2pl.oracles.quasi_newton import Curvature, descend
from o2pl.policies import ActionWise, Gaussian, UniformMixture
from o2pl.rows import ActionSets


def objective(actions: Any, propensities: Any, alpha: float, generator: Any, per_row: bool = False) -> Pessimistic:
    n = len(actions)
    baseline = -generator.random(n) if per_row else -0.3
    return Pessimistic(actions, -generator.random(n), propensities, alpha, Phi(alpha, n, 3.0, 0.5, 0.7), baseline)


def sets_case(seed: int, n: int, largest: int, alpha: float, spread: float = 1.0) -> tuple[Any, Any, Any]:
    """Features, objective and parameters; sets of one action among them."""
    generator = np.random.default_rng(seed)
    d = int(generator.integers(1, 12))
    sizes = generator.integers(1, largest + 1, size=n)
    values = spread * generator.normal(size=(sizes.sum(), d)).astype(np.float32)
    features = ActionSets(values, np.concatenate([[0], np.cumsum(sizes)]))
    propensities = generator.uniform(0.02, 1, size=n)
    return features, objective(generator.integers(sizes), propensities, alpha, generator), generator.normal(size=d)


def rows_case(seed: int, n: int, alpha: float, policy: Gaussian, dtype: Any = np.float32) -> tuple[Any, Any, Any]:
    generator = np.random.default_rng(seed)
    d = int(generator.integers(1, 12))
    actions = generator.normal(size=n)
    found = objective(actions, generator.uniform(0.05, 3, size=n), alpha, generator, per_row=True)
    return generator.normal(size=(n, d)).astype(dtype), found, 0.4 * generator.normal(size=policy.n_params(d))


def same(fast: Any, reference: Any, params: Any) -> None:
    before = params.copy()
    (value, gradient), (expected, slow) = fast(params), reference(params)
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-13)
    np.testing.assert_allclose(gradient, slow, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(params, before)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.sampled_from([1, 2, 17, 150, 700]),
    largest=st.sampled_from([1, 3, 20, 2 * ROWS]),
    alpha=st.sampled_from([1.0, 1.5, 6.0, math.inf]),
)
def test_action_sets(seed: int, n: int, largest: int, alpha: float) -> None:
    features, found, params = sets_case(seed, min(n, 20) if largest > ROWS else n, largest, alpha)
    same(ActionWiseValue(features, found, 0.3), policy_value(ActionWise(), features, found, 0.3), params)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.sampled_from([1, 2, ROWS - 1, ROWS, ROWS + 1, 700]),
    alpha=st.sampled_from([1.0, 1.5, 6.0, math.inf]),
    learn_scale=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_real_valued_actions(seed: int, n: int, alpha: float, learn_scale: bool, dtype: Any) -> None:
    policy = Gaussian(0.2, 0.6, learn_scale)
    features, found, params = rows_case(seed, n, alpha, policy, dtype)
    same(GaussianValue(policy, features, found, 0.3), policy_value(policy, features, found, 0.3), params)


def test_all_rows_clipped() -> None:
    features, found, params = sets_case(1, 50, 6, 1.0)
    sure = Pessimistic(found.actions, found.losses, np.full(50, 1e-9), 1.5, Phi(1.5, 50, 3.0))
    fast = ActionWiseValue(features, sure, 0.0)
    same(fast, policy_value(ActionWise(), features, sure), params)
    assert not fast(params)[1].any()
    policy = Gaussian(0.0, 1.0, True)
    features, found, params = rows_case(2, 50, 1.5, policy)
    sure = Pessimistic(found.actions, found.losses, np.full(50, 1e-200), 1.5, Phi(1.5, 50, 3.0))
    fast_rows = GaussianValue(policy, features, sure, 0.0)
    same(fast_rows, policy_value(policy, features, sure), params)
    assert not fast_rows(params)[1].any()


def test_weights_of_zero() -> None:
    """Far from the log, a density is no number any more: the weight is 0 and so is the gradient."""
    policy = Gaussian(1e3, 0.01)
    features, found, params = rows_case(3, 300, 4.0, policy)
    fast = GaussianValue(policy, features, found, 0.0)
    same(fast, policy_value(policy, features, found), params)
    assert not fast(params)[1].any()
    sets, found, params = sets_case(4, 60, 8, 4.0, spread=600.0)
    with np.errstate(divide="ignore"):
        same(ActionWiseValue(sets, found, 0.1), policy_value(ActionWise(), sets, found, 0.1), params)


@pytest.mark.parametrize("kind", ["sets", "rows", "rows, scale learned"])
def test_gradient_is_that_of_finite_differences(kind: str) -> None:
    if kind == "sets":
        features, found, params = sets_case(5, 40, 7, 1e3)
        fast: Any = ActionWiseValue(features, found, 0.2)
    else:
        policy = Gaussian(0.1, 0.8, kind != "rows")
        features, found, params = rows_case(6, 40, 1e3, policy)
        fast = GaussianValue(policy, features, found, 0.2)
    units = 1e-6 * np.eye(len(params))
    slow = np.array([(fast(params + e)[0] - fast(params - e)[0]) / 2e-6 for e in units])
    np.testing.assert_allclose(fast(params)[1], slow, rtol=1e-5, atol=1e-7)


def test_a_member_takes_the_fused_objective_only_where_it_is_the_same() -> None:
    generator = np.random.default_rng(7)
    sets = ActionSets.of([generator.normal(size=(k, 3)) for k in (2, 5, 1)])
    rows = Interactions(sets, np.array([1, 4, 0]), -np.ones(3), np.full(3, 0.5))
    plain = Interactions(generator.normal(size=(3, 3)).astype(np.float32), np.zeros(3), -np.ones(3), np.full(3, 0.5))
    for policy, log, kind in (
        (ActionWise(), rows, ActionWiseValue),
        (UniformMixture(ActionWise(), 0.1), rows, None),
        (Gaussian(), plain, GaussianValue),
    ):
        member = MemberState.start(Member(Standardise(), policy), policy, Settings(), 3)
        function = member.function(log, None)
        assert (type(function) is kind) or (kind is None and not isinstance(function, ActionWiseValue | GaussianValue))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 3 * ROWS), min_size=1, max_size=60))
def test_blocks_hold_whole_sets(sizes: list[int]) -> None:
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    bounds = blocks_of_sets(offsets, ROWS)
    assert bounds[0] == 0
    assert bounds[-1] == len(sizes)
    assert (np.diff(bounds) >= 1).all()
    rows = np.diff(offsets[bounds])
    assert ((rows <= ROWS) | (np.diff(bounds) == 1)).all()
    assert (rows[:-1] + rows[1:] > ROWS).all()  # no two neighbours would fit into one


@pytest.mark.parametrize("n", [1, ROWS, ROWS + 1, 3 * ROWS - 5])
def test_packed_rows_can_be_read_back(n: int) -> None:
    rows, bounds = np.random.default_rng(n).normal(size=(n, 3)), block_bounds(n)
    flat, places = packed(rows, bounds, np.float64)
    for b, (first, last) in enumerate(pairwise(bounds)):
        block = flat[3 * places[b] : 3 * places[b + 1]].reshape(3, -1)
        np.testing.assert_array_equal(block[:, : last - first].T, rows[first:last])
        assert not block[:, last - first :].any()


def test_the_exponential() -> None:
    x = np.concatenate([np.linspace(-707, 708, 5001), np.random.default_rng(0).normal(size=500)])
    found = np.array([exp_any(each) for each in x])
    assert (np.abs(found / np.exp(x) - 1) <= 1e-15 + 3e-16 * np.abs(x)).all()
    assert [exp_any(each) for each in (-math.inf, -1e4, 0.0, 1e4, math.inf)] == [0.0, 0.0, 1.0, math.inf, math.inf]
    assert math.isnan(exp_any(math.nan))


def test_descent_finds_the_minimum_and_gains_from_what_it_remembers() -> None:
    """A quadratic whose minimum is known, and another near it."""
    root = np.random.default_rng(8).normal(size=(12, 12))
    A = root @ root.T + 0.1 * np.eye(12)
    oracle, curvature = LBFGS(200, 1e-4, 10), Curvature(10, 12)
    evaluations = []
    for centre in (np.ones(12), np.full(12, 1.01)):

        def function(x: Any, c: Any = centre) -> tuple[float, Any]:
            return float(0.5 * (x - c) @ A @ (x - c)), A @ (x - c)

        start = np.zeros(12) if not evaluations else np.ones(12)
        found = descend(function, start, oracle, curvature)
        assert found.converged
        assert np.abs(function(found.params)[1]).max() <= 1e-4
        np.testing.assert_allclose(found.params, centre, atol=2e-3)
        evaluations.append(found.evaluations)
    assert evaluations[1] < evaluations[0]


# -- one at a time


def a_set(generator: Any, width: int = 4) -> Any:
    return generator.normal(size=(int(generator.integers(1, 30)), width)).astype(np.float32)


FEATURES = {
    "standardised": Standardise(),
    "raw": Chain(()),
    "chain": Chain((Standardise(clip=1.0),)),
    "intercept": Chain((Standardise(), Intercept())),
}


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("exploration", [0.0, 0.2])
@pytest.mark.parametrize("schedule", ["geometric", "replay"])
def test_a_set_at_a_time_is_decided_and_kept_as_in_a_batch(features: str, exploration: float, schedule: str) -> None:
    generator = np.random.default_rng(9)
    made: dict[str, Any] = {"schedule": schedule, "exploration": exploration, "random_state": 4, "sharpness": 1.7}
    fast, slow = (o2pl.O2PL(policy=o2pl.Member(FEATURES[features], ActionWise()), **made) for _ in range(2))
    for _ in range(120):
        context = a_set(generator)
        given_fast = context if generator.random() < 0.8 else context.astype(np.float64)
        decision = fast.act(given_fast)
        slow.act(context.tolist())  # a list: the batch's path
        slow._engine.stream.place[0] -= 1
        rows = ActionSets.of([context])
        actions, propensities = slow._engine.sample(rows, np.array([slow._engine.stream.next()]))
        assert decision == (actions[0], propensities[0])
        assert type(decision.action) is int
        reward = float(generator.random())
        fast.update(given_fast, decision.action, reward, decision.propensity)
        slow.update(context.tolist(), np.int64(decision.action), reward, decision.propensity)
    for key, array in fast._engine.state()[1].items():
        np.testing.assert_array_equal(array, slow._engine.state()[1][key])


@pytest.mark.parametrize("learn_scale", [False, True])
@pytest.mark.parametrize("features", FEATURES)
def test_a_row_at_a_time_is_decided_and_kept_as_in_a_batch(features: str, learn_scale: bool) -> None:
    generator = np.random.default_rng(10)
    made: dict[str, Any] = {"features": FEATURES[features], "learn_scale": learn_scale, "centre": 0.3, "scale": 0.7}
    fast, slow = (o2pl.GaussianO2PL(**made, random_state=5) for _ in range(2))
    for _ in range(80):
        context = generator.normal(size=7).astype(np.float32)
        decision = fast.act(context)
        assert decision == slow.act(context.tolist())  # a list: the batch's path
        reward = math.exp(-(decision.action**2))
        fast.update(context, decision.action, reward, decision.propensity)
        slow.update(context.tolist(), np.float64(decision.action), reward, decision.propensity)
    for key, array in fast._engine.state()[1].items():
        np.testing.assert_array_equal(array, slow._engine.state()[1][key])
    many = generator.normal(size=(500, 7)).astype(np.float32)
    actions, densities = fast._engine.sample(many, fast._engine.stream.take(500))
    assert [*zip(actions.tolist(), densities.tolist(), strict=True)] == [tuple(slow.act(row)) for row in many]


@pytest.mark.parametrize("kind", ["sets", "rows"])
def test_bad_contexts_are_refused_and_change_nothing(kind: str) -> None:
    generator = np.random.default_rng(11)
    learner: Any = o2pl.GaussianO2PL(random_state=0)
    good = generator.normal(size=4).astype(np.float32)
    if kind == "sets":
        learner, good = o2pl.O2PL(policy="actionwise", random_state=0), a_set(generator)
    decision = learner.act(good)
    learner.update(good, *decision[:1], 0.5, decision.propensity)
    header, arrays = learner._engine.state()
    holed, huge = good.astype(np.float64), good.astype(np.float64)
    holed.flat[1], huge.flat[0] = np.nan, 1e300
    for bad in (holed, huge, good[..., :3], good[..., None], good[:0]):
        with np.errstate(over="ignore"):
            with pytest.raises(o2pl.InvalidInput):
                learner.act(bad)
            with pytest.raises(o2pl.InvalidInput):
                learner.update(bad, 0, 0.5, 0.5)
    if kind == "sets":
        for action in (len(good), -1, 0.5):
            with pytest.raises(o2pl.InvalidInput):
                learner.update(good, action, 0.5, 0.5)
    later_header, later = learner._engine.state()
    assert later_header == header
    for key, array in arrays.items():
        np.testing.assert_array_equal(array, later[key])


def test_a_log_grows_one_row_at_a_time_as_in_batches() -> None:
    generator = np.random.default_rng(12)
    sets = [a_set(generator) for _ in range(70)]
    rows = Interactions(ActionSets.of(sets), np.zeros(70, np.int64), -generator.random(70), np.ones(70))
    once, each = Log(4, action_sets=True), Log(4, action_sets=True)
    once.extend(rows)
    for one, loss in zip(sets, rows.losses, strict=True):
        each.append(one, 0, loss, 1.0)
    for key, array in once.state().items():
        np.testing.assert_array_equal(array, each.state()[key])
