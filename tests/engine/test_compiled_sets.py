"""Action sets in the compiled core, beside the composed parts: to the last bit the same."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.covering import covering
from tests.engine.lives import HASHED, SETTINGS, Listed, dictionaries, played

import o2pl
from o2pl import Bandit, Geometric, Member
from o2pl.engine import engine as engines
from o2pl.features import Hashed
from o2pl.objectives.outcome import Outcome
from o2pl.oracles.lbfgs import LBFGS
from o2pl.policies import ActionWise

SET_MEMBERS = (
    Member(HASHED, ActionWise(), objective=Outcome(False, 0.5), schedule=Geometric(half_life=60)),
    Member(HASHED, ActionWise(), objective=Outcome(False, 2.0), joins=20, schedule=Geometric(window=90)),
    Member(
        HASHED, ActionWise(), objective=Outcome(False), joins=40, oracle=LBFGS(iterations=3, tolerance=1e-3, memory=2)
    ),
)
SETS: dict[str, list[Any]] = {
    **SETTINGS,
    "shape": [(1, 1), (3, 4), (9, 13)],  # most items, and words of each
    "policy": [
        "union",
        Member(Hashed(signed=True, interactions=(("a", "b"),)), ActionWise(), objective=Outcome(False)),
        SET_MEMBERS,
    ],
    "schedule": ["geometric", Geometric(half_life=50), Geometric(window=80)],  # others solve without stored curvature
    "numbers": [False, True],
    "user": [False, True],
    "exploration": ["auto", 0.1],
}


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A switch: learners that begin after its call learn from composed parts."""
    return lambda: monkeypatch.setattr(engines, "compiled_learner", lambda engine: None)


def offers(K: int, d: int, low: float, high: float, numbers: bool, user: bool) -> tuple[Any, Any]:
    """1 to K items with the words of `dictionaries`, and users, to whom some of them matter."""
    words, rewards = dictionaries(K, d, low, high, numbers)
    rng, made = np.random.default_rng(K), []
    for t, context in enumerate(words):
        items = [{**context, "place": f"p{k}"} for k in range(rng.integers(1, K + 1))]
        made.append(({"kind": f"u{t % 5}", "age": 0.1 * (t % 7)} if user else None, items))
    return made, rewards


@pytest.mark.parametrize("given", covering(SETS), ids=str)
def test_it_decides_among_items_as_composed_parts_do(given: dict[str, Any], composed: Any, tmp_path: Path) -> None:
    contexts, rewards = offers(*given["shape"], *given["rewards"], given["numbers"], given["user"])

    def lived() -> tuple[Bandit, list[Any]]:
        names = ("policy", "schedule", "changes", "exploration")
        ends = given["range"] and given["rewards"]
        learner = Bandit(random_state=3, reward_range=ends, **{name: given[name] for name in names})
        return learner, played(Listed(learner), given["how"], contexts, rewards, tmp_path)

    learner, found = lived()
    assert learner._begun().compiled.learns
    composed()
    learner, expected = lived()
    assert not learner._begun().compiled.learns
    assert found == expected


def said(learner: Any, call: Any, *given: Any, **named: Any) -> Any:
    """What a call returns, or the error's message."""
    try:
        found = call(*given, **named)
    except o2pl.InvalidInput as error:
        return re.sub("[0-9a-f]{16}", "ID", str(error))
    return None if found is learner else tuple(found)


def columns(learner: Bandit) -> list[Any]:
    """The log, but for the ids."""
    arrays = learner._begun().log.state()
    return [{name: array.tolist() for name, array in arrays.items() if name != "log.ids"}, learner.effort_]


