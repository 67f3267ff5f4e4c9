"""The engine: threads that share a learner, parts in new combinations, files, snapshots, copies and pickles."""

from __future__ import annotations

import copy
import pickle
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.evaluation.cases import dropped_log

import o2pl
from o2pl import O2PL, Bandit, Exact, Geometric, Member
from o2pl.engine.member import QUADRATIC
from o2pl.features import Hashed
from o2pl.objectives import Outcome, Pessimistic
from o2pl.oracles import LBFGS
from o2pl.policies import ActionWise, FiniteClass, SparseSoftmax, UniformMixture
from o2pl.protocols import Explored

K = 3


class Favour:
    """An exploration rule: a bonus for actions that were played seldom."""

    def at(self, plays: Any, mean_reward: float, rewards: Any = None) -> Explored:
        return Explored(0.05, 0.3 * mean_reward / np.sqrt(1.0 + plays), np.empty(0))


MEMBERS: dict[str, Any] = {
    "own schedules": (
        Member(schedule=Exact(oracle=LBFGS(10, 1e-4))),
        Member(QUADRATIC, schedule=Geometric(), joins=30),
    ),
    "beside pessimistic": (
        Member(objective=Outcome()),
        Member(objective=Pessimistic(penalty=0.1, baseline="mean", l2=0.1), joins=20),
    ),
    "sparse mixture": Member(Hashed(), UniformMixture(SparseSoftmax(K), 0.1)),
    "sparse sets mixture": Member(Hashed(), UniformMixture(ActionWise(), 0.1)),
}
TABLE = np.random.default_rng(0).dirichlet(np.ones(K), size=(5, 2))
LEARNERS: dict[str, Any] = {
    "union": lambda: O2PL(K, random_state=1),
    "replay": lambda: O2PL(K, schedule="replay", random_state=1),
    "actionwise": lambda: O2PL(policy="actionwise", random_state=1),
    "items": lambda: O2PL(random_state=1),
    "items bandit": lambda: Bandit(random_state=1),
    "hashed": lambda: O2PL(K, policy="hashed", random_state=1),
    "hashed actionwise": lambda: O2PL(policy="hashed actionwise", random_state=1),
    "hashed replay": lambda: O2PL(K, policy="hashed", schedule="replay", random_state=1),
    "gaussian": lambda: o2pl.GaussianO2PL(centre=0.5, scale=0.5, random_state=1),
    "gaussian replay": lambda: o2pl.GaussianO2PL(centre=0.5, schedule="replay", random_state=1),
    "gaussian window": lambda: o2pl.GaussianO2PL(centre=0.5, schedule=Geometric(window=50), random_state=1),
    "own schedules": lambda: O2PL(K, policy=MEMBERS["own schedules"], random_state=1),
    "bandit beside pessimistic": lambda: Bandit(K, policy=MEMBERS["beside pessimistic"], random_state=1),
    "window": lambda: O2PL(K, schedule=Geometric(window=60), random_state=1),
    "half life": lambda: O2PL(K, policy="linear", schedule=Geometric(half_life=40.0), random_state=1),
    "hashed window": lambda: O2PL(K, policy="hashed", schedule=Geometric(window=60), random_state=1),
    "hashed half life": lambda: O2PL(K, policy="hashed", schedule=Geometric(half_life=40.0), random_state=1),
    "sets half life": lambda: O2PL(policy="actionwise", schedule=Geometric(half_life=40.0), random_state=1),
    "numbers": lambda: O2PL(policy=FiniteClass(TABLE), random_state=1),
    "numbers control": lambda: O2PL(policy=FiniteClass(TABLE), control=5.0, random_state=1),
    "numbers window": lambda: O2PL(policy=FiniteClass(TABLE), schedule=Geometric(window=60), random_state=1),
    "hashed mixture": lambda: O2PL(K, policy=MEMBERS["sparse mixture"], random_state=1),
    "hashed actionwise mixture": lambda: O2PL(policy=MEMBERS["sparse sets mixture"], random_state=1),
    "bandit": lambda: Bandit(K, random_state=1),
    "bandit exploring": lambda: Bandit(K, exploration=0.1, random_state=1),
    "bandit half life": lambda: Bandit(K, schedule=Geometric(half_life=200.0), random_state=1),
    "actionwise bandit": lambda: Bandit(policy="actionwise", random_state=1),
    "hashed bandit": lambda: Bandit(K, policy="hashed", random_state=1),  # not yet sure after 140 rounds
    "hashed actionwise bandit": lambda: Bandit(policy="hashed actionwise", random_state=1),
    "rule": lambda: O2PL(K, policy="linear", exploration=Favour(), random_state=1),
}
BANDITS = [name for name in LEARNERS if "bandit" in name]
each_learner = pytest.mark.parametrize("name", LEARNERS)


