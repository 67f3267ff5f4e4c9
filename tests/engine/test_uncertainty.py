from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl import _core
from o2pl.engine.compiled import Compiled
from o2pl.engine.uncertainty import curvature_for
from o2pl.features import Hashed
from o2pl.special import expit

SHIFT, SCALE, CLIP = np.array([0.5, -1.0], np.float32), np.array([2.0, 0.25], np.float32), 1.5


def slow(
    X: np.ndarray, actions: np.ndarray, h: np.ndarray, centre: np.ndarray, K: int, x: np.ndarray
) -> tuple[Any, Any]:
    """Return variance and optimism in context x, as the equations say."""
    d, prior = X.shape[1], min(1.0, 8 / K)
    variance, optimism = np.empty(K), np.empty(K)
    for a in range(K):
        own = actions == a
        A = prior + h[own].sum()
        B = prior + (h[own, None] * (X[own] - centre) ** 2).sum(axis=0)
        c = (1 - 2 / K) * min(1, 2 / d) / d * ((x - centre) ** 2 / B).sum()
        variance[a] = 1 / A + c
        optimism[a] = 0.6 * np.log(1 + len(X)) * max(0, 1 - 4 * h.mean()) * np.sqrt(c)
    return variance, optimism


@pytest.mark.parametrize("K", [2, 3, 10])
def test_variances_are_those_of_the_equations(K: int) -> None:
    generator = np.random.default_rng(K)
    X = generator.normal(size=(50, 2)).astype(np.float32)
    phi = np.clip((X.astype(float) - SHIFT) * SCALE, -CLIP, CLIP)
    actions, h = generator.integers(0, K, 50), generator.uniform(0, 0.25, 50)
    sums, plan = _core.Curvature(K, 2), (SHIFT, SCALE, CLIP)
    sums.begin(7, plan, X)
    for part in (slice(0, 20), slice(20, 50)):
        sums.add(plan, X[part], actions[part], h[part])
    assert (sums.base, sums.rows, sums.next) == (7, 57, 65)
    found = sums.uncertainty(plan)
    for x, own in zip(X[:5], phi[:5], strict=True):
        variance, optimism = slow(phi, actions, h, phi.mean(axis=0), K, own)
        np.testing.assert_allclose(found.at(x[None])[0][0], variance, rtol=1e-6)
        np.testing.assert_allclose(found.at(x[None])[1][0], optimism, rtol=1e-6)
    again = _core.Uncertainty.from_parts(*found.parts)
    np.testing.assert_array_equal(again.at(X)[0], found.at(X)[0])
    other = _core.Curvature(K, 2)
    other.load(sums.state)
    np.testing.assert_array_equal(other.uncertainty(plan).at(X)[1], found.at(X)[1])
    with pytest.raises(ValueError, match="an action that is not there"):
        sums.add(plan, X[:1], np.array([K]), h[:1])


def test_variances_of_words() -> None:
    """Entries of a row are its inputs; a word that only one action has met is certain for that action alone."""
    K, slots = 3, np.array([0, 1, 2, 0, 1, 0, 2], np.int32)
    values, offsets = np.array([1, 1, -2, 1, 1, 1, 0.5], np.float32), np.array([0, 3, 5, 7])
    actions, h = np.array([0, 1, 0]), np.array([0.1, 0.2, 0.25])
    sums = _core.Curvature(K, 0)
    sums.begin_slots(0, 3)
    sums.add_slots(slots, values, offsets, 3, actions, h)
    variance, optimism = sums.uncertainty((np.empty(0, np.float32), np.empty(0, np.float32), 0.0)).at_slots(
        slots, values, offsets
    )
    B = np.ones((3, K))
    B[1] += [0.1, 0.2, 0]
    B[2] += [0.1 * 4 + 0.25 * 0.25, 0, 0]
    A = 1 + np.array([0.35, 0.2, 0])
    for row, entries in enumerate(([(1, 1.0), (2, -2.0)], [(1, 1.0)], [(2, 0.5)])):
        d = len(entries)
        c = (1 - 2 / K) * min(1, 2 / d) / d * sum(value**2 / B[slot] for slot, value in entries)
        np.testing.assert_allclose(variance[row], 1 / A + c, rtol=1e-12)
        np.testing.assert_allclose(
            optimism[row], 0.6 * np.log(4) * max(0, 1 - 4 * h.mean()) * np.sqrt(c), rtol=1e-12, atol=1e-15
        )
    with pytest.raises(ValueError, match="a slot that is not there"):
        sums.add_slots(slots, values, offsets, 2, actions, h)
    with pytest.raises(ValueError, match="the constant first"):
        sums.add_slots(slots, values, np.array([0, 0, 5, 7]), 3, actions, h)


