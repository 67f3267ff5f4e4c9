"""When schedules are due, by a plain loop; and that learners solve just then, and count it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import o2pl
from o2pl import Member
from o2pl.engine.schedules import NEAR_EXACT, Schedule, as_schedule
from o2pl.objectives import Outcome


def due(schedule: Schedule, rounds: int) -> list[int]:
    at, found = schedule.after(0), []
    while at <= rounds:
        found.append(at)
        at = schedule.after(at)
    return found


def test_near_exact_solves_every_round_at_first_and_when_the_history_has_grown_by_a_twentieth_later() -> None:
    at = due(NEAR_EXACT, 1_000_000)
    assert at[:140] == list(range(1, 141))
    gaps, sizes = np.diff(at), np.array(at[:-1])
    assert (gaps <= 0.05 * sizes + 1).all()
    assert (gaps[sizes > 20_000] > 0.047 * sizes[sizes > 20_000]).all()
    assert len(at) < 500


@pytest.mark.parametrize("name", ["geometric", "near-exact", "exact"])
@pytest.mark.parametrize("policy", ["linear", "actionwise"])
def test_effort_counts_solves_and_survives_a_file(name: str, policy: str, tmp_path: Path) -> None:
    generator, rounds = np.random.default_rng(0), 40
    learner = o2pl.O2PL(3 if policy == "linear" else None, policy=policy, schedule=name, random_state=0)
    for _ in range(rounds):
        context = generator.normal(size=(3, 2) if policy == "actionwise" else 2)
        action, propensity = learner.act(context)
        learner.update(context, action, float(action == 1), propensity)
    solves, evaluations = learner.effort_
    assert solves == len(due(as_schedule(name), rounds))
    assert evaluations > solves
    learner.save(tmp_path / "learner.o2pl")
    assert o2pl.load(tmp_path / "learner.o2pl").effort_ == (solves, evaluations)


def test_a_replay_counts_its_steps() -> None:
    learner = o2pl.O2PL(2, policy="linear", schedule="replay", random_state=0)
    learner.run((np.ones((80, 1)), np.ones((80, 2))))
    assert learner.effort_ == (7, 7 * 5)  # after 50, 55, …, 80 rows, five steps each


@pytest.mark.parametrize("limit", [{"window": 100}, {"half_life": 10.0}, {"window": 100, "half_life": 1e6}])
def test_what_a_forgetting_schedule_learns_from(limit: dict[str, float]) -> None:
    """The last 100 rows, or ten half-lives; it waits as long as a history of the rows that count, by their weights."""
    schedule = o2pl.Geometric(**limit)
    assert [schedule.start(n) for n in (0, 1, 99, 100, 101, 5000)] == [0, 0, 0, 0, 1, 4900]
    weights = schedule.weights(250)
    counting = 100 if weights is None else round(min(weights.sum(), 100))
    assert [schedule.after(n) - n for n in (100, 1000, 10**6)] == [o2pl.Geometric().after(counting) - counting] * 3
    if "half_life" not in limit:
        assert weights is None
    else:
        assert weights is not None
        assert len(weights) == 100
        np.testing.assert_allclose(weights, [0.5 ** ((99 - s) / limit["half_life"]) for s in range(100)])


def test_what_a_replay_learns_from() -> None:
    schedule = o2pl.Replay(window=30, every=7, warm_start=20)
    assert [schedule.start(n) for n in (0, 30, 31, 100)] == [0, 0, 1, 70]
    assert due(schedule, 50) == [20, 27, 34, 41, 48]
    assert schedule.weights(100) is None


@pytest.mark.parametrize("bad", [{"window": 0}, {"window": 2.5}, {"half_life": 0.0}, {"growth": 0.5}])
def test_bad_settings_are_named(bad: dict[str, float]) -> None:
    with pytest.raises(o2pl.InvalidInput, match=f"^{next(iter(bad))}: found"):
        o2pl.Geometric(**bad)


def test_more_steps_often_come_closer_to_solving_every_round_than_few_steps_seldom() -> None:
    """How far decisions are from those of a learner solved to convergence on the same log, at moments of three runs.

    The objective is convex, so that where a solve ends is not decided by the last bits of where it began.
    """
    convex, apart = Member(objective=Outcome()), {"near-exact": 0.0, "geometric": 0.0}
    for seed in (1, 2, 3):
        generator = np.random.default_rng(seed)
        x = generator.normal(size=(600, 8)).astype(np.float32)
        weights = generator.normal(size=(8, 4))
        rewards = (generator.random((600, 4)) < 1 / (1 + np.exp(-x @ weights))).astype(float)
        for name in apart:
            learner = o2pl.Bandit(4, policy=convex, changes=None, schedule=name, random_state=0)
            for start in range(0, 600, 60):
                learner.run((x[start : start + 60], rewards[start : start + 60]))
                solved = o2pl.Bandit(4, policy=convex, changes=None, random_state=0).fit(learner.log_)
                ours, best = (each.predict_proba(x) for each in (learner, solved))
                apart[name] += float(np.abs(ours - best).mean())
    assert apart["near-exact"] < 0.7 * apart["geometric"]


def test_a_long_history_waits_longer() -> None:
    schedule = o2pl.Geometric(growth=1.1, ease=1.0, later=1000.0, longest=1.5)
    growth = [schedule.after(n) / n for n in (100, 1000, 3000, 100_000)]
    np.testing.assert_allclose(growth, [1.11, 1.2, 1.4, 1.5], atol=0.005)
    assert o2pl.Geometric(growth=2.0, longest=1.0).after(10**6) == o2pl.Geometric(growth=2.0, later=1e18).after(10**6)