def context_of(name: str, generator: Any) -> Any:
    """A context whose first entry decides which action is best."""
    x = generator.normal(size=3).astype(np.float32)
    if name.startswith("hashed actionwise"):
        return [{"good": str(bool(each > 0)), "x": float(each)} for each in x]
    if name.startswith("hashed"):
        return {"side": f"s{int(x.argmax())}", "x": float(x[0])}
    if name.startswith("numbers"):
        return np.array([x[0] > 0], np.float32)
    if name.startswith("items"):
        return x[:1], x[:, None]
    return x[:, None] if name.startswith(("actionwise", "sets")) else x


def reward_of(name: str, context: Any, action: Any) -> float:
    if name.startswith("gaussian"):
        return float(np.exp(-((action - 0.5 * float(context[0])) ** 2)))
    if name.startswith("items"):
        return float(context[1][action, 0] > 0)
    if name.startswith("hashed actionwise"):
        return float(context[action]["good"] == "True")
    if name.startswith("hashed"):
        return float(context["side"] == f"s{action}")
    if name.startswith("numbers"):
        return float(context[0] == action)
    return float(np.ravel(context).argmax() == action)


def step(learner: Any, name: str, generator: Any) -> Any:
    context = context_of(name, generator)
    decision = learner.act(context)
    learner.update(context, decision.action, reward_of(name, context, decision.action), decision.propensity)
    return context, decision


def used(name: str, rounds: int, seed: int = 0) -> Any:
    learner, generator = LEARNERS[name](), np.random.default_rng(seed)
    for _ in range(rounds):
        step(learner, name, generator)
    return learner


def assert_same_course(name: str, learners: list[Any], rounds: int = 80) -> None:
    for t in range(rounds):
        decisions = [step(each, name, np.random.default_rng(1000 + t))[1] for each in learners]
        assert all(each == decisions[0] for each in decisions)


# -- combinations of parts


@each_learner
def test_it_learns_saves_loads_copies_and_pickles(name: str, tmp_path: Path) -> None:
    """Each goes on bit for bit, and a snapshot of before stays what it was."""
    learner = used(name, 140)
    snapshot, generator = learner.snapshot(), np.random.default_rng(5)
    contexts, uniforms = [context_of(name, generator) for _ in range(20)], generator.random(20)
    before = [snapshot.decide(context, u) for context, u in zip(contexts, uniforms, strict=True)]
    others = [copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))]
    if name != "rule":  # a rule of one's own is no part of a file
        learner.save(tmp_path / "learner.o2pl")
        others.append(o2pl.load(tmp_path / "learner.o2pl"))
    assert_same_course(name, [learner, *others])
    assert [snapshot.decide(context, u) for context, u in zip(contexts, uniforms, strict=True)] == before
    if "numbers" not in name:  # those have found the best of their few policies
        assert [learner.snapshot().decide(c, u) for c, u in zip(contexts, uniforms, strict=True)] != before
    assert [
        pickle.loads(pickle.dumps(snapshot)).decide(c, u) for c, u in zip(contexts, uniforms, strict=True)
    ] == before


@pytest.mark.parametrize("name", [n for n in LEARNERS if not ("actionwise" in n or n == "sets half life")])
def test_run_is_the_loop(name: str) -> None:
    contexts = [context_of(name, np.random.default_rng(t)) for t in range(150)]
    looped, ran = LEARNERS[name](), LEARNERS[name]()
    taken = [step(looped, name, np.random.default_rng(t))[1] for t in range(150)]

    def paid(rows: Any, actions: Any) -> Any:
        return np.array([reward_of(name, contexts[r], a) for r, a in zip(rows, actions, strict=True)])

    rewards: Any = paid
    if not name.startswith("gaussian"):
        rewards = np.array([[reward_of(name, context, a) for a in range(K)] for context in contexts])
    run = ran.run((contexts, rewards))
    assert [*zip(run.actions.tolist(), run.propensities.tolist(), strict=True)] == taken


