"""Rewards without a given range: running quantiles, dispersion, and the same decisions however rows arrive."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl import Bandit, _core
from o2pl.engine import engine as engines
from o2pl.engine.reward_scale import RewardScale, adopt_reward_scale, new_scale, reward_quantile_range
from o2pl.engine.trimming import trim_rows
from o2pl.objectives.outcome import Outcome
from o2pl.special import expit

KINDS = ("revenue", "costs", "counts", "outliers")


def world(kind: str, rounds: int, seed: int = 0, K: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return contexts, the rewards of all actions, and their means up to a factor."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rounds, 3)).astype(np.float32)
    f = x @ rng.normal(size=(3, K))
    if kind == "revenue":
        bought = rng.random(f.shape) < 0.3 * expit(f)
        return x, bought * np.exp(3 + 0.5 * rng.normal(size=f.shape)), expit(f)
    if kind == "costs":
        mean = -np.exp(1 + 0.5 * f)
        return x, mean * np.exp(0.5 * rng.normal(size=f.shape)), mean
    if kind == "counts":
        return x, rng.poisson(np.exp(0.7 * f)).astype(float), np.exp(0.7 * f)
    rewards = (rng.random(f.shape) < expit(2 * f)).astype(float)
    rewards[rng.random(f.shape) < 0.002] = 7.0  # beyond 0 to 1, which both quantiles are
    return x, rewards, expit(2 * f)


def loop(learner: Bandit, contexts: Any, rewards: Any) -> list[Any]:
    made = []
    for x, row in zip(contexts, rewards, strict=True):
        made.append(learner.act(x))
        learner.update(made[-1], float(row[made[-1].action]))
    return [tuple(each) for each in made]


# -- the range


def test_numbers_within_ends() -> None:
    for values, inside in (
        ([], True),
        ([0.0, 1.0], True),
        ([0.5, np.nan], False),
        ([-1e-9], False),
        ([1 + 1e-9], False),
    ):
        assert _core.within(np.array(values), 0.0, 1.0) is inside
    assert _core.within(np.array([-3.0, 9.0, 4.0])[::2], -3.0, 4.0)


def test_the_range_is_between_two_of_the_rewards() -> None:
    rng = np.random.default_rng(0)
    for n in (2, 5, 199, 201, 1000):
        rewards = rng.normal(size=n) * 10
        beyond = int(0.005 * (n - 1))
        ordered = sorted(rewards.tolist())
        assert reward_quantile_range(rewards) == (ordered[beyond], ordered[-1 - beyond])
    assert reward_quantile_range(np.arange(1001.0)) == (5.0, 995.0)


def test_where_quantiles_are_equal_the_ends_are_the_lowest_and_the_highest() -> None:
    rare = np.zeros(10_000)
    rare[17], rare[400] = 80.0, 3.0
    assert reward_quantile_range(rare) == (0.0, 80.0)
    assert reward_quantile_range(np.full(50, 12.0)) == (0.0, 12.0)  # all are the same
    assert reward_quantile_range(np.full(50, -3.0)) == (-3.0, 1.0)


def test_while_rewards_are_from_0_to_1_that_is_the_range() -> None:
    x, rewards, _ = world("costs", 400)
    rewards = np.exp(rewards / 20)  # within .2 to 1, say
    assert rewards.max() < 1
    for how in (loop, lambda learner, *rows: learner.run(rows).propensities.tolist()):
        given, none = Bandit(3, reward_range=(0, 1), random_state=1), Bandit(3, random_state=1)
        assert how(given, x, rewards) == how(none, x, rewards)
        assert none._begun().scale.within
        assert none.reward_range_ == given.reward_range_ == (0.0, 1.0)
        assert none.log_.reward_range == (0.0, 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_range_follows_the_rewards(kind: str) -> None:
    x, rewards, _ = world(kind, 1500)
    learner = Bandit(3, random_state=0)
    learner.run((x, rewards))
    scale, seen = learner._begun().scale, learner.log_.rewards
    assert scale is not None
    low, high = reward_quantile_range(seen)
    assert abs(scale.low - low) + abs(scale.high - high) < 0.15 * (high - low)  # a tenth, and what came since
    assert not scale.within
    assert scale.rows > 1400
    assert learner.reward_range_ == scale.ends
    fractions = learner._begun().log.columns.fractions
    np.testing.assert_allclose(fractions, np.clip((seen - scale.low) / (scale.high - scale.low), 0, 1), atol=1e-15)
    assert learner.log_.reward_range is None  # rewards in it are as they came
    np.testing.assert_array_equal(np.sort(seen), np.sort(rewards[np.arange(1500), learner.log_.actions]))
    if kind == "outliers":
        assert scale.ends == (0.0, 1.0)
        assert seen.max() == 7
        assert fractions.max() == 1


def test_a_scale_moves_by_a_tenth_or_not_at_all() -> None:
    learner = Bandit(2, random_state=0)
    for k in range(40):
        learner.update([1.0], k % 2, float(10 * (k % 3)), 0.5)
    engine: Any = learner._engine
    assert engine.scale.ends == (0.0, 20.0)
    for last, moved in ((21.5, False), (22.5, True)):
        engine.log.append(np.ones(1, np.float32), 0, last, 0.5)
        engine.scale = engine.scale._replace(rows=1, dispersion=engine.scale.dispersion)
        found = new_scale(engine, len(engine.log))
        assert (found is not None and found.ends == (0.0, last)) is moved


# -- the dispersion


def test_the_dispersion_is_that_of_the_rewards_around_the_predictions() -> None:
    """Rewards 20 + 10 z, of which the context says half: φ = Σ (r - m)² / Σ m (1 - m) in the range that is used."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3000, 1))
    rewards = np.tile(20 + 5 * x + 5 * rng.normal(size=(3000, 1)), (1, 2))
    learner = Bandit(2, random_state=0)
    learner.run((x, rewards))
    engine: Any = learner._engine
    low, high = engine.scale.ends
    r = np.clip((rewards[:, 0] - low) / (high - low), 0, 1)
    fit = np.clip((20 + 5 * x[:, 0] - low) / (high - low), 0.01, 0.99)
    expected = ((r - fit) ** 2).sum() / (fit * (1 - fit)).sum()
    assert engine.scale.dispersion == pytest.approx(expected, rel=0.2)
    assert engine.scale.dispersion < 0.2
    for member in engine.members:
        assert member.objective.dispersion == engine.scale.dispersion
        plain = Outcome(member.objective.competing, member.objective.l2)
        assert member.objective.decay(2) == pytest.approx(plain.decay(2) * engine.scale.dispersion)
        assert member.objective.level_decay == pytest.approx(0.3 * engine.scale.dispersion)
    rate = min(1.0, 3 / np.sqrt(engine.learned - engine.base + 1)) / engine.scale.dispersion
    weights = np.exp(rate * (engine.gains - engine.gains.max()))
    np.testing.assert_allclose(engine.weights, weights / weights.sum(), rtol=1e-9)


