"""Actions that come and go: nothing learned is lost, and removed ones are never played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2pl

NAMES = ["news", "sport", "music"]


def taught(learner: Any, rounds: int = 400, seed: int = 0, names: Any = NAMES) -> Any:
    """The action whose number is the largest entry of the context is rewarded."""
    for context in np.random.default_rng(seed).normal(size=(rounds, len(names))):
        decision = learner.act(context)
        learner.update(decision, float(decision.action == names[context.argmax()]))
    return learner


def rows(n: int = 200, width: int = 3) -> Any:
    return np.random.default_rng(9).normal(size=(n, width))


def regret(seed: int, K: int = 10, rounds: int = 3000) -> tuple[float, float, float]:
    """Regret of the second half: with the last action added then, known from the beginning, and learned anew."""
    generator = np.random.default_rng(seed)
    weights, level = generator.normal(size=(K, 5)), generator.normal(size=K) / 2 - 1
    contexts = generator.normal(size=(2 * rounds, 5))
    odds = 1 / (1 + np.exp(-contexts @ weights.T - level))
    rewards = (generator.random(odds.shape) < odds).astype(float)
    names = [f"a{k}" for k in range(K)]

    def played(learner: o2pl.Bandit, first: int, last: int) -> float:
        lost = 0.0
        for t in range(first, last):
            decision = learner.act(contexts[t])
            k = names.index(str(decision.action))
            learner.update(decision, rewards[t, k])
            lost += odds[t].max() - odds[t, k]
        return lost

    added, known = (o2pl.Bandit(actions=names[:some], random_state=seed) for some in (K - 1, K))
    played(added, 0, rounds)
    played(known, 0, rounds)
    added.add_action(names[-1])
    anew = o2pl.Bandit(actions=names, random_state=seed)
    return tuple(played(each, rounds, 2 * rounds) for each in (added, known, anew))  # type: ignore[return-value]


def test_adding_one_of_ten_costs_at_most_a_tenth_of_learning_anew() -> None:
    added, known, anew = np.sum([regret(seed) for seed in range(10)], axis=0)
    assert added - known < anew / 10
    assert known < anew / 2


@pytest.mark.parametrize("make", [o2pl.Bandit, o2pl.O2PL])
def test_what_was_learned_stays_and_the_new_action_is_learned(make: Any) -> None:
    learner = taught(make(actions=NAMES, random_state=0))
    waiting, before = learner.act([0.0, 2.0, 0.0]), learner.predict_proba(rows()).argmax(axis=1)
    assert learner.add_action("film") == "film"
    assert learner.actions_ == (*NAMES, "film")
    assert learner.get_params()["actions"] == [*NAMES, "film"]
    assert len(learner.log_) == 400
    assert (learner.predict_proba(rows())[:, :3].argmax(axis=1) == before).mean() > 0.9
    learner.update(waiting.id, 1.0)
    for context in np.random.default_rng(2).normal(size=(1500, 3)):
        decision = learner.act(context)
        wanted = "film" if context[0] > 1 else NAMES[context.argmax()]
        learner.update(decision, float(decision.action == wanted))
    films = learner.predict(rows()) == "film"
    assert (films == (rows()[:, 0] > 1)).mean() > 0.8


def test_an_action_like_another_begins_where_that_one_is_best() -> None:
    for like, least in ((None, 0.0), ("music", 0.7)):
        learner = taught(o2pl.Bandit(actions=NAMES, random_state=0), 2000)
        learner.add_action("film", like=like)
        likely = learner.predict(rows(1000))
        for_music = rows(1000).argmax(axis=1) == 2
        assert np.isin(likely[for_music], ["film", "music"]).mean() > 0.85
        assert least <= (likely[for_music] == "film").mean() <= least + 0.3
        assert (likely[~for_music] == "film").mean() < 0.2


def test_old_logs_and_files_match_by_name(tmp_path: Path) -> None:
    old = taught(o2pl.Bandit(actions=NAMES, random_state=0))
    old.save(tmp_path / "old.o2pl")
    learner = o2pl.load(tmp_path / "old.o2pl")
    learner.add_action("film")
    taught(old, 50, seed=3)
    learner.partial_fit(old.log_[400:])
    assert learner.log_.action_names == (*NAMES, "film")
    assert learner.log_.named_actions.tolist() == old.log_.named_actions.tolist()
    learner.remove_action("sport").save(tmp_path / "new.o2pl")
    again = o2pl.load(tmp_path / "new.o2pl")
    for context in rows():
        one, other = learner.act(context), again.act(context)
        assert (one.action, one.propensity) == (other.action, other.propensity)
        assert one.action != "sport"
        for each, decision in ((learner, one), (again, other)):
            each.update(decision, float(context[0] > 0))
    assert o2pl.evaluate(old.log_, again).value > 0.5  # a log of three actions, a policy of two of them and another


@pytest.mark.parametrize(
    "learner",
    [
        o2pl.Bandit(3, random_state=0),
        o2pl.Bandit(3, exploration=0.2, random_state=0),
        o2pl.Bandit(12, random_state=0),  # explores by counts
        o2pl.O2PL(3, exploration=0.1, random_state=0),
        o2pl.Bandit(3, policy="hashed", random_state=0),
    ],
)
def test_a_removed_action_is_never_played_until_it_comes_back(learner: Any) -> None:
    K = learner.n_actions
    contexts: Any = rows(300, K) if learner.policy != "hashed" else [{"a": str(k % 5)} for k in range(300)]
    for t, context in enumerate(contexts):
        learner.update(learner.act(context), float(t % 3 == 0))
    learner.remove_action(1)
    probabilities = learner.predict_proba(contexts)
    assert not probabilities[:, 1].any()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert not learner.snapshot().predict_proba(contexts)[:, 1].any()
    assert 1 not in learner.act_many(contexts).actions
    others = [action for action in range(K) if action != 1]
    assert learner.act(contexts[0], exclude=others[1:]).action == others[0]
    for decider in (learner, learner.snapshot()):
        with pytest.raises(o2pl.InvalidInput, match="all actions that were not removed"):
            decider.act(contexts[0], exclude=others)
    for context in contexts:
        decision = learner.act(context)
        assert decision.action != 1
        learner.update(decision, 0.5)
    assert (learner.log_.actions == 1).any()  # its rows stay
    assert learner.add_action(1) == 1
    assert (learner.predict_proba(contexts)[:, 1] > 0).all()


def test_numbered_actions() -> None:
    learner = taught(o2pl.Bandit(3, random_state=0), names=[0, 1, 2])
    assert learner.add_action() == 3
    assert learner.n_actions == learner.n_actions_ == learner.log_.n_actions == 4
    assert learner.predict_proba([[0.0, 0.0, 0.0]]).shape == (1, 4)
    assert {learner.act(context).action for context in rows()} == {0, 1, 2, 3}


def test_a_change_before_it_is_still_known() -> None:
    learner = taught(taught(o2pl.Bandit(actions=NAMES, random_state=0), 1000), 1000, names=NAMES[::-1])
    (change,) = learner.changes_
    learner.add_action("film")
    assert learner.changes_ == [change]
    best = np.array(NAMES[::-1])[rows().argmax(axis=1)]
    assert (learner.predict(rows()) == best).mean() > 0.8


def test_refusals_change_nothing() -> None:
    learner = taught(o2pl.Bandit(actions=NAMES, random_state=0), 50)
    fresh, sets = o2pl.Bandit(2), o2pl.Bandit()
    sets.update(sets.act(rows(4)), 1.0)
    given = o2pl.Bandit(policy=o2pl.Member(policy=o2pl.policies.Softmax(2), objective=o2pl.objectives.Outcome()))
    given.update(given.act([1.0, 2.0]), 1.0)
    for call, said in [
        (lambda: learner.add_action("news"), "an action already"),
        (lambda: learner.add_action(), "expected one, as the other actions have: news, sport, music"),
        (lambda: learner.add_action("film", like="sports"), "sport"),
        (lambda: learner.remove_action("sports"), "sport"),
        (lambda: fresh.add_action("a"), "has seen no data"),
        (lambda: sets.remove_action(0), "in the next call of act"),
        (lambda: given.add_action(), "one of 2 actions"),
        (lambda: given.remove_action(0).remove_action(1), "the last action"),
    ]:
        with pytest.raises(o2pl.InvalidInput, match=said):
            call()
    assert learner.actions_ == tuple(NAMES)
    assert learner.predict_proba(rows()).shape == (200, 3)
    assert given.n_actions_ == 2
    assert given.n_actions is None
    learner.remove_action("music")
    with pytest.raises(o2pl.InvalidInput, match="removed before"):
        learner.remove_action("music")
