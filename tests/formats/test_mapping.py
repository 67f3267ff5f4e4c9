"""JSON lines of a user's own shape, read by a mapping; errors name line and path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import o2pl
from o2pl import InvalidInput
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.mapping import mapping_of, read_mapped

MAP = "context=$.user, items=$.candidates[*], chosen=$.shown, reward=$.click, propensity=$.p"
EVENT: dict[str, Any] = {
    "user": {"age": 31, "city": "Röm"},
    "candidates": [{"id": "a", "price": 3}, {"id": "b", "price": 2}],
    "shown": 1,
    "click": True,
    "p": 0.25,
    "at": {"when": "2024-05-01", "days": [3, 4]},
    "request id": "e1",
}


def rows(mapping: str, *events: Any, limit: int = 0) -> list[dict[str, Any]]:
    lines = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in events]
    return [row for t in read_mapped(lines, mapping_of(mapping), BadRows("log.jsonl", limit)) for row in t.to_pylist()]


def changed(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in (EVENT | fields).items() if value is not ...}


def test_items() -> None:
    (row,) = rows(f'{MAP}, id=$["request id"], time=$.at.when', EVENT)
    assert json.loads(row.pop("context")) == {**EVENT["user"], "_multi": EVENT["candidates"]}
    assert row == {"action": 1, "reward": 1.0, "propensity": 0.25, "event_id": "e1", "time": "2024-05-01"}


def test_ids_and_words_say_which_item_was_chosen() -> None:
    by_id = "items=$.candidates[*], ids=$.candidates[*].id, chosen=$.shown, reward=$.click"
    assert [row["action"] for row in rows(by_id, changed(shown="b"), changed(shown="a"))] == [1, 0]
    numbers = changed(shown=7, candidates=[{"id": 5}, {"id": 7}])
    assert rows(by_id, numbers)[0]["action"] == 1
    (row,) = rows("items=$.candidates, chosen=$.shown, reward=$.click", changed(candidates=["x", "y"], shown="y"))
    assert row == {"context": '{"_multi": [{"item": "x"}, {"item": "y"}]}', "action": 1, "reward": 1.0}


def test_named_numbered_and_real_valued_actions() -> None:
    mapping = "context=$.at.days[1], context=$.user, chosen=$.shown, reward=$.click"
    (row,) = rows(mapping, changed(shown="red"))
    assert json.loads(row["context"]) == {"days": 4, "user": EVENT["user"]}
    assert row["action"] == "red"
    assert [row["action"] for row in rows(mapping, changed(shown=2), changed(shown=2.5))] == [2, 2.5]
    assert rows("context=$.at.when, chosen=$.shown, reward=$.p", EVENT)[0]["context"] == '{"when": "2024-05-01"}'
    assert rows("chosen=$.shown, reward=$.p", EVENT)[0]["context"] == "{}"


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (changed(user=...), r"line 2: \$.user: found nothing there \(fields: candidates, shown, .*, expected features"),
        (changed(p="0.5"), r'line 2: \$.p: found "0.5", expected a number'),
        (changed(p=[0.5, 0.5]), r"line 2: \$.p: found \[0.5, 0.5\], expected a number"),
        (changed(click=None), r"line 2: \$.click: found nothing there, expected a number"),
        (changed(candidates=[]), r"line 2: \$.candidates\[\*\]: found \[\], expected a list of at least one item"),
        (changed(candidates=3), r"line 2: \$.candidates\[\*\]: found nothing there"),
        (changed(candidates=[None]), r"line 2: \$.candidates\[\*\]: found null for item 0"),
        (changed(shown=2), r"line 2: \$.shown: found 2, expected the place of an item, from 0 to 1, or with ids="),
        (changed(shown=True), r"line 2: \$.shown: found true, expected the place of an item"),
        (changed(shown="c"), r'line 2: \$.shown: found "c", which none of the items has'),
        (b"[1]", "line 2: found .1., expected an object"),
        (b'{"user"', "line 2: found no complete JSON object"),
    ],
)
def test_bad_lines_are_named_by_line_and_path_and_may_be_left_out(event: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=f"log.jsonl, {said}"):
        rows(MAP, EVENT, event)
    assert len(rows(MAP, EVENT, event, EVENT, limit=1)) == 2


def test_other_bad_lines() -> None:
    by_id = "items=$.candidates[*], ids=$.candidates[*].id, chosen=$.shown, reward=$.click"
    for mapping, event, said in (
        (by_id, changed(shown="c"), r'\$.shown: found "c", which none of the items has'),
        (by_id, changed(shown="b", candidates=[{"id": "b"}] * 2), "several items have"),
        (
            by_id.replace("ids=$.candidates[*].id", "ids=$.at.days[0]"),
            EVENT,
            r"\$.at.days\[0\]: found 3, expected an id",
        ),
        ("chosen=$.user, reward=$.click", EVENT, r'\$.user: found {"age": 31.*, expected an action'),
        ("context=$.user, context=$.at.user, chosen=$.shown, reward=$.p", changed(at={"user": 1}), "called 'user'"),
    ):
        with pytest.raises(InvalidInput, match=f"line 1: .*{said}"):
            rows(mapping, event)
    with pytest.raises(InvalidInput, match=r'line 2: \$.shown: found "red", and 1 before, expected words or numbers'):
        rows("chosen=$.shown, reward=$.click", EVENT, changed(shown="red"))


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        ("context=$.user, chosen=$.a", "map: found no 'reward' in"),
        ("reward=$.user", "map: found no 'chosen' in"),
        ("rewards=$.user", "map: found the role 'rewards', expected 'reward'"),
        ("reward", "map: found 'reward', expected role=path, such as context="),
        ("reward=$.a, reward=$.b", "map: found 'reward' twice"),
        ("reward=a", "map: found the path 'a', expected one such as"),
        ("reward=$a", "map: found the path '.a'"),
        ("chosen=$.a, reward=$.b[x]", r"map: found the path '\$.b\[x\]'"),
        ("chosen=$.a, reward=$.b, ids=$.c", "map: found ids without items"),
    ],
)
def test_wrong_mappings(mapping: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        mapping_of(mapping)


def test_a_log_is_learned_from(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    path = tmp_path / "log.jsonl"
    with path.open("w") as file:
        for k in range(600):
            user, items = ["ann", "bob"][k % 2], generator.permutation(["news", "sport"]).tolist()
            clicked = int(items[0] == {"ann": "news", "bob": "sport"}[user])
            event = {"user": {"id": user}, "candidates": [{"kind": kind} for kind in items], "shown": 0}
            file.write(json.dumps(event | {"click": clicked, "p": 0.5}) + "\n")
    log = o2pl.read_log(path, reward_range=(0, 1), mapping=MAP)
    learner = o2pl.Bandit(policy="hashed actionwise", random_state=0).fit(log)
    assert len(log) == 600
    shown = [learner.act({"id": "bob"}, [{"kind": "news"}, {"kind": "sport"}]).action for _ in range(20)]
    assert np.mean(shown) > 0.8
    with pytest.raises(InvalidInput, match=r"found the fields user, candidates, .* --map"):
        o2pl.read_log(path)
    with pytest.raises(InvalidInput, match="mapping: found with a frame"):
        o2pl.read_log(pd.DataFrame({"a": [1]}), mapping=MAP)
    (tmp_path / "log.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInput, match=r"log\.csv: found another format than JSON lines"):
        o2pl.read_log(tmp_path / "log.csv", mapping=MAP)
    (tmp_path / "list.json").write_text('[{"a":1}]')
    with pytest.raises(InvalidInput, match=r"list.json: found a JSON list, expected an object per line: `jq -c"):
        o2pl.read_log(tmp_path / "list.json")