def slow_of_set(rows: np.ndarray, played: np.ndarray, h: np.ndarray) -> np.ndarray:
    B = 3 + (h[:, None] * played**2).sum(axis=0)
    entries = (rows != 0).sum(axis=1)
    return np.minimum(1, 2 / np.maximum(entries, 1)) / np.maximum(entries, 1) * (rows**2 / B).sum(axis=1)


def test_variances_of_the_actions_of_a_set() -> None:
    generator = np.random.default_rng(0)
    played, rows = (generator.normal(size=(n, 4)) * (generator.random((n, 4)) < 0.6) for n in (50, 7))
    rows[2] = 0
    h, nothing = generator.uniform(0, 0.25, 50), np.zeros(50, int)
    sums, plan = _core.Curvature(1, 4), (np.zeros(4, np.float32), np.full(4, 2, np.float32), np.inf)
    sums.begin_slots(0, 50)
    sums.add(plan, played.astype(np.float32), nothing, h)
    variance, optimism = sums.uncertainty(plan).at_each(rows.astype(np.float32))
    np.testing.assert_allclose(variance, slow_of_set(2 * rows, 2 * played, h), rtol=1e-6)
    assert not optimism.any()
    with pytest.raises(ValueError, match="another number of inputs"):
        sums.uncertainty(plan).at_each(np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match="of a fixed number of actions, expected that of action sets"):
        _core.Curvature(2, 4).uncertainty(plan).at_each(rows.astype(np.float32))

    def laid(matrix: np.ndarray) -> tuple[Any, Any, Any]:  # slot 0 is the constant
        full = np.hstack([np.ones((len(matrix), 1)), matrix])
        ends = np.append(0, np.cumsum((full != 0).sum(axis=1)))
        return np.nonzero(full)[1].astype(np.int32), full[full != 0].astype(np.float32), ends

    words = _core.Curvature(1, 0)
    words.begin_slots(0, 50)
    words.add_slots(*laid(played[:, :3]), 4, nothing, h)  # the fourth feature is new
    unsure = words.uncertainty((np.empty(0, np.float32), np.empty(0, np.float32), 0.0))
    known = np.where(np.arange(4) < 3, played, 0)
    np.testing.assert_allclose(unsure.at_each_slots(*laid(rows))[0], slow_of_set(rows, known, h), rtol=1e-6)


def test_rows_are_looked_at_again_when_there_are_four_times_as_many_or_the_world_has_changed() -> None:
    sums = _core.Curvature(2, 1)
    assert sums.is_old(0, 5)
    X = np.ones((10, 1), np.float32)
    plan = np.zeros(1, np.float32), np.ones(1, np.float32), 5.0
    sums.begin(0, plan, X)
    sums.add(plan, X, np.zeros(10, int), np.full(10, 0.2))
    assert [sums.is_old(0, n) for n in (10, 39, 40)] == [False, False, True]
    assert sums.is_old(3, 12)  # more than a fifth is forgotten
    assert not sums.is_old(2, 12)
    assert sums.next == 18
    sums.begin(5, plan, X)
    assert sums.is_old(0, 15)


def test_the_prediction_is_that_of_the_mixture() -> None:
    z, weights = np.array([[0.3, -40.0], [2.0, 50.0]]), np.array([0.25, 0.75])
    m = weights @ expit(np.clip(z, -30, 30))
    np.testing.assert_allclose(_core.mean_curvature(z, weights), m * (1 - m), rtol=1e-12)