@pytest.mark.parametrize("name", [n for n in LEARNERS if not n.startswith(("gaussian", "numbers"))])
def test_it_learns(name: str) -> None:
    """Chance pays 1/3, .5 with `hashed actionwise`; the last 100 of 400 rounds must pay .65."""
    learner, generator = LEARNERS[name](), np.random.default_rng(3)
    paid = [reward_of(name, c, d.action) for c, d in (step(learner, name, generator) for _ in range(400))]
    assert np.mean(paid[-100:]) > 0.65


@pytest.mark.parametrize("forgetting", [{"window": 200}, {"half_life": 60.0}])
@pytest.mark.parametrize("policy", ["linear", "hashed"])
def test_learners_that_forget_recover_when_the_world_reverses(policy: str, forgetting: dict[str, Any]) -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(1600, 2)).astype(np.float32)
    better = (x[:, 0] > 0) ^ (np.arange(1600) >= 800)
    rewards = np.stack([~better, better], axis=1).astype(float)
    contexts: Any = [{"x": float(row[0]), "y": float(row[1])} for row in x] if policy == "hashed" else x
    late = {}
    for name, schedule in (("all", Geometric()), ("recent", Geometric(**forgetting))):
        learner = O2PL(2, policy=policy, schedule=schedule, exploration=0.05, random_state=0)
        late[name] = learner.run((contexts, rewards)).rewards[1300:].mean()
    assert late["recent"] > late["all"] + 0.1
    assert late["recent"] > 0.8


def test_members_keep_their_own_schedules() -> None:
    learner = O2PL(K, policy=MEMBERS["own schedules"], random_state=0)
    generator = np.random.default_rng(0)
    for _ in range(300):
        step(learner, "own schedules", generator)
    exact, geometric = (int(member.effort[0]) for member in learner._engine.members)
    assert exact == 300
    due, at = 0, 30
    while at <= 300:
        due, at = due + 1, Geometric().after(at)
    assert geometric == due


# -- threads


@pytest.fixture
def eager_switches() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def tagged(name: str, generator: Any, tag: float) -> Any:
    context = context_of(name, generator)
    if name.startswith("hashed actionwise"):
        return [{**each, "tag": tag} for each in context]
    if name.startswith("hashed"):
        return {**context, "tag": tag}
    if name.startswith("items"):
        return np.array([tag], np.float32), context[1]
    if name.startswith("actionwise"):
        return np.column_stack([context, tag - np.arange(len(context))]).astype(np.float32)  # of the first
    return np.append(context, np.float32(tag))


def tags_of(name: str, learner: Any) -> Any:
    contexts = learner.log_.contexts
    if name.startswith("hashed actionwise"):
        tag, rows = learner._engine.encoder.encode_one([{"tag": 1.0}]).values.indices[0], contexts.values
        return rows.values[rows.indices == tag][contexts.offsets[:-1]]
    if name.startswith("hashed"):
        tag = learner._engine.encoder.encode_one({"tag": 1.0}).indices[0]
        return contexts.values[contexts.indices == tag]
    if name.startswith("items"):
        return contexts.shared[:, 0]
    if name.startswith("actionwise"):
        return contexts.values[contexts.offsets[:-1], -1]
    return contexts[:, -1]


@pytest.mark.parametrize("whole", [False, True], ids=["in parts", "by decision"])
@pytest.mark.parametrize("name", ["union", "actionwise", "items bandit", "hashed", "gaussian", "replay", *BANDITS])
def test_threads_share_a_learner(name: str, whole: bool, eager_switches: None) -> None:
    """Every row is in the log once, with the propensity of its decision; and nothing breaks.

    By decision: every decision is told by two threads at once, of which one is refused.
    """
    learner, rounds, workers = LEARNERS[name](), 100, 8
    said: dict[float, Any] = {}
    failed: list[BaseException] = []
    refused: list[o2pl.InvalidInput] = []
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()
    start = threading.Barrier(workers)

    def work(number: int) -> None:
        generator = np.random.default_rng(number)
        try:
            start.wait()
            for t in range(rounds):
                tag = float(number * rounds + t)
                context = tagged(name, generator, tag)
                said[tag] = decision = learner.act(context)
                reward = float(np.clip(decision.action, 0, 1))
                if not whole:
                    learner.update(context, decision.action, reward, decision.propensity)
                    continue
                told.put(decision)
                for one in (decision, told.get()):  # its own, and one that any thread has put there
                    try:
                        learner.update(one if t % 2 else one.id, reward)
                    except o2pl.InvalidInput as error:
                        refused.append(error)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed[0]
    log, tags = learner.log_, tags_of(name, learner)
    assert sorted(tags.tolist()) == [float(tag) for tag in range(workers * rounds)]
    for tag, action, propensity in zip(tags.tolist(), log.actions, log.propensities, strict=True):
        assert said[tag] == (action, propensity)
    if whole:
        assert set(log.event_ids) == {decision.id for decision in said.values()}
        assert len(refused) == workers * rounds
        assert all("again; its reward is" in str(error) for error in refused)
    decision = learner.act(tagged(name, np.random.default_rng(0), 1.0))
    assert decision.propensity > 0
    assert len(copy.deepcopy(learner).log_) == workers * rounds


