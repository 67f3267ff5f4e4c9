"""The joined log, written and read back: the same rows, and VW learns the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.rows import decision, joined, reward

import o2pl
from o2pl.errors import InvalidInput
from o2pl.serving.export import export, exports
from o2pl.serving.settings import Kind, Settings
from o2pl.serving.store import Store

BOTH = True  # databases


def ranked(store: Store, n: int = 60) -> list[dict[str, Any]]:
    """n decisions among three items, every second one rewarded, and what dsjson should say of them."""
    generator = np.random.default_rng(0)
    application = store.add_application("shop").id
    entries: list[Any] = []
    events = []
    for k in range(n):
        items = generator.permutation(["news", "sport", "müsic"]).tolist()
        context = {"user": {"id": f"u{k % 5}"}, "_multi": [{"id": each, "kind": each[0]} for each in items]}
        chances = generator.dirichlet([1, 1, 1])
        action, value = int(generator.integers(3)), float(generator.random())
        text = json.dumps(context, ensure_ascii=False).encode()
        row = decision(
            f"e{k}", application, context=text, actions=json.dumps(items).encode(), action=action,
            propensity=chances[action], probabilities=chances.astype("<f8").tobytes(), decided_at=1.7e9 + k,
        )  # fmt: skip
        entries.append(row)
        if k % 2:
            entries.append(reward(f"e{k}", value, application))
        order = [action, *(each for each in np.argsort(-chances).tolist() if each != action)]
        events.append(
            {
                "_label_cost": -value if k % 2 else -0.0,
                "_label_probability": chances[action],
                "_label_Action": action + 1,
                "_labelIndex": action,
                "EventId": f"e{k}",
                "a": [each + 1 for each in order],
                "c": context,
                "p": chances[order].tolist(),
            }
        )
    store.add(entries)
    joined(store, application)
    return events


def test_a_ranked_log_is_read_back(store: Store, tmp_path: Path) -> None:
    events = ranked(store)
    for name in ("log.parquet", "log.dsjson", "log.csv"):
        assert export(store, store.application("shop"), tmp_path / name) == 60
        log = o2pl.read_log(tmp_path / name, reward_range=(0, 1))
        np.testing.assert_allclose(log.propensities, [event["_label_probability"] for event in events])
        np.testing.assert_allclose(log.rewards, [-event["_label_cost"] for event in events])
        assert log.actions.tolist() == [event["_labelIndex"] for event in events]
        assert "60" in str(o2pl.describe(log, name))
    learner = o2pl.Bandit(policy="hashed actionwise", random_state=0).fit(log)
    assert learner.act(events[0]["c"]).propensity > 0
    assert exports(store) == [tmp_path / name for name in ("log.parquet", "log.dsjson", "log.csv")]


def test_dsjson_says_what_it_should(store: Store, tmp_path: Path) -> None:
    events = ranked(store, 4)
    export(store, store.application("shop"), tmp_path / "log.dsjson")
    lines = [json.loads(line) for line in (tmp_path / "log.dsjson").read_text().splitlines()]
    for line, event in zip(lines, events, strict=True):
        assert line.pop("Timestamp").startswith("2023-11-14T22:13:2")
        assert line.pop("VWState") == {"m": "0"}
        assert line == event


def test_vw_learns_the_same(store: Store, tmp_path: Path) -> None:
    vw = pytest.importorskip("vowpalwabbit")
    events = ranked(store)
    own = tmp_path / "own.dsjson"
    own.write_text("".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events))
    export(store, store.application("shop"), tmp_path / "log.dsjson")

    def learned(file: Path) -> list[Any]:
        workspace = vw.Workspace("--cb_explore_adf --softmax --lambda 5 --dsjson --quiet -q ui")
        predictions = []
        for line in file.read_text().splitlines():
            examples = workspace.parse(line)
            workspace.learn(examples)
            predictions.append(examples[0].get_prediction())
            workspace.finish_example(examples)
        workspace.finish()
        return predictions

    assert learned(tmp_path / "log.dsjson") == learned(own)
    assert len({tuple(each) for each in learned(own)}) > 10  # it does learn


def test_slots_are_decisions_of_their_own(store: Store, tmp_path: Path) -> None:
    application = store.add_application("shop").id
    slots = (decision("a", application, slot="top", action=0), decision("a", application, slot="side", action=1))
    store.add([slots, decision("b", application), reward("a", 0.5, application, slot="side")])
    joined(store, application)
    assert export(store, store.application("shop"), tmp_path / "log.parquet") == 3
    log = o2pl.read_log(tmp_path / "log.parquet", reward_range=(0, 1))
    assert log.actions.tolist() == [0, 1, 1]
    assert log.rewards.tolist() == [0.0, 0.5, 0.0]


def test_fixed_actions_have_names(store: Store, tmp_path: Path) -> None:
    application = store.add_application("banner", Kind.FIXED, Settings(actions=("red", "blue", "green"))).id
    rows: list[Any] = [
        decision(f"e{k}", application, context=b'{"age":%d}' % k, actions=b'["red","green"]', action=k % 2)
        for k in range(6)
    ]
    store.add([*rows, reward("e1", 1.0, application)])
    joined(store, application)
    for name in ("log.parquet", "log.dsjson"):
        assert export(store, store.application("banner"), tmp_path / name) == 6
    log = o2pl.read_log(tmp_path / "log.parquet", reward_range=(0, 1))
    assert [log.action_names[action] for action in log.actions] == ["red", "green"] * 3
    assert log.rewards.tolist() == [0, 1, 0, 0, 0, 0]
    line = json.loads((tmp_path / "log.dsjson").read_text().splitlines()[1])
    assert line["c"] == {"age": 1, "_multi": [{"action": {"name": "red"}}, {"action": {"name": "green"}}]}
    assert line["_label_Action"] == 2
    assert o2pl.read_log(tmp_path / "log.dsjson", reward_range=(0, 1)).actions.tolist() == [0, 1] * 3


@pytest.mark.parametrize("context", [b"[0.5,2]", b'{"a":0.5,"b":2}'])
def test_real_numbers(store: Store, tmp_path: Path, context: bytes) -> None:
    application = store.add_application("price", Kind.CONTINUOUS, Settings(bounds=(0.0, 9.0))).id
    store.add(
        [
            decision(f"e{k}", application, context=context, actions=None, action=None, value=k + 0.5, propensity=2.0)
            for k in range(5)
        ]
    )
    joined(store, application, default=0.25)
    for name in ("log.parquet", "log.dsjson"):
        export(store, store.application("price"), tmp_path / name)
        log = o2pl.read_log(tmp_path / name, reward_range=(0, 1))
        assert log.actions.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
        assert log.propensities.tolist() == [2.0] * 5
        assert log.rewards.tolist() == [0.25] * 5


def test_what_cannot_be_written(store: Store, tmp_path: Path) -> None:
    application = store.add_application("shop").id
    store.add([decision("a", application)])
    for name, said in (("log.parquet", "with an outcome yet"), ("log.xls", "found the file extension '.xls'")):
        with pytest.raises(InvalidInput, match=said):
            export(store, store.application("shop"), tmp_path / name)
    assert not list(tmp_path.glob("log*"))


def test_a_clock_that_was_far_off(store: Store, tmp_path: Path) -> None:
    application = store.add_application("shop").id
    store.add([decision("a", application, decided_at=1e300), decision("b", application, decided_at=-1e300)])
    joined(store, application)
    assert export(store, store.application("shop"), tmp_path / "log.parquet") == 2
    assert len(o2pl.read_log(tmp_path / "log.parquet", reward_range=(0, 1))) == 2