def arms(rates: list[float], rounds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rewards = np.random.default_rng(seed).random((rounds, len(rates))) < rates
    return np.ones((rounds, 1)), rewards.astype(float)


def test_two_arms_do_not_lock_in() -> None:
    """With a constant context the better of .5 and .6 is played at the end: in all of 40 runs."""
    wrong = 0
    for seed in range(40):
        actions = o2pl.Bandit(2, random_state=seed).run(arms([0.5, 0.6], 4000, 900 + seed)).actions
        wrong += (actions[-500:] == 0).mean() > 0.5
    assert wrong <= 1


def test_words_do_not_lock_in_either() -> None:
    wrong = 0
    for seed in range(15):
        _, rewards = arms([0.5, 0.65], 1500, 300 + seed)
        learner, last = o2pl.Bandit(2, random_state=seed), []
        for row in rewards:
            decision = learner.act({"page": "home"})
            learner.update(decision, row[decision.action])
            last.append(decision.action)
        wrong += np.mean(last[-300:]) < 0.5
    assert wrong <= 1


OFFERS: dict[str, tuple[Any, ...]] = {
    "numbers": (np.eye(2),),
    "words": ([{"kind": "a"}, {"kind": "b"}],),
    "a user and items": (np.ones(2), np.eye(2)),
}


@pytest.mark.parametrize("kind", OFFERS)
def test_nor_do_action_sets(kind: str) -> None:
    """The same two items, of rates .4 and .6, without ids: the better one is played at the end of all of 15 runs."""
    wrong = 0
    for seed in range(15):
        rewards, learner = np.random.default_rng(seed).random((1000, 2)) < (0.4, 0.6), o2pl.Bandit(random_state=seed)
        for row in rewards:
            decision = learner.act(*OFFERS[kind])
            learner.update(decision, float(row[decision.action]))
        wrong += (learner.log_.actions[-200:] == 0).mean() > 0.5
    assert wrong <= 1


@pytest.mark.parametrize("kind", OFFERS)
def test_what_sets_explore_is_the_same_in_batches_and_files(kind: str, tmp_path: Path) -> None:
    learner = o2pl.Bandit(random_state=0)
    for k in range(60):
        learner.update(learner.act(*OFFERS[kind]), float(k % 3 == 0))
    given = OFFERS[kind][0] if len(OFFERS[kind]) == 1 else o2pl.Offer(*OFFERS[kind])
    said = learner.predict_proba([given])
    assert said.min() > 0.001
    learner.save(tmp_path / "learner.o2pl")
    learner.snapshot().save(tmp_path / "decider.o2pl")
    for again in (o2pl.load(tmp_path / "learner.o2pl"), o2pl.load(tmp_path / "decider.o2pl"), learner.snapshot()):
        np.testing.assert_array_equal(again.predict_proba([given]), said)
        decision = again.act(*OFFERS[kind])
        assert decision.propensity == said[decision.action]
    explained = learner.explain(*OFFERS[kind])
    assert sorted(explained.probabilities.values()) == sorted(said.tolist())
    assert explained.deviation is not None
    assert explained.deviation >= 0.05


@pytest.mark.parametrize("kind", ["numbers", "words", "sets of words"])
def test_compiled_and_composed_parts_look_at_the_same_rows(kind: str) -> None:
    generator = np.random.default_rng(4)
    X: Any = generator.normal(size=(260, 3))
    if kind == "words":
        X = [{"word": f"w{int(abs(x[0]) * 9)}", "size": float(x[1])} for x in X]
    if kind == "sets of words":
        X = [[{"word": f"w{int(abs(x[0]) * 9) + k}", "size": float(x[1])} for k in range(4)] for x in X]
    rewards, found = generator.random((260, 4)) < 0.4, []
    for composed in (False, True):
        learner = o2pl.Bandit(None if kind == "sets of words" else 4, random_state=1)
        learner.act(X[0])
        engine: Any = learner._engine
        if composed:
            engine.compiled = Compiled(None)
        for x, row in zip(X, rewards, strict=True):
            decision = learner.act(x)
            learner.update(decision, float(row[decision.action]))
        assert engine.compiled.learns is not composed
        found.append((engine.log.columns.propensities, engine.curvature.state))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    for own, other in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_array_equal(own, other)


def test_a_file_of_an_older_version_looks_at_all_rows_at_its_next_solve() -> None:
    before, learner = o2pl.Bandit(3, random_state=0), o2pl.Bandit(3, random_state=0)
    contexts = np.random.default_rng(0).normal(size=(200, 2))
    before.run((contexts, np.random.default_rng(1).random((200, 3))))
    header, arrays = before._begun().state()
    learner.act(contexts[0])
    learner._begun().restore(
        {name: value for name, value in header.items() if name != "curvature"},
        {name: array for name, array in arrays.items() if not name.startswith("curvature.")},
    )
    engine = learner._begun()
    assert engine.curvature is not None
    assert engine.curvature.rows == -1
    assert engine.decider.uncertainty is None
    learner.run((np.random.default_rng(2).normal(size=(100, 2)), np.random.default_rng(3).random((100, 3))))
    assert engine.curvature.rows > 200
    assert engine.decider.uncertainty is not None


def test_who_explores_by_it() -> None:
    """A few actions of a fixed number, and those of sets; not O2PL, not many actions."""
    for learner, context, known in (
        (o2pl.Bandit(3), np.ones(2), True),
        (o2pl.Bandit(3), {"a": "b"}, True),
        (o2pl.Bandit(11), np.ones(2), False),
        (o2pl.Bandit(), np.eye(2), True),
        (o2pl.O2PL(policy="actionwise"), np.eye(2), False),
        (o2pl.O2PL(3), np.ones(2), False),
    ):
        learner.act(context)
        engine = learner._begun()
        assert (curvature_for(engine.spec, engine.log) is not None) is known
        assert (engine.curvature is not None) is known


def test_exploration_by_words_needs_hashed_rows() -> None:
    learner = o2pl.Bandit(3, random_state=0)
    for k in range(60):
        learner.update(learner.act({"a": f"w{k % 5}"}), float(k % 2))
    assert isinstance(learner._begun().members[0].seen.features, Hashed)
    unsure = learner.snapshot().uncertainty
    assert unsure is not None
    assert unsure.inputs == 0
