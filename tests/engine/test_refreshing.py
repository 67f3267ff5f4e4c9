"""Learning between two solves: what is new is learned, what is known stays, and the cost is bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl import Bandit, InvalidInput, Member
from o2pl.data.contexts import ActionSets
from o2pl.engine.member import MemberState
from o2pl.engine.refreshing import _refresh_sample
from o2pl.features import Hashed
from o2pl.objectives import Outcome
from o2pl.policies import ActionWise
from o2pl.policies.sampling import CountBonus

K = 3
COLOURS = ("red", "green", "blue", "grey")


def rows(n: int, seed: int, colours: tuple[str, ...] = COLOURS) -> tuple[list[Any], Any, Any, Any]:
    """Each colour likes one action; contexts are dictionaries, actions are drawn uniformly."""
    g = np.random.default_rng(seed)
    colour, x = g.integers(len(colours), size=n), g.normal(size=n)
    actions = g.integers(K, size=n)
    likes = np.array([sum(map(ord, name)) % K for name in colours])[colour]
    rewards = (g.random(n) < np.where(actions == likes, 0.8, 0.2)).astype(float)
    contexts = [{"colour": colours[c], "x": float(value)} for c, value in zip(colour, x, strict=True)]
    return contexts, actions, rewards, np.full(n, 1 / K)


def as_sets(log: tuple[list[Any], Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
    contexts, actions, rewards, propensities = log
    return [(one, [{"id": f"a{k}"} for k in range(K)]) for one in contexts], actions, rewards, propensities


def as_numbers(log: tuple[list[Any], Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
    contexts, *rest = log
    return np.array([[one["colour"] == c for c in COLOURS] + [one["x"]] for one in contexts], float), *rest


KINDS: dict[str, tuple[Any, Any]] = {
    "hashed": (lambda **more: Bandit(K, policy="hashed", random_state=0, **more), lambda log: log),
    "sets": (lambda **more: Bandit(policy="hashed actionwise", random_state=0, **more), as_sets),
    "union": (lambda **more: Bandit(K, random_state=0, **more), as_numbers),
    "pessimistic": (lambda **more: o2pl.O2PL(K, random_state=0), as_numbers),
}


def probabilities(learner: Any, contexts: Any) -> Any:
    found = learner.snapshot().predict_proba(contexts)
    return np.asarray(found).reshape(-1, K)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_new_is_learned_and_a_copy_from_a_file_goes_on_alike(kind: str, tmp_path: Path) -> None:
    make, seen_as = KINDS[kind]
    learner = make().partial_fit(*seen_as(rows(3000, 0)))
    for seed in range(1, 6):
        learner.partial_fit(*seen_as(rows(150, seed)), at_most=400)
    learner.save(tmp_path / "half.o2pl")
    copy = o2pl.load(tmp_path / "half.o2pl")
    test = seen_as(rows(200, 99))
    for one in (learner, copy):
        for seed in range(6, 9):
            one.partial_fit(*seen_as(rows(150, seed)), at_most=400)
    found = probabilities(learner, test[0])
    assert np.array_equal(found, probabilities(copy, test[0]))
    assert len(learner.log_) == 3000 + 8 * 150
    assert learner._engine.learned == len(learner.log_)
    likes = np.array([sum(map(ord, one["colour"])) % K for one in rows(200, 99)[0]])
    assert (found.argmax(axis=1) == likes).mean() > 0.95


def test_a_new_word_is_learned_at_once_and_the_others_stay() -> None:
    known, new = rows(4000, 0), rows(100, 1, ("mauve",))
    contexts = [{"colour": name, "x": 0.0} for name in (*COLOURS, "mauve")]
    policy: Any = Member(Hashed(), objective=Outcome(True))
    learner = Bandit(K, policy=policy, changes=None, exploration=CountBonus(0.0)).fit(*known)
    slots = len(learner._engine.members[0].params) - 1
    was = probabilities(learner, contexts)
    learner.partial_fit(*new, at_most=400)
    assert learner._engine.members[0].known == 4100
    after = learner._engine.members[0].params
    whole = Bandit(K, policy=policy, changes=None)
    whole.fit(*(np.concatenate([a, b]) if i else [*a, *b] for i, (a, b) in enumerate(zip(known, new, strict=True))))
    word = after[slots:-1]  # the weights of the new feature, for each action
    expected = whole._engine.members[0].params[slots:-1]
    assert np.allclose(word, expected, atol=0.15)
    assert np.abs(word).max() > 0.5
    assert np.abs(probabilities(learner, contexts) - was)[:4].max() < 0.02  # a sample's own chance moves nothing
    assert np.abs(probabilities(learner, contexts) - was)[4].max() > 0.2


@pytest.mark.parametrize("n", [1000, 4000])
def test_a_call_goes_through_no_more_rows_than_it_may_however_long_the_log_is(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = as_sets(rows(n, 0))
    learner = Bandit(policy="hashed actionwise").partial_fit(*sets)
    learner._engine.members[0].checkpoint = 10**9  # no solve is due
    gone_through = []
    value = MemberState.value

    def counted(self: MemberState, log: Any, some: Any, *more: Any) -> Any:
        gone_through.append((self.is_monitor, len(some)))
        return value(self, log, some, *more)

    monkeypatch.setattr(MemberState, "value", counted)
    learner.partial_fit(*as_sets(rows(350, 1)), at_most=300)
    long = [size for watches, size in gone_through if not watches]
    assert max(long) == 300
    assert len(long) == 2 * 3  # 150 + 150 + 50 new rows; old ones alone, and both
    assert all(size <= 1200 for watches, size in gone_through if watches)


def test_short_logs_are_learned_from_as_a_whole() -> None:
    first, second = rows(200, 0), rows(100, 1)
    one = Bandit(K, policy="hashed", changes=None).partial_fit(*first)
    two = Bandit(K, policy="hashed", changes=None).partial_fit(*first)
    one.partial_fit(*second)
    two.partial_fit(*second, at_most=1000)
    assert np.array_equal(one._engine.members[0].params, two._engine.members[0].params)


def test_a_change_of_the_world_within_a_batch_is_noticed() -> None:
    learner = Bandit(K, policy="hashed", random_state=0).partial_fit(*rows(3000, 0))
    contexts, actions, rewards, propensities = rows(3000, 1)
    learner.partial_fit(contexts, actions, 1 - rewards, propensities, at_most=1000)
    assert len(learner.changes_) == 1
    assert 3000 < learner.changes_[0].row < 4500


def test_refreshes_learn_no_worse_than_the_schedule() -> None:
    """The same uniform log of users and items in batches: by the schedule alone, and with bounded steps between."""
    values = np.array([[_value(seed, refreshed) for refreshed in (False, True)] for seed in range(3)])
    assert values.mean(axis=0)[1] >= values.mean(axis=0)[0] - 0.003
    assert values.min() > 0.6  # uniform: 0.5


def _value(seed: int, refreshed: bool) -> float:
    g = np.random.default_rng(seed)
    taste = g.normal(size=(30, 12))

    def offers(n: int) -> tuple[list[Any], Any]:
        users, items = g.integers(30, size=n), np.array([g.choice(12, 4, replace=False) for _ in range(n)])
        means = 1 / (1 + np.exp(-taste[users[:, None], items]))
        return [({"user": f"u{u}"}, [{"item": f"i{i}"} for i in own]) for u, own in zip(users, items, strict=True)], (
            means
        )

    learner = Bandit(policy=Member(Hashed(), ActionWise(), objective=Outcome(False, 3.0)), changes=None)
    engine: Any = None
    for _ in range(24):
        contexts, means = offers(250)
        actions = g.integers(4, size=250)
        rewards = (g.random(250) < means[np.arange(250), actions]).astype(float)
        batch = contexts, actions, rewards, np.full(250, 0.25)
        if refreshed or engine is None:
            learner.partial_fit(*batch, at_most=1000)
            engine = learner._engine
        else:
            engine.extend(learner._checked(*batch))
            engine.learn_if_due()
    contexts, means = offers(1000)
    found = np.asarray(learner.snapshot().predict_proba(contexts)).reshape(-1, 4)
    return float((found * means).sum(axis=1).mean())


def test_a_sample_is_spread_over_the_rows_and_counts_as_many() -> None:
    places, weight = _refresh_sample(100, 1100, 64)
    assert places.min() >= 100
    assert places.max() < 1100
    assert len(np.unique(places)) == 64
    assert weight * 64 == 1000
    assert np.abs(np.diff(places) - 1000 / 64).max() <= 1
    assert _refresh_sample(5, 9, 10)[0].tolist() == [5, 6, 7, 8]


def test_too_few_rows_are_refused() -> None:
    learner = Bandit(K, policy="hashed").partial_fit(*rows(50, 0))
    with pytest.raises(InvalidInput, match="at_most: found 10, expected at least 100 rows"):
        learner.partial_fit(*rows(50, 1), at_most=10)


def test_rows_with_the_action_that_was_played_alone_teach_the_same() -> None:
    """As a service keeps them: independent actions have no part in the likelihood of another."""
    sets = as_sets(rows(1000, 0))
    learner = Bandit(policy="hashed actionwise", changes=None)
    whole = learner._encoder_for(*sets).encode(sets[0])
    alone = ActionSets(whole.values[whole.offsets[:-1] + sets[1]], np.arange(1001))
    one = Bandit(policy="hashed actionwise", changes=None).partial_fit(*sets)
    two = Bandit(policy="hashed actionwise", changes=None).partial_fit(alone, np.zeros(1000, int), *sets[2:])
    assert np.allclose(probabilities(one, sets[0][:50]), probabilities(two, sets[0][:50]), atol=0.02)
