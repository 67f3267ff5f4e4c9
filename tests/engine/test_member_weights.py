from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl.data.interactions import Interactions
from o2pl.engine.member import QUADRATIC
from o2pl.engine.member_weights import member_evidence, member_shares, predicted_log_odds, progressive_gains


def weights_of(learner: Any) -> Any:
    """Those that the union acts with."""
    engine = learner._engine
    return member_shares(engine.gains, engine.spec.objective.rate(engine.learned))


def test_gains_are_clipped_importance_weighted_and_centred() -> None:
    generator = np.random.default_rng(0)
    losses, propensities = -generator.random(30), generator.uniform(0.1, 0.9, 30)
    rows = Interactions(np.zeros((30, 1)), np.zeros(30, int), -losses, propensities, (0, 1))
    likelihoods = generator.random((2, 30))
    slow = [
        sum((min(p / q, 2.0) - 1) * (-y - 0.3) for p, q, y in zip(each, propensities, losses, strict=True))
        for each in likelihoods
    ]
    np.testing.assert_allclose(progressive_gains(likelihoods, rows, 2.0, -0.3), slow)


@pytest.mark.parametrize("kind", ["dictionaries", "numbers", "numbers beside a user"])
def test_a_prediction_of_the_played_action_needs_no_other(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, words = np.random.default_rng(0), kind == "dictionaries"
    learner = o2pl.Bandit(policy="hashed actionwise" if words else "actionwise", exploration=0.3, random_state=0)
    for t in range(80):
        x = rng.normal(size=(1 + t % 4, 3))
        items = [{"w": f"w{rng.integers(5)}", "n": row[0]} for row in x] if words else x
        user = ([0.1, t % 3],) if kind == "numbers beside a user" else ()
        decision = learner.act(*user, items) if user else learner.act(items)
        learner.update(decision, float(x[decision.action, 0] > 0))
    engine, rows = learner._engine, learner.log_
    assert not any(member.objective.competing for member in engine.present)
    found, given = predicted_log_odds(engine.present, engine.decider, rows), []
    scores = type(engine.decider).scores
    monkeypatch.setattr(type(engine.decider), "scores", lambda self, rows: given.append(rows) or scores(self, rows))
    predicted_log_odds(engine.present, engine.decider, rows)
    assert given[0].offsets.tolist() == list(range(81))  # one action each
    monkeypatch.setattr(type(rows.contexts), "alone", lambda self, _: self)
    monkeypatch.setattr(np, "zeros_like", lambda actions: actions)
    np.testing.assert_array_equal(found, predicted_log_odds(engine.present, engine.decider, rows))
    assert len(given[1].values) == len(rows.contexts.values) > 81


def test_shares_are_exponential_weights() -> None:
    for rate in (0.1, 1.0):
        expected = [1 / (1 + np.exp(2 * rate)), 1 / (1 + np.exp(-2 * rate))]
        np.testing.assert_allclose(member_shares(np.array([0.0, 2.0]), rate), expected)
    np.testing.assert_allclose(member_shares(np.array([-1e4, 1e4]), 1.0), [0, 1])


def test_the_member_that_can_tell_the_actions_apart_takes_over() -> None:
    """The better action is the sign of a product: the linear member is blind to it, the quadratic one is not."""
    x = np.random.default_rng(1).normal(size=(600, 2))
    rewards = np.stack([x[:, 0] * x[:, 1] > 0, x[:, 0] * x[:, 1] <= 0], axis=1).astype(float)
    learner = o2pl.O2PL(2, random_state=0)
    run = learner.run((x, rewards))
    _, quadratic = weights_of(learner)
    assert quadratic > 0.99
    assert run.rewards[-200:].mean() > 0.8


def test_offline_too_members_are_weighed_on_rows_they_have_not_learned_from() -> None:
    x = np.random.default_rng(2).normal(size=(800, 2))
    better = (x[:, 0] * x[:, 1] <= 0).astype(int)
    actions = np.random.default_rng(3).integers(2, size=800)
    learner = o2pl.O2PL(2).fit(x, actions, (actions == better).astype(float), np.full(800, 0.5))
    _, quadratic = weights_of(learner)
    assert quadratic > 0.99
    assert np.mean(learner.predict(x) == better) > 0.9


def test_a_member_joins_when_the_log_is_long_enough() -> None:
    x = np.random.default_rng(4).normal(size=(120, 3))
    rewards = (x > 0).astype(float)
    members = (o2pl.Member(), o2pl.Member(QUADRATIC, joins=50))
    late, alone = (o2pl.O2PL(3, policy=policy, schedule="exact", random_state=0) for policy in (members, "linear"))
    np.testing.assert_array_equal(late.run((x[:50], rewards[:50])).actions, alone.run((x[:50], rewards[:50])).actions)
    assert len(late._engine.gains) == 2  # it has learned from the first 50 and now takes part
    np.testing.assert_array_equal(weights_of(late), 0.5)
    assert {int(member.seen.state["0.count"][0]) for member in late._engine.members} == {
        50
    }  # its features know all rows
    late.run((x[50:], rewards[50:]))
    linear, quadratic = weights_of(late)
    assert linear != quadratic


def test_the_first_member_cannot_join_later() -> None:
    for joins in ((5, 0), (5, 5), (0, 9, 3)):
        members = tuple(o2pl.Member(joins=each) for each in joins)
        with pytest.raises(o2pl.InvalidInput, match="expected 0 first, then ascending"):
            o2pl.O2PL(2, policy=members).act([1.0])


def test_rows_with_weights_are_rows_that_come_again() -> None:
    g = np.random.default_rng(0)
    z, rewards, times = g.normal(size=(3, 40)) * 3, g.random(40), g.integers(1, 4, 40)
    repeated = member_evidence(np.repeat(z, times, axis=1), np.repeat(rewards, times))
    np.testing.assert_allclose(member_evidence(z, rewards, times * 1.0), repeated, rtol=1e-12)
    likelihoods = g.random((3, 40))
    log = o2pl.Interactions(np.zeros((40, 1)), g.integers(2, size=40), rewards, g.uniform(0.2, 1, 40), (0, 1), 2)
    weighted = log.changed(row_weights=times)
    rows = np.repeat(np.arange(40), times)
    scale = times.sum() / (times @ times)
    np.testing.assert_allclose(
        progressive_gains(likelihoods, weighted, 3.0, -0.4),
        scale * progressive_gains(likelihoods[:, rows], log[rows], 3.0, -0.4),
        rtol=1e-12,
    )
