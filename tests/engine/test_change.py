"""Worlds that change, and worlds that only seem to."""

from __future__ import annotations

import copy
import json
import math
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl import Bandit, Change, Geometric, Member
from o2pl.engine.change import Changed, Watch
from o2pl.engine.member import LINEAR, QUADRATIC
from o2pl.features import Hashed, Standardise
from o2pl.objectives import Outcome
from o2pl.policies import ActionWise
from o2pl.protocols import Floats

K = 3
SHORT = Change(memory=60, threshold=8.0)  # keeps 30 rows, blocks of 20, changes more than 120 rows apart
POLICIES = ["union", "linear", "quadratic", "hashed", "actionwise", "hashed actionwise"]


def reversing(rounds: int, at: int, seed: int = 0) -> tuple[Any, Any]:
    """The best action is the largest of three numbers; from row `at` on, the smallest. Contexts, rewards [T, K]"""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rounds, K)).astype(np.float32)
    signs = np.where(np.arange(rounds) < at, 1, -1)[:, None]
    return x, (np.argmax(signs * x, axis=1)[:, None] == np.arange(K)).astype(float)


def seen_by(policy: str, row: Any) -> Any:
    if policy == "hashed":
        return {f"x{i}": float(value) for i, value in enumerate(row)}
    if policy == "hashed actionwise":
        return [{"x": float(value)} for value in row]
    return row[:, None] if policy == "actionwise" else row


def play(learner: Any, policy: str, world: tuple[Any, Any], rounds: range) -> Any:
    """The loop: decisions and rewards."""
    x, rewards = world
    decisions, paid = [], []
    for t in rounds:
        context = seen_by(policy, x[t])
        action, propensity = learner.act(context)
        learner.update(context, action, rewards[t, action], propensity)
        decisions.append((action, propensity))
        paid.append(rewards[t, action])
    return decisions, np.array(paid)


