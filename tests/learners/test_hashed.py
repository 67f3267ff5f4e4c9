"""Learners on dictionaries: they solve the dense problem, learn, continue, and say what is wrong."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl import O2PL, Bandit, Geometric, InvalidInput, Member, Replay, storage
from o2pl.encode.dictionaries import DictionaryReader
from o2pl.engine.controlling import control_of
from o2pl.features import Hashed
from o2pl.objectives.outcome import Outcome
from o2pl.oracles import LBFGS
from o2pl.policies import Softmax

WORDS = ["red", "green", "blue"]


def contexts(n: int, seed: int = 0) -> list[dict[str, Any]]:
    generator = np.random.default_rng(seed)
    return [
        {
            "item": {"colour": WORDS[generator.integers(3)], "price": float(generator.normal(50, 10))},
            "user": f"u{generator.integers(30)}",
            "sale": bool(generator.random() < 0.5),
        }
        for _ in range(n)
    ]


def rewards_of(rows: list[dict[str, Any]], seed: int = 0) -> np.ndarray[Any, Any]:
    """Each colour has an action that pays .9, the others pay .1; on sale, dear items the next one."""
    generator = np.random.default_rng(seed + 1)
    means = np.full((len(rows), 3), 0.1)
    for r, row in enumerate(rows):
        means[r, (WORDS.index(row["item"]["colour"]) + (row["sale"] and row["item"]["price"] > 55)) % 3] = 0.9
    return (generator.random(means.shape) < means).astype(float)


def logged(n: int, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    rows = contexts(n, seed)
    generator = np.random.default_rng(seed + 2)
    propensities = generator.dirichlet(np.ones(3), size=n) * 0.7 + 0.1
    actions = np.array([generator.choice(3, p=p) for p in propensities])
    return rows, actions, rewards_of(rows, seed)[np.arange(n), actions], propensities[np.arange(n), actions]


def test_the_learner_solves_the_dense_problem() -> None:
    """On numbers alone, standardised alike: what `policy="linear"` finds, without its control variate."""
    generator = np.random.default_rng(3)
    X = generator.normal([0.0, 40.0, -3.0], [1.0, 8.0, 0.1], size=(800, 3))
    actions = generator.integers(3, size=800)
    rewards = (generator.random(800) < np.where(X[:, 1] > 42, actions == 0, actions == 2) * 0.6 + 0.2).astype(float)
    rows = [{"a": float(a), "b": {"c": float(b), "d": float(c)}} for a, b, c in X.astype(np.float32)]
    same = {"control": None, "sharpness": 1.0, "l2": 1.0}
    dense = O2PL(3, policy="linear", **same).fit(X, actions, rewards, np.full(800, 1 / 3))
    sparse = O2PL(3, policy="hashed", **same).fit(rows, actions, rewards, np.full(800, 1 / 3))
    np.testing.assert_allclose(sparse.predict_proba(rows), dense.predict_proba(X), atol=5e-3)
    assert dense.predict_proba(X).std() > 0.1


# -- acting and learning


@pytest.mark.parametrize("schedule", ["geometric", "replay"])
@pytest.mark.parametrize("signed", [False, True])
def test_learns_a_categorical_task(schedule: str, signed: bool) -> None:
    """Chance pays .37; the last fifth must pay .62, where the best there is pays .9."""
    rows = contexts(2000, seed=5)
    policy = Hashed(signed=signed, interactions=(("item", "sale"),))
    run = O2PL(3, policy=policy, schedule=schedule, random_state=0).run((rows, rewards_of(rows, seed=5)))
    assert run.rewards[-400:].mean() > 0.62
    assert 0 < run.propensities.min() <= run.propensities.max() <= 1


@pytest.mark.parametrize("schedule", ["geometric", "replay", "near-exact", Geometric(warm_start=40)])
@pytest.mark.parametrize(
    ("kind", "policy"),
    [
        (O2PL, "hashed"),
        (O2PL, Member(Hashed(bits=9, interactions=(("user", "item"),)), l2=1.0)),
        (Bandit, "hashed"),
    ],
)
def test_run_is_the_loop(schedule: Any, kind: Any, policy: Any, tmp_path: Path) -> None:
    rows, table = contexts(260), rewards_of(contexts(260))
    looped, ran = (kind(3, policy=policy, schedule=schedule, exploration=0.05, random_state=1) for _ in range(2))
    for t, (context, pay) in enumerate(zip(rows, table, strict=True)):
        if t == 130:  # from a file it goes on bit for bit
            looped.save(tmp_path / "half.o2pl")
            looped = o2pl.load(tmp_path / "half.o2pl")
        action, propensity = looped.act(context)
        looped.update(context, action, pay[action], propensity)
    ran.run((rows[:100], table[:100]))
    ran.run((rows[100:], table[100:]))
    for name in ("actions", "losses", "propensities"):
        np.testing.assert_array_equal(getattr(looped.log_, name), getattr(ran.log_, name))
    for name in ("indices", "values", "offsets"):
        np.testing.assert_array_equal(getattr(looped.log_.contexts, name), getattr(ran.log_.contexts, name))
    np.testing.assert_array_equal(looped.predict_proba(rows), ran.predict_proba(rows))
    assert np.ptp(looped.predict_proba(rows)) > 0.2
    looped.save(tmp_path / "a.o2pl")
    ran.save(tmp_path / "b.o2pl")
    (header, arrays), (other_header, others) = (storage.read_storage(tmp_path / f"{name}.o2pl") for name in "ab")
    assert header == other_header
    assert set(arrays) == set(others)
    for name in set(arrays) - {"log.ids"}:  # every decision has an id of its own
        np.testing.assert_array_equal(arrays[name], others[name])


def test_logs_in_batches_and_what_they_are_worth() -> None:
    log = logged(1500)
    offline = O2PL(policy="hashed").fit(*log)
    assert offline.n_actions_ == 3
    fresh = contexts(400, seed=9)
    truth = rewards_of(fresh, seed=9)
    assert truth[np.arange(400), offline.predict(fresh)].mean() > 0.65
    assert offline.score(*log) > np.mean(log[2]) + 0.15
    assert offline.safe_to_deploy("uniform")
    before = offline.predict_proba(fresh)
    offline.partial_fit(*logged(300, seed=4))
    assert len(offline.log_) == 1800
    assert not np.array_equal(before, offline.predict_proba(fresh))
    again = O2PL(policy="hashed").fit(*log)
    again.partial_fit([], [], [], [])
    np.testing.assert_array_equal(before, again.predict_proba(fresh))
    np.testing.assert_array_equal(before, again.predict_proba(DictionaryReader(18).rows(fresh)))


def test_many_features_are_given_room() -> None:
    """More features than there was room for, in rows of very different lengths."""
    learner = O2PL(2, policy="hashed", random_state=0)
    for t in range(40):
        context = {"words": [f"w{t}-{j}" for j in range(t * t)], "side": "left" if t % 2 else "right"}
        action, propensity = learner.act(context)
        learner.update(context, action, float(action == t % 2), propensity)
    assert learner.log_.contexts.offsets[-1] == sum(t * t + 1 for t in range(40))
    assert learner.predict([{"side": "left"}, {"side": "right"}]).tolist() == [1, 0]


def test_numbers_are_standardised_where_they_occur() -> None:
    """A constant factor and shift of a number change nothing; rows without it are at its mean."""
    rows, actions, rewards, propensities = logged(600)
    moved = [{**row, "item": {**row["item"], "price": row["item"]["price"] * 1000 - 7}} for row in rows]
    some, other = (O2PL(3, policy="hashed").fit(c, actions, rewards, propensities) for c in (rows, moved))
    np.testing.assert_allclose(some.predict_proba(rows), other.predict_proba(moved), atol=0.02)
    mean = float(np.float32(np.mean([np.float32(row["item"]["price"]) for row in rows])))
    at_mean, without = ([{"item": {"colour": "red", **price}}] for price in ({"price": mean}, {}))
    np.testing.assert_allclose(some.predict_proba(at_mean), some.predict_proba(without), atol=1e-4)


def test_the_control_variate_leaves_its_row_out_and_says_nothing_of_actions_never_played() -> None:
    learner = O2PL(3, policy="hashed", random_state=0)
    rows = contexts(200)
    learner.partial_fit(rows, [0, 1] * 100, [1.0, 0.0] * 100, np.full(200, 0.5))
    predicted = learner._engine.running["predicted"]
    assert np.all(predicted[:, 2] == 0)
    assert predicted[0].tolist() == [0, 0, 0]
    assert predicted[-1, 0] < -0.2 < 0.2 < predicted[-1, 1]  # losses of -1 and 0 around their mean
    other = O2PL(3, policy="hashed", random_state=0)
    other.partial_fit(rows, [0, 1] * 100, [1.0, 0.0] * 99 + [1.0, 1.0], np.full(200, 0.5))
    np.testing.assert_array_equal(other._engine.running["predicted"], predicted)


def test_the_control_variate_is_least_squares_with_variances_alone() -> None:
    """By a plain loop, on words alone, which are left as they are."""
    generator = np.random.default_rng(0)
    rows = [{"a": f"w{generator.integers(6)}", "b": [f"v{generator.integers(4)}" for _ in range(2)]} for _ in range(80)]
    actions, rewards = generator.integers(3, size=80), generator.random(80)
    learner = O2PL(3, policy="hashed", control=2.0).partial_fit(rows, actions, rewards, np.full(80, 1 / 3))
    contexts = learner.log_.contexts
    w, v, total = np.zeros((3, contexts.width + 1)), np.full((3, contexts.width + 1), 1 / 2), 0.0
    for s in range(80):
        at = [*contexts[s : s + 1].indices, contexts.width]  # a word that stands twice counts twice; the constant
        np.testing.assert_allclose(learner._engine.running["predicted"][s], w[:, at].sum(axis=1), atol=1e-5)
        a, loss = actions[s], -rewards[s]
        error = loss - (total - 3) / (s + 3) - w[a, at].sum()
        noise = 1 + v[a, at].sum()
        for i in at:
            gain = v[a, i] / noise
            w[a, i] += gain * error
            v[a, i] -= gain * v[a, i]
        total += loss


def test_the_acting_policy_is_the_softmax_of_its_weights() -> None:
    learner = O2PL(3, policy="hashed", sharpness=2.0, exploration=0.3).fit(*logged(300))
    (member,), fresh = learner._engine.members, contexts(50, seed=8)
    rows, seen, W = DictionaryReader(18).rows(fresh), member.seen.state, member.params.reshape(-1, 3)
    slots = {int(feature): slot for slot, feature in enumerate(seen["feature"]) if slot}
    expected = np.empty((50, 3))
    for r in range(50):
        logits = W[0].copy()
        for j in range(rows.offsets[r], rows.offsets[r + 1]):
            slot = slots.get(int(rows.indices[j]))
            if slot is not None:
                shift, scale = seen["scale"][slot]
                logits = logits + np.clip((rows.values[j] - shift) * scale, -5, 5) * W[slot]
        powers = np.exp(2 * logits - np.max(2 * logits))
        expected[r] = 0.7 * powers / powers.sum() + 0.1
    np.testing.assert_allclose(learner.predict_proba(fresh), expected, rtol=1e-5)
    assert np.ptp(expected) > 0.3


def test_what_is_solved_is_made_of_the_log() -> None:
    """With a control variate m = b + what was predicted, cut to losses."""
    learner = O2PL(3, policy="hashed", control=0.5, random_state=0).partial_fit(*logged(400))
    engine, log = learner._engine, learner.log_
    b = (log.losses.sum() - 3) / 403  # as if three best rewards had been seen
    control = control_of(engine, log, 0, None, {})
    model = np.clip(b + engine.running["predicted"], -1, 0)
    np.testing.assert_allclose(control.by_action.T, model, atol=1e-6)
    np.testing.assert_allclose(control.played, model[np.arange(400), log.actions], atol=1e-6)
    assert (model == 0).any()  # some were cut


def test_signs_change_the_weights_and_not_the_policy() -> None:
    log, fresh = logged(500), contexts(50, seed=8)
    plain, signed = (O2PL(3, policy=Hashed(signed=sign)).fit(*log) for sign in (False, True))
    np.testing.assert_allclose(signed.predict_proba(fresh), plain.predict_proba(fresh), atol=0.02)


def test_new_features_leave_what_is_known_of_the_curvature() -> None:
    oracle = LBFGS(iterations=3, memory=6)

    def valley(params: Any) -> tuple[float, Any]:
        slopes = np.arange(1.0, len(params) + 1)
        return float(0.5 * slopes @ (params - 1) ** 2), slopes * (params - 1)

    _, before = oracle.step(valley, np.zeros(4), oracle.init(4))
    _, after = LBFGS(iterations=0, memory=6).step(valley, np.zeros(6), before)
    assert before["at"][1] > 0
    for name in ("steps", "changes"):
        np.testing.assert_array_equal(after[name][:, :4], before[name])
        assert not after[name][:, 4:].any()
    for name in ("inner", "at"):
        np.testing.assert_array_equal(after[name], before[name])


def test_what_is_known_of_the_curvature_moves_with_the_level() -> None:
    """The level τ of `Outcome` comes after the weights: new features come before it."""
    features = Hashed()
    of_pair = tuple(
        Member(features, objective=Outcome(competing), oracle=LBFGS(2, 0.0, 6)) for competing in (True, False)
    )
    learner = Bandit(3, policy=of_pair, changes=None, random_state=0).partial_fit(*logged(100))
    before = [(len(member.params), member.kept) for member in learner._engine.members]
    assert [kept["at"][1] for _, kept in before] == [2, 2]
    asked: list[Any] = []
    step = LBFGS.step
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LBFGS, "step", lambda *given: asked.append(given[3]) or step(*given))
        learner.partial_fit([{"new": ["words", "that", "were", "unknown"]}], [0], [1.0], [0.5])
    for (known, old), new in zip(before, asked, strict=True):
        for name in ("steps", "changes"):
            np.testing.assert_array_equal(new[name][:, : known - 1], old[name][:, :-1])
            np.testing.assert_array_equal(new[name][:, -1], old[name][:, -1])
            assert new[name].shape[1] == known + 4 * 3
            assert not new[name][:, known - 1 : -1].any()
        np.testing.assert_array_equal(new["inner"], old["inner"])
    assert before[0][1]["steps"][0, -1] != 0
    assert [member.kept["at"][1] for member in learner._engine.members] == [4, 4]


# -- bad input


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda o, c: o.act({"user": {"age": -math.inf}}), "user.age: found -inf"),
        (lambda o, c: o.act([1.0, 2.0]), "expected a dictionary"),
        (lambda o, c: o.update({"x": math.inf}, 0, 1.0, 0.5), "x: found inf"),
        (lambda o, c: o.update(c, 3, 1.0, 0.5), "action, row 0: found 3"),
        (lambda o, c: o.update(c, 0.5, 1.0, 0.5), "integers"),
        (lambda o, c: o.update(c, 0, 2.0, 0.5), "reward, row 0: found 2.0"),
        (lambda o, c: o.update(c, 0, 1.0, 0.0), "propensity, row 0: found 0.0"),
        (lambda o, c: o.partial_fit([c, {"x": [[]]}], [0, 0], [1, 1], [1, 1]), r"row 1, x\[0\]: found \[\]"),
        (lambda o, c: o.partial_fit([c], [0, 1], [1, 1], [1, 1]), r"expected one per context \(1\)"),
        (lambda o, c: o.fit([c, 7], [0, 0], [1, 1], [1, 1]), "row 1: found 7"),
        (lambda o, c: o.fit([], [], [], []), "found no rows"),
        (lambda o, c: o.run(([c, {1: 2}], np.zeros((2, 3)))), "row 1: found the key 1"),
        (lambda o, c: o.run(([c], np.zeros((1, 2)))), "rewards: found 2 actions, expected 3"),
        (lambda o, c: o.run(([c], np.zeros(1))), "rewards: found shape"),
    ],
)
def test_bad_input_changes_nothing(begun: bool, call: Any, said: str, tmp_path: Path) -> None:
    learner = O2PL(3, policy="hashed", schedule=Replay(warm_start=2, every=1), random_state=0)
    context = contexts(1)[0]
    for _ in range(5 * begun):
        learner.update(context, *[(d := learner.act(context)).action, 1.0, d.propensity])
    learner.save(tmp_path / "before")
    with pytest.raises(InvalidInput, match=said):
        call(learner, context)
    learner.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


def test_hashed_features_stand_alone() -> None:
    with pytest.raises(InvalidInput, match="found Hashed and other features"):
        O2PL(3, policy=[Member(Hashed()), Member()]).act({"a": "b"})
    with pytest.raises(InvalidInput, match="found Softmax with Hashed features, expected SparseSoftmax or ActionWise"):
        O2PL(3, policy=Member(Hashed(), Softmax(3))).act({"a": "b"})