def test_a_snapshot_is_shared_by_threads_while_the_learner_learns(eager_switches: None) -> None:
    learner = used("union", 150)
    snapshot, generator = learner.snapshot(), np.random.default_rng(9)
    contexts, uniforms = generator.normal(size=(50, 3)).astype(np.float32), generator.random(50)
    expected = [snapshot.decide(x, u) for x, u in zip(contexts, uniforms, strict=True)]
    wrong: list[Any] = []

    def ask() -> None:
        for _ in range(5):
            found = [snapshot.decide(x, u) for x, u in zip(contexts, uniforms, strict=True)]
            if found != expected:
                wrong.append(found)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(100):
        step(learner, "union", generator)
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_learner_can_be_saved_and_copied_while_threads_use_it(eager_switches: None, tmp_path: Path) -> None:
    learner, stop, failed = used("union", 20), threading.Event(), list[BaseException]()

    def work(number: int) -> None:
        generator = np.random.default_rng(number)
        try:
            while not stop.is_set():
                step(learner, "union", generator)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for attempt in range(10):
        learner.save(tmp_path / f"{attempt}")
        for held in (o2pl.load(tmp_path / f"{attempt}"), pickle.loads(pickle.dumps(learner))):
            assert len(held.log_.actions) == len(held.log_.contexts)
            assert (held.log_.propensities > 0).all()
    stop.set()
    for thread in threads:
        thread.join()
    assert not failed, failed[0]


def _dictionaries(n: int) -> list[dict[str, Any]]:
    return [{"u": {"v": k % 3}, "_multi": [{"i": {"k": name}} for name in "abc"]} for k in range(n)]


WEIGHING: dict[str, Callable[[], Any]] = {
    "Bandit": lambda: o2pl.Bandit(random_state=0),
    "O2PL": lambda: o2pl.O2PL(random_state=0),
    "sets": lambda: o2pl.Bandit(policy="hashed actionwise", random_state=0),
    "fading": lambda: o2pl.Bandit(schedule=o2pl.Geometric(half_life=1e5), random_state=0),
}


@pytest.mark.parametrize("name", WEIGHING)
def test_rows_that_the_logger_dropped_are_learned_from_with_weights(name: str, tmp_path: Path) -> None:
    """The third action is the best of the whole log, and the worst of what was kept."""
    weighted, once, _ = dropped_log(6000)

    def learned(log: Any, batches: int = 0) -> Any:
        log = log.changed(contexts=_dictionaries(len(log)), n_actions=None) if name == "sets" else log
        learner = WEIGHING[name]()
        if not batches:
            return learner.fit(log)
        for some in np.array_split(np.arange(len(log)), batches):
            learner.partial_fit(log[some])
        return learner

    def mean(learner: Any) -> Any:
        asked = _dictionaries(30) if name == "sets" else weighted.contexts[:30]
        return learner.predict_proba(asked).reshape(30, 3).mean(axis=0)

    assert mean(learned(weighted)).argmax() == 2
    assert mean(learned(weighted, 3)).argmax() == 2
    assert mean(learned(once)).argmax() == 0
    alike = weighted.changed(row_weights=np.full(len(once), 7.0))
    np.testing.assert_allclose(mean(learned(alike)), mean(learned(once)), atol=1e-6)
    learner = learned(weighted)
    learner.save(tmp_path / "model.o2pl")
    again = o2pl.load(tmp_path / "model.o2pl")
    np.testing.assert_array_equal(again.log_.row_weights, weighted.row_weights)
    more = once[:100].changed(ids=np.arange(100))
    more = more.changed(contexts=_dictionaries(100), n_actions=None) if name == "sets" else more
    for each in (learner, again):
        each.partial_fit(more)
    np.testing.assert_array_equal(mean(again), mean(learner))