def level_world(rounds: int, height: float, period: int, seed: int) -> tuple[Any, Any]:
    """Rewards of all actions rise and fall by ± `height` of their log-odds; which action is best stays."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rounds, 5)).astype(np.float32)
    odds = x @ generator.normal(size=(5, 4)) * 0.67 - 0.5
    odds += height * np.sin(2 * np.pi * np.arange(rounds) / period)[:, None]
    return x, (generator.random((rounds, 4)) < 1 / (1 + np.exp(-odds))).astype(float)


# -- worlds


@pytest.mark.parametrize("seed", range(3))
def test_a_reversal_is_noticed_and_recovered_from(seed: int) -> None:
    world = reversing(2400, 1200, seed)
    watching, blind = Bandit(K, random_state=seed), Bandit(K, changes=None, random_state=seed)
    late = [learner.run(world).rewards[1400:].mean() for learner in (watching, blind)]
    assert late[0] > 0.9
    assert late[1] < late[0] - 0.15
    (change,) = watching.changes_
    assert 1200 < change.row <= 1500
    assert change.base == change.row - 150
    assert change.evidence > 15
    assert len(watching.log_) == 2400  # all rows are kept
    assert blind.changes_ == []


@pytest.mark.parametrize("policy", POLICIES)
def test_every_class_of_policies_notices(policy: str) -> None:
    learner = Bandit(None if "actionwise" in policy else K, policy=policy, changes=SHORT, random_state=0)
    _, paid = play(learner, policy, reversing(900, 450), range(900))
    assert 450 < learner.changes_[0].row < 600
    assert paid[300:450].mean() > 0.75
    assert paid[-150:].mean() > 0.75


@pytest.mark.parametrize("chances", [(0.0, 1.0), (0.1, 0.5), (0.01, 0.1)])
@pytest.mark.parametrize("seed", range(3))
def test_where_nothing_changes_nothing_is_noticed(seed: int, chances: tuple[float, float]) -> None:
    x, best = reversing(3000, 3000, seed)
    rewards = (np.random.default_rng(seed).random(best.shape) < np.where(best > 0, chances[1], chances[0])).astype(
        float
    )
    learner = Bandit(K, random_state=seed)
    learner.run((x, rewards))
    assert learner.changes_ == []


@pytest.mark.parametrize("seed", range(2))
def test_day_and_night_are_no_change(seed: int) -> None:
    """Levels that stood still would notice one every half day."""
    learner = Bandit(4, random_state=seed)
    learner.run(level_world(6000, 1.5, 2000, seed))
    assert learner.changes_ == []


# -- what a change does


def at_the_change() -> tuple[Any, Any, int]:
    """A learner one row before it notices, its world, and that row."""
    world = reversing(700, 400)
    learner = Bandit(K, changes=SHORT, random_state=0)
    learner.run(world)
    row = learner.changes_[0].row
    learner = Bandit(K, changes=SHORT, random_state=0)
    play(learner, "union", world, range(row - 1))
    return learner, world, row


def test_members_schedule_counts_and_weights_begin_anew() -> None:
    learner, world, row = at_the_change()
    engine = learner._engine
    before = engine.members[engine.watch.place].params.copy()
    assert engine.base == 0
    play(learner, "union", world, range(row - 1, row))
    (change,) = learner.changes_
    assert (change.row, change.base, engine.base) == (row, row - 30, row - 30)
    # linear members have joined, quadratic ones need 100 rows; the monitor stays as it is
    assert engine.gains.tolist() == [0.0, -3.0, -1.0, -3.0]
    assert [member.joins for member in engine.present] == [0, 0, 0, 30]
    assert [member.base for member in engine.members] == [*3 * [row - 30], 0, row - 30, row - 30]
    assert min(member.checkpoint for member in engine.present) == row - 30 + Geometric().after(30)
    powers = np.exp(engine.gains * 3 / math.sqrt(31))
    np.testing.assert_allclose(engine.acting[4:8], powers / powers.sum())
    plays = np.bincount(learner.log_.actions[row - 30 :], minlength=K)
    mean = np.mean([0, 1, *learner.log_.rewards[row - 30 :]])
    assert engine.mean_reward.value == pytest.approx(mean)
    h = engine.curvature.state[2]  # of the rows since the base alone: at most a quarter each
    assert (engine.curvature.base, engine.curvature.rows) == (row - 30, row)
    assert (h <= plays / 4).all()
    assert (h > 0).tolist() == (plays > 0).tolist()
    tally = engine.log.tally(engine.learned).since(engine.forgotten)
    assert tally.plays.tolist() == plays.tolist()
    rewards = np.bincount(learner.log_.actions[row - 30 :], learner.log_.rewards[row - 30 :], K)
    np.testing.assert_allclose(tally.rewards, rewards)
    assert np.abs((engine.members[engine.watch.place].params - before)[:-1]).max() < 1
    # they have learned from the rows since the base, and from no others
    anew = Bandit(K, policy="linear", changes=None, random_state=0)
    anew._adopt(anew._make_engine(anew._new_encoder(width=K), None))
    for one, other in zip(anew._engine.members, engine.members, strict=False):
        one.seen.state = other.seen.state
        rows = learner.log_[row - 30 :]
        one.learn(rows, 0, None, {})
        np.testing.assert_array_equal(one.params, other.params)
    play(learner, "union", world, range(row, row + 80))
    assert len(engine.gains) == 6


@pytest.mark.parametrize("early", [25, 1, 0, -1, -25])
def test_a_learner_goes_on_bit_for_bit_around_a_change(early: int, tmp_path: Path) -> None:
    _, world, row = at_the_change()
    learner = Bandit(K, changes=SHORT, random_state=0)
    play(learner, "union", world, range(row - early))
    learner.save(tmp_path / "learner.o2pl")
    others = [o2pl.load(tmp_path / "learner.o2pl"), copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))]
    expected, _ = play(learner, "union", world, range(row - early, row + 150))
    assert learner.changes_
    for other in others:
        assert play(other, "union", world, range(row - early, row + 150))[0] == expected
        assert other.changes_ == learner.changes_


def test_a_run_is_the_loop_across_a_change() -> None:
    world = reversing(700, 400)
    looped, ran = Bandit(K, changes=SHORT, random_state=0), Bandit(K, changes=SHORT, random_state=0)
    decisions, _ = play(looped, "union", world, range(700))
    run = ran.run(world)
    assert [*zip(run.actions.tolist(), run.propensities.tolist(), strict=True)] == decisions
    assert len(looped.changes_) == 1
    (header, arrays), (other_header, other_arrays) = looped._engine.state(), ran._engine.state()
    assert header == other_header
    for name in arrays.keys() - {"log.ids"}:  # every decision has an id of its own
        np.testing.assert_array_equal(arrays[name], other_arrays[name])


def test_several_changes_are_noticed() -> None:
    x, first = reversing(1500, 1500)
    rewards = np.where((np.arange(1500) // 500 % 2 == 0)[:, None], first, reversing(1500, 0)[1])
    learner = Bandit(K, changes=SHORT, random_state=0)
    assert learner.run((x, rewards)).rewards[-200:].mean() > 0.8
    assert [change.row // 500 for change in learner.changes_] == [1, 2]


# -- batches


def logged(world: tuple[Any, Any], rows: slice) -> tuple[Any, Any, Any, Any]:
    x, rewards = world
    actions = np.random.default_rng(5).integers(K, size=len(x))
    return x[rows], actions[rows], rewards[np.arange(len(x)), actions][rows], np.full(len(x), 1 / K)[rows]


def test_a_batch_is_watched_block_by_block_with_members_as_they_were_before_it() -> None:
    """The change lies in the first of three batches: the members learn of it there, and the second shows who is right.

    The base is before the block that told, so that the rest of the batch is learned from.
    """
    world = reversing(2400, 600)
    learner = Bandit(K, changes=SHORT, random_state=0)
    for start in (0, 800, 1600):
        learner.partial_fit(*logged(world, slice(start, start + 800)))
    (change,) = learner.changes_
    assert 800 < change.row < 1000
    assert (change.row - 800) % 20 == 0
    assert np.mean(learner.predict(world[0]) == np.argmin(world[0], axis=1)) > 0.9


def test_an_offline_fit_learns_from_the_whole_log_but_the_monitor_from_what_is_recent() -> None:
    world = reversing(1600, 800)
    learner = Bandit(K, changes=SHORT).fit(*logged(world, slice(None)))
    engine = learner._engine
    assert learner.changes_ == []
    assert engine.base == 0
    x, of_monitor = world[0], engine.decider.members[engine.watch.place]
    scores = of_monitor.policy.scores(of_monitor.params, of_monitor.features.transform(of_monitor.seen, x))
    assert np.mean(scores.argmax(axis=1) == np.argmin(x, axis=1)) > 0.9


# -- which learners watch


@pytest.mark.parametrize("policy", POLICIES)
def test_without_the_monitor_it_is_the_learner_of_its_members(policy: str) -> None:
    members = Bandit._classes_of_policies[policy]
    world = reversing(260, 260)
    learners = [Bandit(K, policy=policy, changes=each, random_state=0) for each in (None, "auto")]
    decisions = [play(learner, policy, world, range(260))[0] for learner in learners]
    blind, watching = (learner._engine for learner in learners)
    assert blind.watch is None
    assert list(blind.spec.members) == list(members)
    assert len(watching.spec.members) == len(members) + 1
    assert decisions[0][:150] == decisions[1][:150]  # it joins after 150 rows
    assert len(watching.gains) == len(blind.gains) + 1
    assert decisions[0] != decisions[1]


@pytest.mark.parametrize(
    ("settings", "watches"),
    [
        ({}, True),
        ({"schedule": "exact"}, True),
        ({"schedule": "replay"}, False),
        ({"schedule": Geometric(half_life=500)}, False),
        ({"schedule": Geometric(window=1000)}, False),
        ({"policy": Member(objective=Outcome(), schedule=Geometric(window=1000))}, False),
        ({"schedule": Geometric(half_life=500), "changes": Change()}, True),
        ({"changes": None}, False),
    ],
)
def test_learners_that_forget_do_not_watch_unless_told(settings: dict[str, Any], watches: bool) -> None:
    learner = Bandit(K, **settings)
    learner.act([1.0, 2.0])
    assert (learner._engine.watch is not None) == watches


def test_the_monitor_reads_the_contexts_of_the_members_and_joins_in_order() -> None:
    objective = Outcome(False, 3.0)
    late = (Member(QUADRATIC, objective=Outcome()), Member(QUADRATIC, objective=Outcome(), joins=151))
    members, place = Change().watch(late, sets=False)
    assert place == 1
    assert (members[1].features, members[1].objective, members[1].joins) == (LINEAR, objective, 150)
    assert Change().monitor(Member(Hashed(bits=9)), sets=False).features == Hashed(bits=9)
    sets = Change().monitor(Member(QUADRATIC, ActionWise()), sets=True)
    assert (sets.features, sets.policy) == (Standardise(), ActionWise())
    schedule = members[1].schedule
    assert schedule is not None
    assert [schedule.after(n) - n for n in (150, 2500, 5000, 10**6)] == [100, 100, 200, 300]
    assert schedule.start(5000) == 3800


def test_bad_settings_are_refused() -> None:
    for wrong in ("always", 3, True):
        with pytest.raises(o2pl.InvalidInput, match=r'changes: found .*, expected "auto", a Change or None'):
            Bandit(K, changes=wrong).act([1.0])
    with pytest.raises(o2pl.InvalidInput, match="memory: found 0"):
        Change(memory=0)
    with pytest.raises(o2pl.InvalidInput, match="threshold: found -1"):
        Change(threshold=-1)


def test_a_file_from_before_there_were_changes_is_a_learner_without_a_monitor(tmp_path: Path) -> None:
    world, path, older = reversing(300, 300), tmp_path / "new.o2pl", tmp_path / "older.o2pl"
    learner = Bandit(K, changes=None, random_state=0)
    play(learner, "union", world, range(200))
    learner.save(path)
    with zipfile.ZipFile(path) as new, zipfile.ZipFile(older, "w") as old:
        for name in new.namelist():
            content = new.read(name)
            if name == "header.json":
                header = json.loads(content)
                del header["params"]["changes"]
                content = json.dumps(header).encode()
            old.writestr(name, content)
    loaded = o2pl.load(older)
    assert loaded.changes is None
    assert play(loaded, "union", world, range(200, 300))[0] == play(learner, "union", world, range(200, 300))[0]


# -- the equations


def test_evidence_level_and_slope_are_those_of_the_equations() -> None:
    generator = np.random.default_rng(0)
    change = Change(memory=30, threshold=1e9)
    watch, (D, c, d), H = Watch(change, 1), np.zeros((3, 3)), np.zeros((3, 2, 2))
    for block in range(8):
        rows = int(generator.integers(1, 11))
        z = generator.normal(size=(3, rows)) + np.array([[1.0], [5.0], [-3.0]])
        rewards = generator.random(rows)
        watch.observe(z, rewards, 10 * block)
        for i in range(3):
            inputs = np.stack([np.ones(rows), z[i]])
            m = 1 / (1 + np.exp(-c[i] - (1 + d[i]) * z[i]))
            D[i] = D[i] * math.exp(-rows / 30) + np.sum(rewards * np.log(m) + (1 - rewards) * np.log(1 - m))
            H[i] = H[i] * math.exp(-rows / 10) + inputs * m * (1 - m) @ inputs.T
            pulled, bent = inputs @ (rewards - m), H[i] + np.eye(2)
            turned = min(max(np.linalg.solve(bent, pulled)[1], -0.1), 0.1)
            c[i] += min(max((pulled[0] - bent[0, 1] * turned) / bent[0, 0], -1), 1)
            d[i] += turned
        np.testing.assert_allclose(watch.seen, [D, c, d, H[:, 0, 0], H[:, 0, 1], H[:, 1, 1]])


def test_a_slope_stays_within_its_limits() -> None:
    """A member that is surely wrong is turned by .1 a block, never beyond -1: it must remain visible."""
    state: Floats = np.zeros((6, 1))
    change, z = Change(memory=30, threshold=1e9), np.array([[3.0, -3.0] * 5])
    slopes = []
    for _ in range(15):
        state = change.observe(state, z, np.array([0.0, 1.0] * 5))
        slopes.append(state[2, 0])
    np.testing.assert_allclose(slopes, [max(-0.1 * block, -1.0) for block in range(1, 16)])


def test_what_is_a_change() -> None:
    """The monitor must be ahead of all others by more than the threshold, long enough after the last change."""
    watch = Watch(Change(memory=4, threshold=1.0), 1)  # more than 8 rows apart, 2 are kept
    right, wrong, rewards = np.full((1, 1), 3.0), np.full((1, 1), -3.0), np.ones(1)
    assert not watch.observe(wrong, rewards, 100)  # the monitor has not joined
    assert not watch.observe(np.concatenate([wrong, right, right]), rewards, 100)  # another one is as good
    watch = Watch(Change(memory=4, threshold=1.0), 1)
    assert not watch.observe(np.concatenate([wrong, right]), rewards, 8)  # too early
    watch = Watch(Change(memory=4, threshold=1.0), 1)
    assert not watch.observe(np.concatenate([right, wrong]), rewards, 100)
    watch = Watch(Change(memory=4, threshold=1.0), 1)
    assert watch.observe(np.concatenate([wrong, right]), rewards, 9)
    assert watch.found == [Changed(9, 7, pytest.approx(3.0))]
    assert not watch.observe(np.concatenate([wrong, right]), rewards, 15)
    assert watch.observe(np.concatenate([wrong, right]), rewards, 16)
    assert watch.base == 14


def test_a_newcomer_is_neither_ahead_nor_behind() -> None:
    watch = Watch(Change(threshold=1e9), 1)
    z, rewards = np.array([[-3.0], [3.0]]), np.ones(1)
    watch.observe(z, rewards, 1)
    best = watch.seen[0, 0]
    watch.observe(np.concatenate([z, z[:1]]), rewards, 2)
    kept = math.exp(-1 / 300)
    assert watch.seen[0, 2] == pytest.approx(kept * best + math.log(1 / (1 + math.exp(3.0))))


def test_members_with_many_weights_that_are_too_sure_are_no_change() -> None:
    """65 weights for each of ten actions: without a slope the long members lose to the short memory again and again."""
    generator = np.random.default_rng(100)
    x = generator.normal(size=(3000, 64)).astype(np.float32)
    odds = x @ generator.normal(size=(64, 10)) / 4
    learner = Bandit(10, random_state=0)
    learner.run((x, (generator.random(odds.shape) < 1 / (1 + np.exp(-odds))).astype(float)))
    assert learner.changes_ == []
