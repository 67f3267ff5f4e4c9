"""Lists: slot after slot, without repeats, with exact propensities; learned from rewards of slots or of the whole."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import o2pl
from o2pl import Bandit, Offer
from o2pl.engine.list_decisions import list_decision_propensities, list_decision_rewards

LEVELS = np.array([0.0, -0.8, -1.6])  # of the slots, on the log-odds


def rounds(seed: int, n: int, items: int = 8) -> Any:
    generator = np.random.default_rng(seed)
    taste = 1.5 * np.random.default_rng(99).normal(size=(2, 3))
    users, offered = generator.normal(size=(n, 2)), generator.normal(size=(n, items, 3))
    return users, offered, np.einsum("ni,ij,nkj->nk", users, taste, offered) - 0.5, generator.random((n, 3))


def play(learner: Any, world: Any, whole: bool = False) -> Any:
    """Chances of what was shown, [n, 3]."""
    got = []
    for user, items, scores, uniforms in zip(*world, strict=True):
        decision = learner.act(user, items, slots=3)
        chances = 1 / (1 + np.exp(-(scores[decision.action] + LEVELS)))
        rewards = (uniforms < chances).astype(float)
        learner.update(decision, float(rewards.any()) if whole else rewards)
        got.append(chances)
    return np.array(got)


def dictionaries(world: Any) -> Any:
    users, items, *rest = world
    users = [{"a": float(u[0]), "b": float(u[1])} for u in users]
    return users, [[{f"x{j}": float(v) for j, v in enumerate(item)} for item in one] for one in items], *rest


@pytest.mark.parametrize("kind", ["numbers", "dictionaries", "by id"])
def test_lists_are_as_frequent_as_their_propensities_say(kind: str) -> None:
    world = rounds(0, 60, items=4)
    world = dictionaries(world) if kind == "dictionaries" else world
    learner = Bandit(exploration=0.4, random_state=0)
    play(learner, world)
    user, items = world[0][0], world[1][0]
    named = {"ids": list("pqrs")} if kind == "by id" else {}
    counts, joint = dict[tuple[Any, ...], int](), dict[tuple[Any, ...], float]()
    for _ in range(3000):
        actions, propensity = decision = learner.act(user, items, slots=2, **named)
        assert propensity == np.prod(decision.propensities)
        assert len(set(actions)) == 2
        counts[tuple(actions)] = counts.get(tuple(actions), 0) + 1
        joint[tuple(actions)] = propensity
    every = list(itertools.permutations("pqrs" if named else range(4), 2))
    assert sum(joint.values()) == pytest.approx(1, abs=1e-6) if len(joint) == len(every) else sum(joint.values()) < 1
    expected = np.array([3000 * joint.get(one, 0) for one in every])
    seen = expected > 5
    rest = max(3000 - expected[seen].sum(), 1e-9)
    found = [counts.get(one, 0) for one, usual in zip(every, seen, strict=True) if usual]
    chi = ((np.array(found) - expected[seen]) ** 2 / expected[seen]).sum() + (3000 - sum(found) - rest) ** 2 / rest
    assert stats.chi2.sf(chi, seen.sum()) > 1e-3
    # the propensity of a slot is that of the policy among the items that are left
    offer = Offer(user, items, **named)
    first = learner.act(user, items, slots=2, **named)
    for slot in range(2):
        left = offer.without(first.actions[:slot], slot)
        assert learner.predict_proba([left])[left.place(first.actions[slot])] == first.propensities[slot]


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("kind", ["numbers", "dictionaries"])
def test_lists_are_learned_from_rewards_of_slots_and_of_the_whole(kind: str, whole: bool) -> None:
    world = rounds(1, 500)
    best = np.sort(world[2], axis=1)[:, :-4:-1]
    optimum = (1 / (1 + np.exp(-(best + LEVELS))))[-150:].mean()
    chance = (1 / (1 + np.exp(-(world[2][:, :, None] + LEVELS)))).mean()
    got = play(Bandit(random_state=0), dictionaries(world) if kind == "dictionaries" else world, whole)[-150:].mean()
    assert (got - chance) / (optimum - chance) > (0.6 if whole else 0.8)


def test_levels_of_the_slots_are_learned() -> None:
    world = rounds(2, 1500)
    learner = Bandit(exploration=1.0, changes=None, random_state=0)  # all items alike
    play(learner, world)
    member = learner._begun().members[0]
    np.testing.assert_allclose(member.params[1:3], LEVELS[1:], atol=0.35)


def test_told_by_decision_by_id_and_by_hand(tmp_path: Path) -> None:
    world = rounds(3, 5)
    user, items = world[0][0], world[1][0]
    one, other, third = (Bandit(reward_range=(0, 1), random_state=0) for _ in range(3))
    decision = one.act(user, items, slots=3)
    assert other.act(user, items, slots=3) == decision
    other.save(tmp_path / "waiting.o2pl")
    one.update(decision, [0.0, 1.0, 0.0])
    other.update(other.act(user, items, slots=3).id, [0.0, 1.0, 0.0])
    third.update((user, items), decision.actions, [0.0, 1.0, 0.0], decision.propensities)
    for each in (one, other, third):
        assert each.log_.contexts.sizes.tolist() == [8, 7, 6]
        assert each.log_.rewards.tolist() == [0, 1, 0]
        assert each.log_.slots.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(one.log_.contexts.values, third.log_.contexts.values)
    assert one.log_.actions.tolist() == third.log_.actions.tolist()
    again = o2pl.load(tmp_path / "waiting.o2pl")
    again.update(decision, 1.0)
    assert again.log_.rewards.tolist() == [1, 1, 1]
    with pytest.raises(o2pl.InvalidInput, match="its reward is"):
        one.update(decision, 0.0)
    with pytest.raises(o2pl.InvalidInput, match=r"found 2, expected one per slot \(3\)"):
        third.update(decision, [0.0, 1.0])
    with pytest.raises(o2pl.InvalidInput, match="reward"):
        third.update(decision, [0.0, 1.0, 7.0])
    with pytest.raises(o2pl.InvalidInput, match=r"expected one per slot \(3\), as"):
        third.update((user, items), decision.actions, [0.0, 1.0, 0.0], decision.propensity)
    with pytest.raises(o2pl.InvalidInput, match="slots: found 9, expected at most 8"):
        one.act(user, items, slots=9)
    assert (len(one.log_), len(third.log_)) == (3, 3)


def test_a_list_goes_on_from_its_log() -> None:
    learner = Bandit(random_state=0)
    play(learner, rounds(4, 80))
    again = Bandit(random_state=0).fit(learner.log_)
    assert again.log_.slots is not None
    np.testing.assert_array_equal(again.log_.slots, learner.log_.slots)


def test_helpers() -> None:
    assert list_decision_rewards(0.5, 2) == [0.5, 0.5]
    assert list_decision_propensities((0.5, 0.25), 2) == [0.5, 0.25]
