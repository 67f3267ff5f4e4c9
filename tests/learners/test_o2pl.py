from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import o2pl
from o2pl.features import Chain, Intercept, Quadratic, Standardise
from o2pl.objectives import PolicyValue
from o2pl.policies import FiniteClass, ThresholdClass, UniformMixture
from o2pl.policies.softmax import Softmax

T, D, K = 160, 3, 3


def world(seed: int = 0, rounds: int = T) -> tuple[Any, Any]:
    """Contexts [T, D] and rewards [T, K]: the best action is the largest context entry."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rounds, D)) * [1, 5, 0.2] + [0, 10, 0]
    z = (x - [0, 10, 0]) / [1, 5, 0.2]
    return x.astype(np.float32), (generator.random((rounds, K)) < 1 / (1 + np.exp(-3 * z))).astype(float)


def continuous(seed: int = 0, rounds: int = T) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rounds, 2)).astype(np.float32)
    return x, lambda rows, actions: np.exp(-((actions - 0.5 * x[rows, 0]) ** 2))


LEARNERS: dict[str, Any] = {
    "union": lambda: o2pl.O2PL(K, random_state=1),
    "linear": lambda: o2pl.O2PL(K, policy="linear", random_state=1),
    "exploring": lambda: o2pl.O2PL(K, policy="quadratic", exploration=0.1, random_state=1),
    "fourier": lambda: o2pl.O2PL(K, policy="fourier", random_state=1),
    "near-exact": lambda: o2pl.O2PL(K, policy="linear", schedule="near-exact", random_state=1),
    "exact": lambda: o2pl.O2PL(K, policy="linear", schedule="exact", random_state=1),
    "paper": lambda: o2pl.O2PL.paper(K, schedule="geometric", random_state=1),
    "paper's replay": lambda: o2pl.O2PL.paper_replay(K, random_state=1),
    "replay": lambda: o2pl.O2PL(K, policy="linear", schedule="replay", exploration=0.05, random_state=1),
    "replay, raw": lambda: o2pl.O2PL(K, policy=o2pl.Member(Chain(())), schedule="replay", random_state=1),
    "replay, short window": lambda: o2pl.O2PL(
        K, policy="linear", schedule=o2pl.Replay(window=40, warm_start=7, every=3), random_state=1
    ),
    "replay, union": lambda: o2pl.O2PL(K, schedule="replay", random_state=1),
    "members": lambda: o2pl.O2PL(
        K, policy=[o2pl.Member(penalty=1.0), o2pl.Member(Chain((Standardise(), Quadratic())), l2=1.0)], random_state=1
    ),
    "mixture class": lambda: o2pl.O2PL(K, policy=UniformMixture(Softmax(K), 0.1), random_state=1),
    # The floor makes weights of 7.09, which the rising clip level passes only just after the last round.
    "thresholds": lambda: o2pl.O2PL(policy=ThresholdClass((-1.0, 0.0, 1.0), 0.1236), random_state=1),
    "thresholds, hull": lambda: o2pl.O2PL(policy=UniformMixture(ThresholdClass((-1.0, 0.0, 1.0))), random_state=1),
    "bandit": lambda: o2pl.Bandit(K, random_state=1),
    "bandit, linear": lambda: o2pl.Bandit(K, policy="linear", random_state=1),
    "bandit, exploring": lambda: o2pl.Bandit(K, exploration=0.1, random_state=1),
    "bandit, exact": lambda: o2pl.Bandit(K, policy="linear", schedule="exact", random_state=1),
    "bandit, half-life": lambda: o2pl.Bandit(K, schedule=o2pl.Geometric(half_life=200), random_state=1),
    "continuous": lambda: o2pl.ContinuousBandit((-3, 3), random_state=1),
    "continuous, exploring": lambda: o2pl.ContinuousBandit((-3, 3), exploration=0.1, cells=16, random_state=2),
    "continuous, exact": lambda: o2pl.ContinuousBandit((-3, 3), schedule="exact", random_state=1),
    "continuous, half-life": lambda: o2pl.ContinuousBandit(
        (-3, 3), schedule=o2pl.Geometric(half_life=50), random_state=1
    ),
    "continuous, window": lambda: o2pl.ContinuousBandit((-3, 3), schedule=o2pl.Geometric(window=40), random_state=1),
    "gaussian": lambda: o2pl.GaussianO2PL(centre=1.2, scale=0.5, random_state=1),
    "gaussian, bounds": lambda: o2pl.GaussianO2PL(bounds=(-3, 3), random_state=1),
    "gaussian, heteroscedastic": lambda: o2pl.GaussianO2PL(bounds=(-3, 3), heteroscedastic=True, random_state=1),
    "gaussian, scale learned": lambda: o2pl.GaussianO2PL(learn_scale=True, scale=0.5, random_state=3),
}


def world_of(name: str, rounds: int = T) -> tuple[Any, Any]:
    if "gaussian" in name or "continuous" in name:
        return continuous(rounds=rounds)
    x, rewards = world(rounds=rounds)
    return (x[:, :1], rewards[:, :2]) if "thresholds" in name else (x, rewards)


def step(learner: Any, x: Any, rewards: Any, t: int) -> tuple[Any, float]:
    """One round of the loop a user would write."""
    action, propensity = learner.act(x[t])
    reward = rewards(np.array([t]), np.array([action]))[0] if callable(rewards) else rewards[t, action]
    learner.update(x[t], action, reward, propensity)
    return action, propensity


@pytest.mark.parametrize("name", LEARNERS)
def test_run_makes_the_decisions_of_the_loop_bit_for_bit(name: str) -> None:
    x, rewards = world_of(name)
    looped = LEARNERS[name]()
    taken = [step(looped, x, rewards, t) for t in range(T)]
    ran = LEARNERS[name]()
    first = ran.run((x[:70], rewards if callable(rewards) else rewards[:70]))
    assert first.actions.tolist() == [a for a, _ in taken[:70]]
    rest = (lambda rows, a: rewards(rows + 70, a)) if callable(rewards) else rewards[70:]
    second = ran.run((x[70:], rest))
    assert second.actions.tolist() == [a for a, _ in taken[70:]]
    assert second.propensities.tolist() == [p for _, p in taken[70:]]
    assert looped.act(x[0]) == ran.act(x[0])
    (header, arrays), (other_header, other_arrays) = looped._engine.state(), ran._engine.state()
    assert header == other_header
    for key in arrays.keys() - {"log.ids", "pending.log.ids"}:  # every decision has an id of its own
        np.testing.assert_array_equal(arrays[key], other_arrays[key])


@pytest.mark.parametrize("name", LEARNERS)
@settings(max_examples=8, deadline=None)
@given(cut=st.integers(0, T - 1))
def test_a_saved_learner_goes_on_bit_for_bit(name: str, cut: int, tmp_path_factory: Any) -> None:
    x, rewards = world_of(name)
    path = tmp_path_factory.mktemp("saved") / "learner.o2pl"
    learner = LEARNERS[name]()
    for t in range(cut):
        step(learner, x, rewards, t)
    learner.save(path)
    loaded = o2pl.load(path)
    assert repr(loaded) == repr(learner)
    for t in range(cut, min(T, cut + 60)):
        assert step(loaded, x, rewards, t) == step(learner, x, rewards, t)


@pytest.mark.parametrize("name", LEARNERS)
def test_scikit_learn_can_clone_it(name: str) -> None:
    learner = LEARNERS[name]()
    x, rewards = world_of(name)
    step(learner, x, rewards, 0)
    copy = clone(learner)
    assert copy.get_params() == learner.get_params()
    assert copy._engine is None
    assert copy.set_params(random_state=7).get_params()["random_state"] == 7
    with pytest.raises(o2pl.InvalidInput, match=r"found \['nonsense'\]"):
        copy.set_params(nonsense=1)
    before = learner.get_params()
    with pytest.raises(
        o2pl.InvalidInput, match=r"set_params: found random_state=99 for a learner that has learned with"
    ):
        learner.set_params(random_state=99)
    assert learner.set_params(**before).get_params() == before  # nothing is changed


LEARNING = [name for name in LEARNERS if name not in ("thresholds", "thresholds, hull", "paper", "replay, raw")]


@pytest.mark.parametrize("name", LEARNING)
def test_it_learns(name: str) -> None:
    """The last third is far (about 5 standard errors) above the same learner kept from learning."""
    x, rewards = world_of(name, 900)
    still = LEARNERS[name]().set_params(schedule=o2pl.Geometric(warm_start=10**6)).run((x, rewards))
    assert LEARNERS[name]().run((x, rewards)).rewards[-300:].mean() > still.mean_reward + 0.15


@pytest.mark.parametrize(
    "name", ["union", "linear", "replay", "mixture class", "bandit", "bandit, half-life", "gaussian"]
)
def test_a_log_can_be_learned_from_in_batches_and_offline(name: str) -> None:
    x, rewards = world_of(name, 600)
    logger = LEARNERS[name]()
    logged = logger.run((x[:400], rewards if callable(rewards) else rewards[:400]))
    columns = (x[:400], logged.actions, logged.rewards, logged.propensities)
    offline = LEARNERS[name]().fit(*columns)
    online = LEARNERS[name]().partial_fit(*(c[:100] for c in columns)).partial_fit(*(c[100:] for c in columns))
    assert len(online.log_.actions) == len(offline.log_.actions) == 400
    for learner in (offline, online):
        predicted = learner.predict(x[400:])
        rows = np.arange(200)
        value = rewards(rows + 400, predicted) if callable(rewards) else rewards[rows + 400, predicted]
        assert value.mean() > logged.rewards[:30].mean()
        assert 0 < learner.score(*columns) <= 1


def test_fit_forgets_and_partial_fit_does_not() -> None:
    x, rewards = world()
    columns = (x, rewards.argmax(axis=1), rewards.max(axis=1), np.full(T, 0.5))
    learner = o2pl.O2PL(K, policy="linear").partial_fit(*columns).partial_fit(*columns)
    assert len(learner.log_.actions) == 2 * T
    assert len(learner.fit(*columns).log_.actions) == T


def test_action_sets_that_vary_from_round_to_round(tmp_path: Path) -> None:
    """The best action is the one with the largest first feature, wherever in the set it stands."""
    generator = np.random.default_rng(0)
    learner = o2pl.O2PL(policy="actionwise", random_state=0)
    rewards, log = [], []
    for t in range(600):
        actions = generator.normal(size=(generator.integers(1, 7), 3))
        decision = learner.act(actions)
        reward = float(decision.action == actions[:, 0].argmax())
        learner.update(actions, *(decision.action, reward, decision.propensity))
        rewards.append(reward)
        log.append((actions, decision.action, reward, decision.propensity))
        if t == 300:
            learner.save(tmp_path / "a")
            other = o2pl.load(tmp_path / "a")
    assert np.mean(rewards[-200:]) > 0.85
    for actions, action, reward, propensity in log[301:]:
        assert other.act(actions) == (action, propensity)
        other.update(actions, action, reward, propensity)
    sets = [actions for actions, *_ in log]
    tried = [int(generator.integers(len(actions))) for actions in sets]
    paid = [float(action == actions[:, 0].argmax()) for actions, action in zip(sets, tried, strict=True)]
    columns = (sets, tried, paid, [1 / len(actions) for actions in sets])
    offline = o2pl.O2PL(policy="actionwise").fit(*columns)
    best = [actions[:, 0].argmax() for actions in columns[0]]
    assert np.mean(offline.predict(columns[0]) == best) > 0.9
    assert offline.score(*columns) > 0.8
    with pytest.raises(o2pl.InvalidInput, match="action, row 0: found 2, expected an integer from 0 to 1"):
        learner.update(np.zeros((2, 3)), 2, 1.0, 0.5)


def test_before_any_data_it_acts_uniformly() -> None:
    assert o2pl.O2PL(4, random_state=0).act([1.0, 2.0]).propensity == 0.25
    assert o2pl.O2PL(policy="actionwise", random_state=0).act([[1.0], [2.0]]).propensity == 0.5
    assert o2pl.O2PL(4, policy="linear", schedule="replay").act([1.0, 2.0]).propensity == 0.25


def test_one_action_and_one_row() -> None:
    for schedule in ("geometric", "exact", "replay", "near-exact"):
        learner = o2pl.O2PL(1, schedule=schedule).partial_fit([[1.0]], [0], [0.5], [1.0])
        assert learner.act([1.0]) == (0, 1.0)
    assert o2pl.O2PL().fit([[1.0, 2.0]], [0], [1.0], [0.3]).predict([[0.0, 0.0]]).tolist() == [0]
    one = o2pl.GaussianO2PL().fit([[1.0]], [0.3], [1.0], [0.4])
    assert np.isfinite(one.predict([[1.0]])).all()


def test_the_number_of_actions_is_seen_in_the_first_batch() -> None:
    learner = o2pl.O2PL(policy="linear").partial_fit([[1.0], [2.0]], [0, 4], [1, 0], [0.5, 0.5])
    assert learner.n_actions_ == 5
    assert learner.predict_proba([[0.0]]).shape == (1, 5)
    with pytest.raises(o2pl.InvalidInput, match="n_actions: found None"):
        o2pl.O2PL().act([1.0])


@pytest.mark.parametrize("schedule", ["geometric", "replay"])
def test_contexts_and_actions_of_any_kind_are_taken_alike(schedule: str) -> None:
    x, rewards = world()
    kinds = [lambda row: row, lambda row: row.astype(np.float64), lambda row: row.tolist(), lambda row: tuple(row)]
    numbers = [int, np.int64, float, np.int32]
    taken: list[Any] = []
    for kind, number in zip(kinds, numbers, strict=True):
        learner = o2pl.O2PL(K, policy="linear", schedule=schedule, random_state=1)
        taken.append([])
        for t in range(T):
            action, propensity = learner.act(kind(x[t]))
            learner.update(kind(x[t]), number(action), rewards[t, action], propensity)
            taken[-1].append((action, propensity))
    assert all(each == taken[0] for each in taken)


def test_rewards_of_any_range_make_the_same_decisions() -> None:
    x, rewards = world()
    plain = o2pl.O2PL(K, policy="linear", random_state=3).run((x, rewards))
    scaled = o2pl.O2PL(K, policy="linear", random_state=3, reward_range=(-30, 10)).run((x, 40 * rewards - 30))
    np.testing.assert_array_equal(plain.actions, scaled.actions)
    np.testing.assert_allclose(scaled.rewards, 40 * plain.rewards - 30)


def test_an_environment_can_be_run() -> None:
    class Coin:
        def sample(self, rounds: int, generator: np.random.Generator) -> Any:
            self.contexts = generator.normal(size=(rounds, 2))
            self.rewards = lambda rows, actions: (actions == (self.contexts[rows, 0] > 0)).astype(float)
            return self

    run = o2pl.O2PL(2, random_state=0).run(Coin(), 500, seed=1)
    assert run.mean_reward > 0.8
    with pytest.raises(o2pl.InvalidInput, match="rounds: found None"):
        o2pl.O2PL(2).run(Coin())


def test_the_hull_of_a_finite_class_reads_contexts_as_they_are() -> None:
    """Action 1 pays above 10, action 0 below: of thresholds 5, 10 and 15 the middle one must take over."""
    x = np.random.default_rng(0).uniform(0, 20, size=(500, 1))
    rewards = np.hstack([x < 10, x >= 10]).astype(float)
    learner = o2pl.O2PL(policy=UniformMixture(ThresholdClass((5.0, 10.0, 15.0)), 0.1), sharpness=1.0, random_state=0)
    learner.run((x, rewards))
    assert np.argmax(learner._engine.members[0].params) == 1


def test_contexts_that_pay_less_are_no_reason_to_leave_the_log() -> None:
    """The action has no effect; half of the contexts pay. With one baseline the policy runs away from the others.

    It may move by the noise of a small log, but not by three deviations.
    """
    generator = np.random.default_rng(0)
    away = {None: 0, 15.0: 0}
    for n in (300, 1000):
        for _ in range(8):
            x = np.where(generator.random(n) < 0.5, -1.0, 1.0)[:, None]
            z = generator.standard_normal(n)
            density = np.exp(-0.5 * z * z) / (0.3 * np.sqrt(2 * np.pi))
            paid = (generator.random(n) < np.where(x[:, 0] > 0, 0.9, 0.2)).astype(float)
            for control in away:
                learner = o2pl.GaussianO2PL(scale=0.3, control=control).fit(x, 2 + 0.3 * z, paid, density)
                away[control] += int(np.abs(learner.predict([[-1.0], [1.0]]) - 2).max() > 0.9)
    assert away[15.0] <= 4  # about 1 in 20
    assert away[None] >= 7  # what is avoided: about 1 in 2


@pytest.mark.parametrize("policy", ["linear", FiniteClass(np.eye(2)[:, None, :] * 0.8 + 0.1)])
def test_paper_constructors_are_literal(policy: Any) -> None:
    learner = o2pl.O2PL.paper(None, policy=policy)
    assert (learner.penalty, learner.baseline, learner.control, learner.l2, learner.sharpness) == (1, None, None, 0, 1)
    assert learner.get_params()["schedule"] == "exact"
    assert o2pl.O2PL.paper_replay(2).get_params()["schedule"] == "replay"
    assert Intercept().width(3) == 4


# -- no setting is ignored in silence

CHANGES: dict[str, Any] = {
    "penalty": 2.0,
    "clip": 1.05,
    "baseline": -0.9,
    "control": 0.5,
    "l2": 30.0,
    "sharpness": 1.5,
    "exploration": 0.3,
    "p": 1.5,
    "beta": 0.3,
    "delta": 1e-9,
    "schedule": "replay",
}

KINDS: dict[str, Any] = {
    "union": {"n_actions": K},
    "actionwise": {"policy": "actionwise"},
    "hashed": {"n_actions": K, "policy": "hashed"},
    "hashed actionwise": {"policy": "hashed actionwise"},
    "thresholds": {"policy": ThresholdClass(tuple(np.linspace(-1.5, 1.5, 9)), 0.2)},
}


def acting_policy(kind: str, **settings: Any) -> Any:
    """What a learner with these settings does after a log of 240 rows, 80 of them one by one."""
    generator = np.random.default_rng(8)
    x, n_actions = generator.normal(size=(240, 3)).astype(np.float32), 2 if kind == "thresholds" else K
    actions = generator.integers(n_actions, size=240)
    rewards = (generator.random(240) < np.where((x[:, 0] > 0.4) == (actions == 1), 0.7, 0.35)).astype(float)
    contexts: Any = x[:, :1] if kind == "thresholds" else x
    if kind == "actionwise":
        contexts = [np.eye(K, dtype=np.float32) * row[0] + row[1:2] for row in x]
    elif "hashed" in kind:
        contexts = [{"x": float(row[0]), "y": str(bool(row[1] > 0))} for row in x]
        if "actionwise" in kind:
            contexts = [[{**each, "a": f"{a}", f"x{a}": each["x"]} for a in range(K)] for each in contexts]
    columns = (contexts, actions, rewards, generator.uniform(0.05, 0.9, size=240))
    learner = o2pl.O2PL(**({"random_state": 0} | KINDS[kind] | settings))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PolicyValue, "incremental", True)  # so that members keep it, for us to ask
        learner.partial_fit(*(column[:160] for column in columns))
        for row in zip(*(column[160:] for column in columns), strict=True):
            learner.update(*row)
    probabilities = learner.predict_proba(contexts)
    if kind != "thresholds":
        return probabilities
    return np.append(probabilities, learner._engine.members[0].function.values())  # the best may stay the best


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CHANGES)
def test_a_setting_changes_something_or_is_refused(kind: str, name: str) -> None:
    around: dict[str, Any] = {}
    if name in ("p", "beta", "delta"):
        around = {"penalty": 1.0}  # where what they enter weighs more
    if name == "baseline":
        around = {"control": None}
    if name == "control" and "actionwise" in kind:
        with pytest.raises(o2pl.InvalidInput, match=r"control: found 0\.5 with action sets, which have no control"):
            acting_policy(kind, control=0.5)
        return
    if (kind, name) == ("thresholds", "l2"):
        return  # a finite class is searched: it has no parameters to shrink
    before = acting_policy(kind, **around)
    assert np.abs(acting_policy(kind, **around, **{name: CHANGES[name]}) - before).max() > 1e-6


@pytest.mark.parametrize("schedule", ["geometric", "near-exact", "exact", "replay", o2pl.Geometric(window=60)])
@pytest.mark.parametrize("name", ["control", "sharpness", "exploration", "l2", "clip", "baseline", "penalty"])
def test_with_every_schedule(schedule: Any, name: str) -> None:
    around: dict[str, Any] = {"schedule": schedule, "policy": "linear"} | (
        {"control": None} if name == "baseline" else {}
    )
    before = acting_policy("union", **around)
    assert np.abs(acting_policy("union", **around, **{name: CHANGES[name]}) - before).max() > 1e-6


def test_auto_is_the_control_variate_that_the_docs_say() -> None:
    for kind, schedule, expected in (
        ("union", "geometric", 5.0),
        ("union", "replay", None),
        ("hashed", "exact", 5.0),
        ("thresholds", "geometric", None),
        ("actionwise", "geometric", None),
    ):
        learner = o2pl.O2PL(**({"random_state": 0} | KINDS[kind]), schedule=schedule)
        assert (
            learner._make_engine(learner._new_encoder(width=2), 3 if kind != "thresholds" else None).spec.control
            == expected
        )
