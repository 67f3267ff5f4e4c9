"""Learning in the compiled core is what the engine composes of Python parts, to the last bit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.covering import covering
from tests.engine.lives import HASHED, ROUNDS, SETTINGS, dictionaries, played, world

import o2pl
from o2pl import Bandit, Change, ContinuousBandit, GaussianO2PL, Geometric, Member
from o2pl.engine import engine as engines
from o2pl.engine.member import LINEAR, QUADRATIC
from o2pl.engine.schedules import Exact
from o2pl.engine.simulation import Rewards, simulate
from o2pl.features import Hashed, Settled, Standardise
from o2pl.objectives.outcome import Outcome
from o2pl.oracles.lbfgs import LBFGS

SOME_HASHED = (
    Member(HASHED, objective=Outcome(True, 0.5), schedule=Geometric(half_life=60)),
    Member(HASHED, objective=Outcome(False, 2.0), joins=20, oracle=LBFGS(iterations=3, tolerance=1e-3, memory=2)),
    Member(HASHED, objective=Outcome(False), joins=40, prior=-1.0, schedule=Geometric(window=90)),
)
WORDS: dict[str, list[Any]] = {
    **SETTINGS,
    "shape": [(2, 1), (3, 4), (9, 13)],  # K and words of a context
    "policy": ["hashed", Hashed(signed=True, interactions=(("a", "b"),)), Member(HASHED), SOME_HASHED],
    "numbers": [False, True],
}


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A switch: learners that begin after its call learn from composed parts."""
    return lambda: monkeypatch.setattr(engines, "compiled_learner", lambda engine: None)


def made(given: dict[str, Any]) -> Bandit:
    names = ("policy", "schedule", "changes", "exploration")
    ends = given["range"] and given["rewards"]
    return Bandit(given["shape"][0], random_state=3, reward_range=ends, **{name: given[name] for name in names})


@pytest.mark.parametrize("given", covering(SETTINGS), ids=str)
def test_it_decides_as_composed_parts_do(given: dict[str, Any], composed: Any, tmp_path: Path) -> None:
    contexts, rewards = world(*given["shape"], *given["rewards"])
    learner = made(given)
    found = played(learner, given["how"], contexts, rewards, tmp_path)
    assert learner._engine is not None
    assert learner._engine.compiled.learns
    composed()
    learner = made(given)
    expected = played(learner, given["how"], contexts, rewards, tmp_path)
    assert learner._engine is not None
    assert not learner._engine.compiled.learns
    assert found == expected


@pytest.mark.parametrize("given", covering(WORDS), ids=str)
def test_it_decides_as_composed_parts_do_on_words(given: dict[str, Any], composed: Any, tmp_path: Path) -> None:
    contexts, rewards = dictionaries(*given["shape"], *given["rewards"], given["numbers"])
    learner = made(given)
    found = played(learner, given["how"], contexts, rewards, tmp_path)
    assert learner._begun().compiled.learns
    composed()
    learner = made(given)
    expected = played(learner, given["how"], contexts, rewards, tmp_path)
    assert not learner._begun().compiled.learns
    assert found == expected


REAL: dict[str, list[Any]] = {
    "bounds": [(0.0, 1.0), (-5.0, 20.0), (1.0, 50.0)],  # the last on a log scale
    "d": [1, 4, 30],
    "features": ["auto", LINEAR, QUADRATIC, Settled(QUADRATIC, growth=1.5)],  # with 30 inputs, products of directions
    "schedule": ["geometric", "exact", Geometric(half_life=50), Geometric(window=80)],
    "rewards": [(0.0, 1.0), (-1.0, 3.0)],
    "exploration": [0.0, 0.1],
    "how": ["loop", "late", "run", "batches", "file", "unpacked"],
}


NORMAL: dict[str, list[Any]] = {
    "d": [1, 4, 30],
    "control": [15.0, 0.01],
    "baseline": ["mean", -0.3, None],
    "clip": ["theory", 3.0, None],
    "centre": [None, 2.0],
    "penalty": [0.1, 1.0],
    "schedule": ["geometric", Exact(oracle=None), Geometric(window=80)],
    "rewards": [(0.0, 1.0), (-1.0, 3.0)],
    "how": ["loop", "late", "run", "batches", "file", "unpacked"],
}


def paid_for(action: Any, best: Any, given: dict[str, Any]) -> Any:
    """Less for an action that is farther from the best one."""
    (low, high), (least, most) = given.get("bounds", (-3.0, 3.0)), given["rewards"]
    return most - (most - least) * np.minimum(1.0, np.abs(action - best) / (high - low))


def made_for_real(given: dict[str, Any]) -> Any:
    common = {"schedule": given["schedule"], "reward_range": given["rewards"], "random_state": 3}
    if "bounds" in given:
        common |= {name: given[name] for name in ("features", "exploration")}
        return ContinuousBandit(given["bounds"], **common)
    own = {name: given[name] for name in ("control", "baseline", "clip", "centre", "penalty")}
    return GaussianO2PL(**own, **common)


