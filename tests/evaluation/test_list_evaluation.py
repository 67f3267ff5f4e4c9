"""Values of lists against their exact values; intervals that hold together."""

from __future__ import annotations

import itertools
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl import Bandit, Interactions, Offer, evaluate_lists
from o2pl.data.contexts import ActionSets

ITEMS = 4
LEVELS = np.array([0.9, 0.6, 0.3])  # how likely a slot is looked at
QUALITY = np.array([0.1, 0.4, 0.6, 0.9])  # of the items, in the order of their feature
X = np.arange(ITEMS, dtype=np.float32)[:, None]


def policy_of(strength: float) -> Any:
    """Among what is left π ∝ exp(strength · feature): a function of contexts, as `evaluate` takes them."""

    def probabilities(sets: ActionSets) -> Any:
        powers = np.exp(strength * sets.values[:, 0])
        return powers / np.repeat(np.add.reduceat(powers, sets.offsets[:-1]), sets.sizes)

    return probabilities


def exact(strength: float, slots: int = 3) -> Any:
    """The value of each slot, and of the list."""
    powers = np.exp(strength * np.arange(ITEMS))
    values = np.zeros(slots)
    for chosen in itertools.permutations(range(ITEMS), slots):
        left, share = powers.sum(), 1.0
        for item in chosen:
            share *= powers[item] / left
            left -= powers[item]
        values += share * QUALITY[list(chosen)] * LEVELS[:slots]
    return np.append(values, values.mean())


@lru_cache
def logged(n: int, seed: int, strength: float = 0.0, lie: float = 1.0, whole: bool = False) -> Interactions:
    generator = np.random.default_rng(seed)
    offers, actions, rewards, propensities = [], [], [], []
    for _ in range(n):
        offer, taken, came = Offer(None, X), list[int](), []
        for slot in range(3):
            left = offer.without(taken, slot)
            p = np.exp(strength * np.array(left.actions))
            p /= p.sum()
            place = generator.choice(len(p), p=p)
            item = left.actions[place]
            offers.append(left)
            actions.append(item)
            propensities.append(min(p[place] * lie, 1.0))
            came.append(float(generator.random() < QUALITY[item] * LEVELS[slot]))
            taken.append(item)
        rewards += [float(any(came))] * 3 if whole else came
    return Interactions(offers, actions, rewards, propensities, (0, 1))


def ends(found: Any) -> Any:
    return np.array([[one.low, one.high] for one in (*found.slots, found.whole)])


@pytest.mark.parametrize("at_any_time", [False, True])
def test_all_intervals_hold_together(at_any_time: bool) -> None:
    """Of 60 logs at most 3 · 5 % + luck may miss anywhere; the level of the test is 1e-3."""
    truth, missed, errors = exact(0.7), 0, []
    for seed in range(60):
        found = evaluate_lists(logged(300, seed), policy_of(0.7), at_any_time=at_any_time, delta=0.1)
        low, high = ends(found).T
        missed += bool(((truth < low) | (truth > high)).any())
        errors.append([one.value for one in (*found.slots, found.whole)] - truth)
    assert missed <= 14  # binomial(60, .1) is above 14 with probability 5e-4
    mean, error = np.mean(errors, axis=0), np.std(errors, axis=0) / np.sqrt(60)
    assert (np.abs(mean) < 4 * error + 0.01).all()


def test_against_a_baseline() -> None:
    log = logged(1500, 1)
    found = evaluate_lists(log, policy_of(0.7), baseline="uniform")
    gap = exact(0.7) - exact(0.0)
    np.testing.assert_allclose([one.value for one in found.differences], gap, atol=0.08)
    for one, true in zip(found.differences, gap, strict=True):
        assert one.low < true < one.high
    assert found.difference is not None
    assert bool(found.safe_to_deploy()) == (found.difference.low > 0)
    assert "better than one of uniform" in found.verdict
    own = evaluate_lists(log, "logged", baseline="logged")
    assert [one.value for one in own.differences] == [0, 0, 0, 0]
    rows = log.rewards.reshape(-1, 3)
    np.testing.assert_allclose([one.value for one in own.slots], rows.mean(axis=0))
    assert own.value == pytest.approx(rows.mean())
    any_time = evaluate_lists(log, policy_of(0.7), baseline="logged", at_any_time=True)
    assert any_time.difference is not None
    assert any_time.difference.low < gap[-1] < any_time.difference.high


def test_one_reward_for_the_whole_list() -> None:
    truth = np.zeros(1)
    powers = np.exp(0.7 * np.arange(ITEMS))
    for chosen in itertools.permutations(range(ITEMS), 3):
        left, share = powers.sum(), 1.0
        for item in chosen:
            share *= powers[item] / left
            left -= powers[item]
        truth += share * (1 - np.prod(1 - QUALITY[list(chosen)] * LEVELS))
    found = evaluate_lists(logged(2000, 3, whole=True), policy_of(0.7))
    assert found.whole.low < truth < found.whole.high
    assert found.whole.high - found.whole.low < 0.2


def test_what_is_printed_and_drawn(tmp_path: Path) -> None:
    found = evaluate_lists(logged(200, 2), policy_of(0.3), baseline="logged")
    text = str(found)
    assert "slot 0" in text
    assert "list" in text
    assert "200 lists; intervals: 95%, joint, fixed sample" in text
    found.figure().savefig(tmp_path / "lists.png")
    assert (tmp_path / "lists.png").stat().st_size > 1000
    alone = evaluate_lists(logged(200, 2), policy_of(3.0))
    assert any("effective sample size" in warning for warning in alone.warnings)
    with pytest.raises(o2pl.InvalidInput, match="baseline: found None"):
        alone.safe_to_deploy()


def test_wrong_propensities_are_noticed() -> None:
    assert "do not match" in evaluate_lists(logged(1500, 4, strength=0.5, lie=0.6), policy_of(0.5)).doubt
    assert not evaluate_lists(logged(1500, 4, strength=0.5), policy_of(0.5)).doubt


def test_the_log_of_a_learner_and_of_dictionaries() -> None:
    generator = np.random.default_rng(0)
    for words in (False, True):
        learner = Bandit(exploration=0.5, random_state=0)
        for _ in range(150):
            user, items = generator.normal(size=2), generator.normal(size=(5, 2))
            shown = [{"a": float(x), "b": float(y)} for x, y in items] if words else items
            decision = learner.act({"u": float(user[0])} if words else user, shown, slots=2)
            learner.update(decision, (items[decision.action, 0] > 0).astype(float))
        log = learner.log_
        found = evaluate_lists(log[200:], Bandit(random_state=1).fit(log[:200]), baseline="uniform", at_any_time=True)
        assert found.n == 50
        assert found.value > 0.6
        seen = o2pl.evaluate(log[200:], Bandit(random_state=1).fit(log[:200]))
        assert any("evaluate_lists" in warning for warning in seen.warnings)


def test_lists_must_be_whole() -> None:
    log = logged(3, 0)
    with pytest.raises(o2pl.InvalidInput, match="row 0: found slot 1"):
        evaluate_lists(log[1:], "uniform")
    with pytest.raises(o2pl.InvalidInput, match="row 1: found slot 2 after slot 0"):
        evaluate_lists(log[np.array([0, 2, 3])], "uniform")
    alone = Interactions([(None, X)], [0], [1.0], [0.25])
    with pytest.raises(o2pl.InvalidInput, match="expected lists"):
        evaluate_lists(alone, "uniform")
    shorter = evaluate_lists(log[:5], "uniform")
    assert any("2 to 3 slots" in warning for warning in shorter.warnings)
