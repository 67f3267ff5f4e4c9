"""Terms of a gain: their exact means, over all actions of a small world, bound the truth whatever the model says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.evaluation.cases import log_of, policy

from o2pl.data.interactions import Interactions
from o2pl.evaluation.bounds import Kind
from o2pl.evaluation.estimators import EstimatorInput
from o2pl.evaluation.gains import Gains, ends_of_gains, gains_of, gains_of_weights, running_gains
from o2pl.evaluation.reward_models import fit_rewards
from o2pl.evaluation.support import Support
from o2pl.evaluation.unshown import Side
from o2pl.evaluation.values import columns_for_values
from o2pl.learners.targets import PolicyRows, as_target
from o2pl.protocols import Floats

CONTEXTS, K = 6, 3


class _Table:
    """A reward model given by a table, [contexts, K]."""

    def __init__(self, table: Floats, log: Interactions) -> None:
        self.of = table[log.contexts[:, 0].astype(int)]
        self.log = log

    def all_actions(self, rows: slice) -> Floats:
        return self.of[rows]

    def table(self, rows: slice) -> tuple[Floats, Floats | None]:
        some = self.of[rows]
        return some[np.arange(len(some)), self.log.actions[rows]], some

    def expected(self, does: PolicyRows, rows: slice, table: Floats | None) -> Floats | None:
        if does.probabilities is None:
            return None
        return (does.probabilities * self.of[rows]).sum(axis=1)


def world(seed: int, hidden: bool) -> tuple[Any, ...]:
    """Every context with every action once; q, rewards, a model that is wrong, and two policies."""
    g = np.random.default_rng(seed)
    q = g.dirichlet(np.full(K, 0.7), CONTEXTS) + 1e-3
    if hidden:
        q[:2, 0] = 1e-9  # the log never shows this
    q /= q.sum(axis=1, keepdims=True)
    reward, model = g.random((CONTEXTS, K)), g.random((CONTEXTS, K))
    one, two = (g.dirichlet(np.ones(K), CONTEXTS) for _ in range(2))
    x, a = np.repeat(np.arange(CONTEXTS), K), np.tile(np.arange(K), CONTEXTS)
    log = Interactions(x[:, None] * 1.0, a, reward[x, a], q[x, a], (0, 1), K)
    return q, reward, model, one, two, log


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("against", ["nothing", "policy", "logged"])
@pytest.mark.parametrize("seed", range(6))
def test_means_over_all_actions_bound_the_truth(seed: int, against: str, hidden: bool) -> None:
    q, reward, model, one, two, log = world(seed, hidden)
    x, a = log.contexts[:, 0].astype(int), log.actions
    given = [one[x]] + ([two[x]] if against == "policy" else ["logged"] if against == "logged" else [])
    targets = [as_target(each, log, f"policy {k}") for k, each in enumerate(given)]
    table = _Table(model, log)
    inputs = [column.inputs for column in columns_for_values(log, targets, table)]
    sides = [Side(target, each, (1, -1)[k]) for k, (target, each) in enumerate(zip(targets, inputs, strict=True))]
    support = Support(lambda contexts: q[contexts[:, 0].astype(int)])
    other = {"nothing": np.zeros_like(q), "policy": two, "logged": q}[against]
    truth = ((one - other) * reward).sum(axis=1).mean()
    for limit in (1.5, 5.0, 1e3):
        found = gains_of(log, sides, table, support, limit=limit)
        drawn = q[x, a] / CONTEXTS * (q[x, a] > 1e-6)  # the hidden action is never drawn
        assert drawn @ found.lower <= truth + 1e-6
        assert drawn @ found.upper >= truth - 1e-6
        if limit == 1e3 and not hidden:
            assert drawn @ found.lower == pytest.approx(truth, abs=1e-9)
            assert drawn @ found.estimate == pytest.approx(truth, abs=1e-9)
        inside = np.abs(found.whole + (against == "logged")) <= limit
        assert (found.lower[inside] >= -found.floors[0] - 1e-12).all()
        assert (-found.upper[inside] >= -found.floors[1] - 1e-12).all()


def gains(log: Interactions, predictable: bool = False) -> Gains:
    model = fit_rewards(log)
    targets = [as_target(policy, log), as_target("logged", log)]
    own, other = (
        Side(target, one.inputs) for target, one in zip(targets, columns_for_values(log, targets, model), strict=True)
    )
    return gains_of(log, [own, other._replace(sign=-1)], model, None, predictable)


def test_parts_give_the_interval_of_the_whole() -> None:
    found = gains(log_of(1000))
    about = (0.1, -0.1)
    parts = [found.rows(np.arange(start, start + 250)).sums_around(about) for start in range(0, 1000, 250)]
    added = parts[0]
    for one in parts[1:]:
        added = added.added(one)
    whole, joined = ends_of_gains(found.sums, 0.05), ends_of_gains(added, 0.05)
    np.testing.assert_allclose(whole[:3], joined[:3], atol=1e-9)
    assert whole.kind == joined.kind == "normal, with skew"


def test_the_running_interval_ends_where_the_bound_is() -> None:
    found = gains(log_of(400))
    sequence, ends = running_gains(found, 0.1), ends_of_gains(found.sums, 0.1, at_any_time=True)
    assert (sequence.lower[-1], sequence.upper[-1]) == pytest.approx((ends.low, ends.high), abs=1e-6)
    kind: Kind = "betting, at any time"
    assert ends.kind == kind


def test_without_other_probabilities_what_the_log_leaves_no_room_for_is_hidden() -> None:
    log = log_of(300).changed(propensities=np.r_[np.full(100, 1.0), np.full(200, 0.4)])
    target = as_target(np.full(300, 0.25), log)
    inputs = EstimatorInput(log.rewards, 0.25 / log.propensities)
    found = gains_of(log, [Side(target, inputs)], None, None)
    assert found.sums.unshown == pytest.approx(0.75 / 3)
    low, high = ends_of_gains(found.sums, 0.05)[1:3]
    assert high - low > 0.25


def test_rows_that_a_policy_gives_up_are_those_that_must_surprise() -> None:
    """19 of 20 rows keep their action at weight 20/19; the others, given up, earned nothing: that may be chance."""
    g = np.random.default_rng(0)
    given_up = np.arange(400) % 20 == 0
    weights, rewards = np.where(given_up, 0.0, 20 / 19), (g.random(400) < 0.1) * (~given_up)
    found = gains_of_weights(rewards, (0, 1), [(1, weights), (-1, None)])
    np.testing.assert_allclose(found.whole, weights - 1)
    assert found.sums.lower.surprises > 12  # of the rows that are kept
    assert found.sums.surprised < 2
    ends = ends_of_gains(found.sums, 0.05)
    assert (ends.kind, ends.low < 0 < ends.high) == ("betting", True)


def test_what_one_more_row_could_do_is_not_left_to_a_normal_bound() -> None:
    """Rewards near 0.9 say nothing of losses in one of 400 rows; with 0s in the log, or as many rows, they do."""
    g = np.random.default_rng(0)
    weights, near = g.choice([0.0, 3.0], size=400, p=[2 / 3, 1 / 3]), 0.9 + 0.02 * g.random(400)
    hidden = gains_of_weights(near, (0, 1), [(1, weights), (-1, None)])
    down, _ = hidden.sums.unseen
    W = weights - 1
    assert down == pytest.approx((W @ W) / np.abs(W).sum() * (hidden.sums.far[1] - hidden.sums.far[0]) / 400)
    assert hidden.sums.far[1] > 0.89 > 0.02 > hidden.sums.far[0]
    assert ends_of_gains(hidden.sums, 0.05).kind == "betting"
    assert (
        ends_of_gains(gains_of_weights(near, None, [(1, weights), (-1, None)]).sums, 0.05).kind == "normal, with skew"
    )
    shown = gains_of_weights((g.random(400) < 0.5) * 1.0, (0, 1), [(1, weights), (-1, None)])
    assert shown.sums.unseen == pytest.approx((0, 0))
    assert ends_of_gains(shown.sums, 0.05).kind == "normal, with skew"


def test_rewards_and_weights_alone() -> None:
    g = np.random.default_rng(0)
    weights, rewards = g.choice([0.5, 2.0], size=2000, p=[2 / 3, 1 / 3]), (g.random(2000) < 0.3) * 4.0
    found = gains_of_weights(rewards, (0, 4), [(1, weights), (-1, None)])
    ends = ends_of_gains(found.sums, 0.05)
    assert ends.low < 0 < ends.high
    assert ends.estimate == pytest.approx((weights - 1) @ (rewards - rewards.mean()) / 2000)
    assert ends_of_gains(gains_of_weights(rewards, (0, 4), [(1, None)]).sums, 0.05).estimate == pytest.approx(
        rewards.mean()
    )
    overflowed = gains_of_weights(rewards, None, [(1, np.r_[np.inf, weights[1:]])])
    assert ends_of_gains(overflowed.sums, 0.05)[1:3] == (-np.inf, np.inf)


def test_an_unknown_range_and_hidden_decisions_leave_everything_open() -> None:
    log = log_of(300, reward_range=None)
    assert np.isfinite(ends_of_gains(gains(log).sums, 0.05)[1:3]).all()
    bad = log.changed(propensities=np.where(np.arange(300) < 50, 1.0, log.propensities))
    assert ends_of_gains(gains(bad).sums, 0.05)[1:3] == (-np.inf, np.inf)
