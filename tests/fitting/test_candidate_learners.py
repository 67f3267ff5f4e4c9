"""Which learners suit which log."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl.errors import InvalidInput
from o2pl.fitting.candidate_learners import (
    Candidate,
    candidates_for,
    guessed_range_for_candidate_learners,
    named_candidate_learners,
    some_candidate_learners,
)

RNG = np.random.default_rng(0)
N = 60


def log(contexts: Any, **known: Any) -> Any:
    return o2pl.Interactions(contexts, RNG.integers(2, size=N), RNG.random(N), np.full(N, 0.5), **known)


def names(contexts: Any, **known: Any) -> Any:
    return [one.name for one in candidates_for(log(contexts, **known), (0, 1))]


def test_rows_of_numbers_have_bandit_its_members_and_o2pl_with_two_classes() -> None:
    found = names(RNG.normal(size=(N, 3)))
    assert found[:5] == [
        "bandit",
        "bandit linear competing",
        "bandit linear independent",
        "bandit quadratic competing",
        "bandit quadratic independent",
    ]
    settings = [f"λ={penalty} l2={l2}" for penalty in ("0.1", "1") for l2 in ("0.1", "10")]
    assert found[5:] == [f"o2pl {kind} {each}" for kind in ("linear", "quadratic") for each in settings]


def test_dictionaries_are_hashed_and_flat_ones_are_columns_too() -> None:
    flat = names([{"age": float(k), "city": "Rome"} for k in range(N)])
    assert "bandit" in flat
    assert "bandit hashed" in flat
    nested = names([{"user": {"age": k}} for k in range(N)])
    assert all("hashed" in name for name in nested)


def test_action_sets_of_dictionaries_and_of_numbers() -> None:
    pages = [({"user": "ann"}, [{"kind": "news"}, {"kind": "sport"}]) for _ in range(N)]
    assert all("hashed actionwise" in name for name in names(pages))
    sets = o2pl.ActionSets.of([RNG.normal(size=(2, 3)) for _ in range(N)])
    found = names(sets)
    assert all("actionwise" in name and "hashed" not in name for name in found)
    offers = [(RNG.normal(size=2), RNG.normal(size=(2, 3))) for _ in range(N)]
    assert all(" items" in name for name in names(offers))
    chosen = o2pl.fit(log(offers, reward_range=(0, 1)))
    assert "items" in str(chosen)


def test_of_many_columns_no_products_are_made() -> None:
    found = names(RNG.normal(size=(N, 65)))
    assert found[:3] == ["bandit linear", "bandit linear competing", "bandit linear independent"]
    assert not any("quadratic" in name for name in found)


def test_frames_with_many_words_are_hashed_too() -> None:
    pa = pytest.importorskip("pyarrow")
    few = pa.table({"city": ["Rome", "Oslo"] * (N // 2)})
    many = pa.table({"city": [f"c{k}" for k in range(N)]})
    assert not any("hashed" in name for name in names(few))
    assert any("hashed" in name for name in names(many))


def test_real_valued_actions_have_gaussians_around_them() -> None:
    actions = RNG.normal(5, 2, N)
    log = o2pl.Interactions(RNG.normal(size=(N, 2)), actions, RNG.random(N), np.full(N, 0.2))
    found = candidates_for(log, (0, 1))
    assert all(isinstance(one.learner, o2pl.GaussianO2PL) for one in found)
    assert all(one.learner.centre == pytest.approx(actions.mean()) for one in found)


def test_candidates_are_new_each_time_and_know_range_actions_and_seed() -> None:
    found = candidates_for(log(RNG.normal(size=(N, 3)), n_actions=4), (-1, 2), seed=7)
    for one in found:
        made = one.made()
        assert made is not one.learner
        assert (made.n_actions, made.reward_range, made.random_state) == (4, (-1, 2), 7)


def test_some_are_picked_by_the_beginnings_of_their_names() -> None:
    every = candidates_for(log(RNG.normal(size=(N, 3))), (0, 1))
    assert [one.name for one in some_candidate_learners(every, ["bandit linear"])] == [
        "bandit linear competing",
        "bandit linear independent",
    ]
    with pytest.raises(InvalidInput, match=r"found 'bandti'.*did you mean 'bandit'"):
        some_candidate_learners(every, ["bandti"])


def test_learners_of_ones_own_are_called_by_their_settings() -> None:
    assert [one.name for one in named_candidate_learners([o2pl.Bandit(2), o2pl.O2PL(penalty=3.0)])] == [
        "Bandit(n_actions=2)",
        "O2PL(penalty=3.0)",
    ]
    mine = Candidate("mine", o2pl.Bandit())
    assert named_candidate_learners([mine]) == (mine,)
    with pytest.raises(InvalidInput, match="without duplicates"):
        named_candidate_learners([o2pl.Bandit(), o2pl.Bandit()])
    with pytest.raises(InvalidInput, match="found str, expected learners"):
        named_candidate_learners(["bandit"])


def test_the_range_of_rewards_is_guessed() -> None:
    assert guessed_range_for_candidate_learners([0.0, 0.5]) == (0, 1)
    assert guessed_range_for_candidate_learners([-1.0, 3.0]) == (-1, 3)
    assert guessed_range_for_candidate_learners([5.0, 5.0]) == (5, 6)