def test_unusual_sets_are_decided_and_told_as_by_composed_parts(composed: Any) -> None:
    item, other = {"n": "i1", "x": 2.0}, {"n": "i2", "x": -1.0, "on": True}

    def lived() -> list[Any]:
        learner, found = Bandit(random_state=0), list[Any]()
        for t in range(60):
            learner.update(
                learner.act({"u": f"w{t % 7}"}, [{"n": f"i{k}", "x": 0.5 * t} for k in range(1 + t % 4)]), 0.5
            )
        kept, again = learner.act({"u": "w2"}, [item, other]), learner.act(None, (other, item, item))
        sets = kept.context
        found.append([each.tolist() for each in (sets.values.indices, sets.values.values, sets.offsets)])
        again = pickle.loads(pickle.dumps(again))
        found += [said(learner, learner.update, again, 1.0), said(learner, learner.update, again, 1.0)]
        listed = [dict(item), dict(other)]
        action, propensity = learner.act(listed)
        listed[0]["n"] = "i7"  # after the decision: another set, which is no decision of the learner
        found.append(said(learner, learner.update, listed, action, 1.0, propensity))
        found.append(said(learner, learner.update, o2pl.Decision(2, 0.5).keep(kept.context), 1.0))  # it has two items
        elsewhere = Bandit(random_state=1).act({"u": "theirs"}, [item, other])
        found.append(said(learner, learner.update, elsewhere, 0.5))
        for user, items in (
            ({}, [item]),
            ([1.0, 2.0], [item]),
            ({"u": ["a", 1, "b"]}, [item, {}]),
            ({"u": {"v": {"w": 2**70}}}, [item]),
            ({"u": "w1"}, [{"x": float("nan")}]),
            ({"u": "w1"}, [{1: "a"}]),
            ({"u": "w1"}, []),
            ({"u": "w1"}, "ab"),
            ("u", [item]),
            (None, [item, 3]),
            ({"u": "w1"}, item),
        ):
            decided = said(learner, learner.act, user, items)
            found.append(decided)
            if isinstance(decided, tuple):
                found.append(said(learner, learner.update, user, items, decided[0], 1.0, decided[1]))
        for context in (
            [item, other],
            [],
            [3],
            (item, other),
            {"shared": {"u": "w1"}, "actions": [item]},
            item,
            "u",
            None,
        ):
            found.append(said(learner, learner.act, context))
        for reward in (2.0, "1", None, True):
            found.append(said(learner, learner.update, learner.act({"u": "w1"}, [item, other]), reward))
        found += [columns(learner), len(learner._begun().pending), learner._begun().encoder.words.words()]
        for t in range(40):  # lists, and items with ids, which the compiled core does not learn from
            learner.update(learner.act({"u": "w1"}, [item, other, item], slots=2), [1.0, t % 2])
            learner.update(learner.act({"u": f"w{t % 3}"}, [item, other], ids=["a", "b"]), t % 2)
            learner.update(learner.act({"u": f"w{t % 3}"}, [item, other]), 1.0)
        return [*found, columns(learner), tuple(learner.act({"u": "w1"}, [item, other]))]

    found = lived()
    composed()
    assert found == lived()
    assert sum(isinstance(each, str) for each in found) >= 6


def test_what_a_decision_keeps_of_a_set_is_read_with_care() -> None:
    learner = Bandit(random_state=0)
    for t in range(40):
        learner.update(learner.act({"u": f"w{t % 7}"}, [{"n": f"i{k}"} for k in range(3)]), 0.5)
    for forged in (
        lambda content, kind: (content[:-1], kind),
        lambda content, kind: (content[8:], kind),
        lambda content, kind: (b"", kind),
        lambda content, kind: (content, (2**60, kind[1])),
        lambda content, kind: (content, (-1, kind[1])),
        lambda content, kind: (content[:8] + b"\xff" * 16 + content[24:], kind),
        lambda content, kind: (content[:32] + b"\xff" * 4 + content[36:], kind),
        lambda content, kind: (content[:-4] + b"\xff" * 4, kind),
    ):
        decision = learner.act({"u": "w1"}, [{"n": f"i{k}"} for k in range(3)])
        number, content, kind = decision.kept
        decision.kept = number, *forged(content, kind)
        before = len(learner.log_)
        with pytest.raises((ValueError, IndexError)):
            learner.update(decision, 1.0)
        assert len(learner.log_) == before


def test_sets_of_numbers_are_decided_and_told_in_one_call_as_by_the_engine() -> None:
    rng = np.random.default_rng(0)
    sets = [rng.normal(size=(k, 3)) for k in rng.integers(1, 9, 120)]
    odd = [
        sets[0].astype(np.float32),
        sets[0].tolist(),
        sets[0][:, ::-1],
        sets[0][:0],
        sets[0][:, :2],
        sets[0] * np.nan,
        sets[0][0],
    ]

    def lived(act: Any, update: Any) -> list[Any]:
        learner, found = o2pl.O2PL(policy="actionwise", random_state=0), list[Any]()
        for t, one in enumerate(sets):
            decision = act(learner, one)
            found.append((tuple(decision), decision.context.tolist()))
            if t % 2:
                update(learner, decision, 0.5)
            else:
                update(learner, one, decision.action, t % 3 / 2, decision.propensity)
        for one in odd:
            found.append(said(learner, act, learner, one))
            decision = act(learner, sets[1])
            found.append(said(learner, update, learner, one, 0, 0.5, 0.5))
            found.append(said(learner, update, learner, o2pl.Decision(0, 0.5).keep(one), 0.5))
            found.append(said(learner, update, learner, decision, 1.0))
            found.append(said(learner, update, learner, decision, 1.0))
            found.append(said(learner, update, learner, sets[1], len(sets[1]), 1.0, 0.5))
        return [*found, len(learner._begun().pending), columns(learner)]

    assert lived(o2pl.O2PL.act, o2pl.O2PL.update) == lived(o2pl.O2PL.act.__wrapped__, o2pl.O2PL.update.__wrapped__)
