"""The guard: a bad model is rolled back, a good one is not."""

from __future__ import annotations

import io
import logging
from typing import Any

import numpy as np
import pytest
from tests.serving.worlds import decide, visits

from o2pl.engine.decider import Decider
from o2pl.learners import load
from o2pl.serving import policy_guard
from o2pl.serving.policy_guard import Guard
from o2pl.serving.reward_join import join
from o2pl.serving.settings import LearningMode
from o2pl.serving.store import Store
from o2pl.serving.trainer import Trainer

LATER = 1e12  # when all wait times are over


def opposite(body: bytes) -> bytes:
    """The policy that prefers what this one avoids."""
    decider: Any = load(io.BytesIO(body))
    members = [member._replace(params=-member.params) for member in decider.members]
    return Decider(members, decider.acting, decider.sharpness, decider.encoder, None, decider.names).to_bytes()


def good_and_bad(store: Store, g: Any, **changes: Any) -> None:
    """Versions 1 (good) and 2 (bad, served)."""
    store.add_application("page")
    decide(store, visits(400, g), g, "first", **changes)
    Trainer(store).step(last=True)
    store.add_model(1, opposite(store.model_body(1, 1)), 400, 400)


def look(store: Store, guarding: Guard, g: Any, batches: int, name: str, **changes: Any) -> int:
    """Events until it acts; 0: it does not."""
    for batch in range(batches):
        decide(store, visits(100, g), g, f"{name}{batch}", **changes)
        application = store.application("page")
        join(store, application, LATER)
        if guarding.look(application):
            return 100 * (batch + 1)
    return 0


def test_a_model_that_is_worse_than_uniform_is_withdrawn(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    g = np.random.default_rng(0)
    good_and_bad(store, g)
    guarding = Guard(store, 1)
    with caplog.at_level(logging.ERROR, "o2pl.serving"):
        assert 0 < look(store, guarding, g, 40, "bad") <= 4000
    two, one = store.model_versions(1)
    assert one.withdrawn is None
    assert "the policy is worse than uniform decisions, with 97.5% confidence at any time, by at least" in two.withdrawn
    assert store.served_version(1) == 0  # nothing is known to be good yet
    assert "guard rolled back" in caplog.text
    assert store.application("page").settings.learning_mode is LearningMode.ONLINE


def test_decisions_of_a_control_group_are_not_the_policys(store: Store) -> None:
    """They are an older version's, and say nothing about the served one."""
    g = np.random.default_rng(0)
    good_and_bad(store, g)
    guarding = Guard(store, 1)
    assert look(store, guarding, g, 40, "bad", control=True) == 0
    assert guarding.seen.rows == 0


def test_a_good_model_stays_and_is_what_is_rolled_back_to(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_guard, "_EPOCH", 1000)
    g = np.random.default_rng(1)
    good_and_bad(store, g)
    store.withdraw(1, 2, "by hand")
    guarding = Guard(store, 1)
    assert look(store, guarding, g, 25, "good") == 0
    assert store.served_version(1) == 1
    store.withdraw(1, 2, None)
    guarding = Guard(store, 1)  # a restart forgets nothing
    assert guarding.seen.epoch == 2
    assert look(store, guarding, g, 40, "bad") > 0
    assert store.served_version(1) == 1
    assert store.application("page").pinned == 1


def test_with_a_baseline_the_applications_own_choice_is_answered(store: Store) -> None:
    g = np.random.default_rng(2)
    good_and_bad(store, g)
    assert look(store, Guard(store, 1), g, 60, "bad", baseline=0) > 0
    assert "worse than the baseline" in store.model_versions(1)[0].withdrawn
    assert store.application("page").settings.learning_mode is LearningMode.APPRENTICE


def test_a_model_that_is_as_good_as_uniform_is_hardly_ever_withdrawn(store: Store) -> None:
    store.add_application("page")
    store.add_model(1, b"uniform", 0, 0)
    g, acted = np.random.default_rng(3), 0
    made = visits(1500, g)
    for number in range(20):
        decide(store, made, g, f"run{number}", version=0, model_version=1)
        join(store, store.application("page"), LATER)
        fresh = Guard(store, 1)
        fresh.seen = policy_guard.Watched(decision=1500 * number)
        acted += fresh.look(store.application("page"))
    assert acted <= 3  # at most 1 of 20 on average; 4 or more have a chance of 1.6 %


def test_rewards_that_arrive_low_ones_last_withdraw_nothing(store: Store) -> None:
    """The policy and the baseline are worth the same; outcomes are written by value, and counted by decision."""
    store.add_application("page")
    store.add_model(1, b"uniform", 0, 0)
    g = np.random.default_rng(5)
    decide(store, visits(1500, g), g, "early", version=0, model_version=1)
    join(store, store.application("page"), 0.0, waits=False)
    watching = Guard(store, 1)
    assert not watching.look(store.application("page"))
    assert watching.seen.rows == 0  # no wait time is over: nothing is judged yet
    join(store, store.application("page"), LATER)
    assert not watching.look(store.application("page"))
    assert watching.seen.rows == 1500