def lived(given: dict[str, Any], folder: Path) -> tuple[Any, list[Any]]:
    """A learner of real-valued actions, and what it decides and has learned."""
    rng, said = np.random.default_rng(given["d"]), list[Any]()
    X = rng.normal(size=(ROUNDS, given["d"])) * 10.0 ** rng.integers(-2, 3, given["d"])
    low, high = given.get("bounds", (-3.0, 3.0))
    best = low + (high - low) / (1 + np.exp(-X[:, 0]))
    learner = made_for_real(given)
    waiting: list[Any] = []
    for t in range(0 if given["how"] == "run" else ROUNDS):
        if given["how"] == "file" and t == 130:
            learner.save(folder / "learner.o2pl")
            learner = o2pl.load(folder / "learner.o2pl")
        decision = learner.act(X[t])
        said.append(tuple(decision))
        waiting.append((X[t], decision, paid_for(decision.action, best[t], given)))
        if given["how"] == "batches" and len(waiting) == 7:
            rows, drawn, paid = zip(*waiting, strict=True)
            actions, densities = zip(*drawn, strict=True)
            learner.partial_fit(np.array(rows), np.array(actions), np.array(paid), np.array(densities))
            waiting = []
        elif given["how"] in ("loop", "file") or (given["how"] == "late" and len(waiting) > 5):
            learner.update(*waiting.pop(0)[1:])
        elif given["how"] == "unpacked":
            row, (action, density), reward = waiting.pop(0)
            learner.update(row, action, reward, density)
        if t in (90, 200):
            said.append(learner.predict(X[:5]).tolist())
    for some in (slice(0, 100), slice(100, None)) if given["how"] == "run" else ():
        own = best[some]
        found = learner.run((X[some], lambda rows, actions, own=own: paid_for(actions, own[rows], given)))
        said.append((found.actions.tolist(), found.propensities.tolist()))
    header, arrays = learner._begun().state()
    arrays = {name: array for name, array in arrays.items() if not name.endswith(".ids")}
    return learner, [*said, header, {name: array.tolist() for name, array in arrays.items()}, learner.effort_]


@pytest.mark.parametrize("given", covering(REAL), ids=str)
def test_it_decides_real_valued_actions_as_composed_parts_do(given: Any, composed: Any, tmp_path: Path) -> None:
    learner, found = lived(given, tmp_path)
    assert learner._begun().compiled.learns
    composed()
    learner, expected = lived(given, tmp_path)
    assert not learner._begun().compiled.learns
    assert found == expected


@pytest.mark.parametrize("given", covering(NORMAL), ids=str)
def test_it_decides_with_a_normal_policy_as_composed_parts_do(given: Any, composed: Any, tmp_path: Path) -> None:
    learner, found = lived(given, tmp_path)
    assert learner._begun().compiled.learns
    composed()
    learner, expected = lived(given, tmp_path)
    assert not learner._begun().compiled.learns
    assert found == expected


@pytest.mark.parametrize("words", [False, True])
def test_what_was_learned_is_the_same_in_all_fields(words: bool, composed: Any) -> None:
    contexts, rewards = dictionaries(2, 1, 0.0, 1.0, True) if words else world(3, 4, 0.0, 1.0)

    def learned() -> list[Any]:
        policy = "hashed" if words else "union"
        learner = Bandit(2 if words else 3, policy=policy, random_state=0, changes=Change(memory=40, threshold=1.0))
        learner.run((contexts, rewards))
        header, arrays = learner._begun().state()
        ids = arrays.pop("log.ids")
        assert len(ids) == ROUNDS
        return [learner.changes_, header, {name: array.tolist() for name, array in arrays.items()}]

    found = learned()
    assert found[0]
    composed()
    assert found == learned()


def test_parts_of_somebody_else_are_left_to_the_composed_ones() -> None:
    contexts, rewards = world(3, 4, 0.0, 1.0)

    class Own(LBFGS):
        pass

    class Features(Standardise):
        pass

    for member in (Member(LINEAR, oracle=Own()), Member(Features())):
        learner = Bandit(3, policy=member, random_state=0)
        learner.run((contexts, rewards))
        assert not learner._begun().compiled.learns
    settings: list[dict[str, Any]] = [
        {"features": Features()}, {"learn_scale": True}, {"control": None}, {"schedule": Geometric(half_life=50)},
        {"schedule": "near-exact"}, {"bounds": (-1, 1)},
    ]  # fmt: skip
    for own in settings:
        normal = GaussianO2PL(random_state=0, **own)
        for context in contexts[:20]:
            normal.update(normal.act(context), 0.5)
        assert not normal._begun().compiled.learns