def test_a_dispersion_is_a_number_from_0_to_1() -> None:
    for wrong in (0.0, 1.5, np.nan):
        with pytest.raises(o2pl.InvalidInput, match="dispersion"):
            Outcome(dispersion=wrong)


# -- the same decisions


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", [False, True])
def test_decisions_are_the_same_however_rows_arrive(
    kind: str, words: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    x, rewards, _ = world(kind, 260)
    contexts: Any = [{"a": f"w{int(2 * row[0])}", "b": float(row[1])} for row in x] if words else x
    expected = Bandit(3, random_state=5)
    decided = loop(expected, contexts, rewards)
    assert expected._begun().compiled.learns
    again = Bandit(3, random_state=5)
    for first in range(0, 260, 65):  # copies and files between
        own = slice(first, first + 65)
        assert loop(again, contexts[own], rewards[own]) == decided[own]
        again.save(tmp_path / "learner.o2pl")
        again = copy.deepcopy(again) if first == 65 else o2pl.load(tmp_path / "learner.o2pl")
    assert again._begun().scale == expected._begun().scale
    if not words:  # of dictionaries, `run` takes the names of all
        run = Bandit(3, random_state=5).run((contexts, rewards))
        np.testing.assert_array_equal(run.propensities, [p for _, p in decided])
    monkeypatch.setattr(engines, "compiled_learner", lambda engine: None)
    composed = Bandit(3, random_state=5)
    assert loop(composed, contexts, rewards) == decided
    assert not composed._begun().compiled.learns
    assert composed._begun().scale == expected._begun().scale


def test_items_and_batches_are_learned_from_in_the_same_scale() -> None:
    rng = np.random.default_rng(3)
    learner, good = Bandit(random_state=0), rng.normal(size=8)
    for _ in range(400):
        shown = rng.choice(8, 4, replace=False)
        decision = learner.act(rng.normal(size=2), np.eye(8)[shown], ids=[f"i{k}" for k in shown])
        learner.update(decision, 100 + 30 * good[int(decision.action[1:])] + rng.normal())
    pi = learner.predict_proba([o2pl.Offer(np.zeros(2), np.eye(8), ids=[f"i{k}" for k in range(8)])])
    assert int(np.argmax(pi)) == int(np.argmax(good))
    x, rewards, means = world("costs", 800)
    actions = rng.integers(3, size=800)
    for fitted in (
        Bandit(3, random_state=0).fit(x, actions, rewards[np.arange(800), actions], np.full(800, 1 / 3)),
        Bandit(3, random_state=0).partial_fit(x, actions, rewards[np.arange(800), actions], np.full(800, 1 / 3)),
    ):
        engine: Any = fitted._engine
        assert engine.log.reward_range == engine.scale.ends
        assert engine.log.columns.fractions.min() == 0
        assert (fitted.predict(x) == means.argmax(axis=1)).mean() > 0.85


def test_rows_may_be_dropped() -> None:
    x, rewards, _ = world("counts", 400)
    learner = Bandit(3, schedule=o2pl.Geometric(window=100), random_state=0)
    learner.run((x, rewards))
    engine: Any = learner._engine
    engine.learn()
    before = engine.scale
    trim_rows(engine, 250)
    assert engine.scale == before._replace(rows=before.rows - 250)
    assert engine.log.reward_range == before.ends
    learner.run((x, 100 * rewards))
    assert engine.scale.high > 3 * before.high


def test_adopting_a_scale_forgets_sums_of_the_old_one() -> None:
    x, rewards, _ = world("outliers", 300)
    learner = Bandit(3, reward_range=None, random_state=0)
    learner.run((x, np.minimum(rewards, 1)))
    engine: Any = learner._engine
    tally = engine.log.tally(300).rewards
    adopt_reward_scale(engine, RewardScale(0.0, 4.0, within=False, rows=301))
    np.testing.assert_allclose(engine.log.tally(300).rewards, tally / 4)
    assert engine.mean_reward.rows == 0
    assert engine.curvature.rows == 0
    engine.learn()
    assert engine.mean_reward.value == pytest.approx((tally.sum() / 4 + 1) / 302)


# -- what is earned, and what is refused


@pytest.mark.parametrize("kind", KINDS)
def test_rewards_of_any_kind_are_learned_from(kind: str) -> None:
    """At least 60 % of the possible gain in 1,500 rounds, mean of three seeds."""
    gains = []
    for seed in range(3):
        x, rewards, means = world(kind, 1500, seed)
        actions = Bandit(3, random_state=seed).run((x, rewards)).actions
        gained = means[np.arange(1500), actions].mean() - means.mean()
        gains.append(gained / (means.max(axis=1).mean() - means.mean()))
    assert np.mean(gains) > 0.6


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_rewards_that_are_no_numbers_are_errors_that_change_nothing(wrong: float) -> None:
    x, rewards, _ = world("costs", 50)
    learner = Bandit(3, random_state=0)
    learner.run((x, rewards))
    decision, many = learner.act(x[0]), learner.act_many(x[:2])
    before = learner._begun().state()[0]
    for attempt in (
        lambda: learner.update(decision, wrong),
        lambda: learner.update(decision.id, wrong),
        lambda: learner.update(x[0], 1, wrong, 0.5),
        lambda: learner.partial_fit(x[:1], [0], [wrong], [0.5]),
        lambda: learner.run((x[:2], np.full((2, 3), wrong))),
        lambda: Bandit(3).fit(x[:1], [0], [wrong], [0.5]),
        *([] if np.isnan(wrong) else [lambda: learner.update_many(many, [wrong, 1.0])]),  # NaN: not known
    ):
        with pytest.raises(o2pl.InvalidInput, match=r"reward, row 0: found -?(nan|inf), expected a finite number"):
            attempt()
    assert learner._begun().state()[0] == before
    learner.update(decision, -5.0)
    assert len(learner.log_) == 51


def test_a_reward_beyond_a_given_range_is_an_error() -> None:
    learner = Bandit(3, reward_range=(0, 1), random_state=0)
    with pytest.raises(o2pl.InvalidInput, match=r"say which: reward_range=\(0, 5\)"):
        learner.update(learner.act([1.0]), 5.0)
    for given in ((1, 0), "auto"):
        with pytest.raises(o2pl.InvalidInput, match="reward_range"):
            Bandit(3, reward_range=given).act([1.0])
    with pytest.raises(o2pl.InvalidInput, match="reward_range: found None"):
        o2pl.O2PL(3, reward_range=None).act([1.0])


def test_a_learner_with_a_given_range_has_no_scale() -> None:
    learner = Bandit(3, reward_range=(-5, 5), random_state=0)
    learner.act([1.0])
    engine = learner._begun()
    assert engine.scale is None
    assert new_scale(engine, 100) is None
    assert "scale" not in engine.state()[0]