def test_rows_that_a_failed_run_did_not_append_are_not_taken_for_later_ones(composed: Any) -> None:
    contexts, rewards = world(3, 4, 0.0, 1.0)

    def decided() -> list[Any]:
        learner = Bandit(3, random_state=0)
        learner.run((contexts[:50], rewards[:50]))
        engine = learner._begun()
        with pytest.raises(RuntimeError, match="away"):
            simulate(engine, contexts[50:60].astype(np.float32), Rewards(_away))
        for context, paid in zip(contexts[60:], rewards[60:], strict=True):
            decision = learner.act(context)
            learner.update(decision, paid[decision.action])
        return [learner.log_.propensities.tolist(), engine.gains.tolist()]

    found = decided()
    composed()
    assert found == decided()


def _away(rows: Any, actions: Any) -> Any:
    raise RuntimeError("the world is away")


def test_unusual_dictionaries_are_decided_and_told_as_by_composed_parts(composed: Any) -> None:
    def said(learner: Bandit, call: Any, *given: Any) -> Any:
        try:
            found = call(*given)
        except o2pl.InvalidInput as error:
            return re.sub("[0-9a-f]{16}", "ID", str(error))
        return None if found is learner else tuple(found)

    def lived() -> list[Any]:
        learner, found = Bandit(3, policy="hashed", random_state=0), list[Any]()
        for t in range(60):
            learner.update(learner.act({"u": f"w{t % 7}", "x": 0.5 * t}), t % 3 / 2)
        changed, kept = {"u": "w1", "in": {"a": "b"}}, learner.act({"u": "w2"})
        action, propensity = learner.act(changed)
        changed["in"] = {"a": "c"}  # after the decision: another row, which is no decision of the learner
        found.append(said(learner, learner.update, changed, action, 1.0, propensity))
        kept.context["u"] = "w3"  # the row is what the decision says
        found += [said(learner, learner.update, kept, 1.0), said(learner, learner.update, kept, 1.0)]
        action, propensity = learner.act({"u": "w1", "one": True})
        found.append(
            said(learner, learner.update, {"one": 1, "u": "w1"}, action, 0.0, propensity)
        )  # equal dictionaries
        other = Bandit(3, policy="hashed", random_state=1)
        found.append(said(learner, learner.update, other.act({"u": "theirs"}), 0.5))
        for odd in (
            {},
            {"u": None},
            {"u": ["a", 1, "b"]},
            {"v": {"w": {"x": 2**70}}},
            {"u": float("nan")},
            {1: "a"},
            "u",
            [1.0],
        ):
            decided = said(learner, learner.act, odd)
            found.append(decided)
            if isinstance(decided, tuple):
                found.append(said(learner, learner.update, odd, decided[0], 1.0, decided[1]))
        for reward in (2.0, "1", None, True):
            found.append(said(learner, learner.update, learner.act({"u": "w1"}), reward))
        rows, waiting = learner.log_, len(learner._begun().pending)
        columns = rows.contexts.indices, rows.contexts.values, rows.contexts.offsets, rows.actions, rows.propensities
        return [*found, waiting, learner._begun().encoder.words.words(), *(each.tolist() for each in columns)]

    found = lived()
    composed()
    assert found == lived()
    assert sum(isinstance(each, str) for each in found) >= 6


def test_dictionaries_are_checked_by_the_schema_of_a_data_frame_that_comes_later(composed: Any) -> None:
    pd = pytest.importorskip("pandas")

    def refused() -> str:
        learner = Bandit(2, policy="hashed", random_state=0)
        frame = pd.DataFrame({"age": [1.0, 2.0] * 20, "city": ["x", "y"] * 20})
        learner.partial_fit(frame, np.array([0, 1] * 20), np.array([0.0, 1.0] * 20), np.full(40, 0.5))
        for _ in range(3):
            learner.update(learner.act({"age": 1.0, "city": "x"}), 1.0)
        with pytest.raises(o2pl.InvalidInput) as error:
            learner.act({"age": 1.0, "town": "x"})
        return str(error.value)

    found = refused()
    composed()
    assert found == refused()


def test_looking_at_rows_between_two_solves_takes_no_python_and_decides_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"left alone": 0, "read every round": 0}
    learn_if_due = engines.Engine.learn_if_due
    X = np.random.default_rng(4).normal(size=(600, 4)).astype(np.float32)
    lives: dict[str, list[Any]] = {}
    for name in asked:

        def counted(engine: engines.Engine, name: str = name) -> None:
            asked[name] += 1
            learn_if_due(engine)

        monkeypatch.setattr(engines.Engine, "learn_if_due", counted)
        learner, lives[name] = Bandit(3, random_state=0), []
        for x in X:
            action, propensity = learner.act(x)
            learner.update(x, action, float(x[action] > 0), propensity)
            lives[name].append((action, propensity))
            if name == "read every round":
                assert learner._engine is not None
                learner._engine.gains  # noqa: B018  # what was learned is taken back
    assert lives["left alone"] == lives["read every round"]
    assert asked["left alone"] < 0.8 * asked["read every round"]
