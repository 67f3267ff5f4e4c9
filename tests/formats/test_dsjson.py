"""dsjson to columns and back: what was said is there, and VW learns the same of what was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.formats.vw_logs import events, learned, real_events, slot_events, write_events

import o2pl
from o2pl import InvalidInput
from o2pl.encode.sets import split_set
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.dsjson import read_dsjson, write_dsjson
from o2pl.formats.dsjson_table import Lines, scan_dsjson_for_table
from o2pl.formats.log_tables import log_of_log_table

pytest.importorskip("msgspec")


def table_of(made: list[dict[str, Any]], limit: int = 0) -> Any:
    lines = [json.dumps(event).encode() for event in made]
    return pa.concat_tables(read_dsjson(lines, BadRows("log", limit)))


def test_columns() -> None:
    made = events(40)
    table = table_of(made)
    row, event = table.slice(1, 1).to_pylist()[0], made[1]
    assert row["reward"] == -event["_label_cost"]
    assert row["action"] == event["_labelIndex"]
    assert row["propensity"] == event["_label_probability"] == row["probabilities"][0]
    assert row["ranking"] == [a - 1 for a in event["a"]]
    assert (row["event_id"], row["time"], row["slot"]) == ("e1", event["Timestamp"], None)
    assert json.loads(row["context"]) == event["c"]
    assert json.loads(row["rest"]) == {"Version": "1", "VWState": {"m": "m/1"}}
    assert json.loads(table["rest"][13].as_py())["future"] == {"field": [1, "two"]}
    assert table["drop_probability"].to_pylist()[:8] == [0.25, *[None] * 6, 0.25]
    assert table["skip_learn"].to_pylist()[11]
    assert table["reward"].to_pylist()[17] is None


def test_slots_and_real_numbers() -> None:
    slots = table_of(slot_events(3)).to_pylist()
    assert [row["slot"] for row in slots] == [0, 1] * 3
    assert slots[1]["propensity"] == 0.5
    assert json.loads(slots[0]["slot_rest"]) == {"_id": "s0"}
    (first, *_), (event, *_) = table_of(real_events(2)).to_pylist(), real_events(2)
    assert (first["action"], -first["reward"], first["propensity"]) == tuple(event["_label_ca"].values())


LOGS: dict[str, tuple[Any, str]] = {
    "decisions": (events, "--cb_explore_adf --dsjson"),
    "products": (events, "--cb_explore_adf --dsjson -q ::"),
    "slots": (slot_events, "--ccb_explore_adf --dsjson"),
    "real numbers": (real_events, "--cats 4 --bandwidth 1 --min_value 0 --max_value 4 --dsjson"),
}


@pytest.mark.parametrize("name", LOGS)
def test_vw_learns_the_same_from_what_was_written(name: str, tmp_path: Path) -> None:
    """To the last digit that VW writes; by way of Parquet."""
    pytest.importorskip("vowpalwabbit")
    make, arguments = LOGS[name]
    original = write_events(tmp_path / "original.dsjson", make(200))
    with original.open("rb") as file:
        parquet.write_table(pa.concat_tables(read_dsjson(file, BadRows("log"))), tmp_path / "log.parquet")
    again = tmp_path / "again.dsjson"
    again.write_bytes(b"".join(write_dsjson([parquet.read_table(tmp_path / "log.parquet")])))
    weights = learned(original, arguments)
    assert len(weights) > 1
    assert learned(again, arguments) == weights
    for before, after in zip(original.read_text().splitlines(), again.read_text().splitlines(), strict=True):
        assert json.loads(after) == json.loads(before)


def test_keys_that_stand_twice_stay_twice(tmp_path: Path) -> None:
    """VW counts both; a dictionary would keep one."""
    pytest.importorskip("vowpalwabbit")
    line = json.dumps(events(2)[1]).replace('"age": 1', '"age": 1, "age": 1').encode() + b"\n"
    (tmp_path / "once.dsjson").write_bytes(json.dumps(events(2)[1]).encode() + b"\n")
    (tmp_path / "twice.dsjson").write_bytes(line)
    (tmp_path / "again.dsjson").write_bytes(b"".join(write_dsjson(read_dsjson([line], BadRows("log")))))
    once, twice, again = (
        learned(tmp_path / f"{name}.dsjson", LOGS["decisions"][1]) for name in ("once", "twice", "again")
    )
    assert twice == again != once


BAD: dict[str, tuple[Any, str]] = {
    "cut short": (lambda e: json.dumps(e)[:300], r"line 2: found no complete JSON object \(Input data was truncated\)"),
    "no JSON": (lambda e: "hello", "line 2: found no complete JSON object"),
    "no context": (lambda e: {k: v for k, v in e.items() if k != "c"}, "found the fields .*, expected `c`"),
    "words": (lambda e: e | {"_label_cost": "much"}, "Expected `float . null`, got `str`, field `_label_cost`"),
    "lengths": (lambda e: e | {"p": [1.0]}, r"line 2: a: found \d actions and 1 probabilities, expected equal numbers"),
    "counted from 0": (lambda e: e | {"a": [0, 9], "p": [0.5, 0.5]}, "a: found 9, expected numbers below 2, as it"),
    "probability": (lambda e: e | {"_label_probability": 0}, r"_label_probability: found 0.0, expected a prob"),
    "action": (lambda e: e | {"_labelIndex": 9}, r"_labelIndex: found 9, expected a number from 0 to \d"),
    "kind": (lambda e: real_events(1)[0], "line 2: found events with and without _label_ca"),
    "no action": (
        lambda e: {k: v for k, v in e.items() if k not in ("_labelIndex", "_label_Action")},
        "found _label_cost without _labelIndex or _label_Action",
    ),
}  # fmt: skip


@pytest.fixture(params=[False, True], ids=["line by line", "compiled"])
def compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both readers, whatever the size."""
    monkeypatch.setattr(
        "o2pl.formats.dsjson.scan_dsjson_for_table", scan_dsjson_for_table if request.param else left_to_the_slow_reader
    )


def left_to_the_slow_reader(block: bytes, hashed: bool = False) -> Lines:
    """As `scan_dsjson_for_table` of lines that are all unusual."""
    found = scan_dsjson_for_table(block, hashed)
    return found._replace(fine=np.zeros_like(found.fine))


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("name", BAD)
def test_bad_lines_are_named_and_may_be_left_out(name: str) -> None:
    change, said = BAD[name]
    made = events(4)[1:]
    changed = change(made[1])
    lines = [json.dumps(made[0]), changed if isinstance(changed, str) else json.dumps(changed), "", json.dumps(made[2])]
    with pytest.raises(InvalidInput, match=said):
        list(read_dsjson([line.encode() for line in lines], BadRows("log")))
    bad = BadRows("log", limit=1)
    (table,) = read_dsjson([line.encode() for line in lines], bad)
    assert table["event_id"].to_pylist() == ["e1", "e3"]
    assert len(bad.found) == 1


def test_lists_are_learned_from_and_evaluated() -> None:
    """Whoever likes a colour clicks on its items in the first slot; nobody looks at the second."""
    log = log_of_log_table(table_of(slot_events(300)), BadRows("log"), reward_range=(0, 1))
    learner = o2pl.Bandit(random_state=0).fit(log[:400])
    found = o2pl.evaluate_lists(log[400:], learner, baseline="logged", at_any_time=True)
    assert found.n == 100
    assert found.slots[0].value > 0.7
    assert found.slots[1].value < 0.05
    assert found.differences[0].value > 0.2
    event = slot_events(3)[2]["c"]
    first, second = learner.act({"User": event["User"]}, event["_multi"], slots=2).actions
    assert event["_multi"][first]["Item"]["colour"] == event["User"]["likes"]
    assert first != second


def test_a_log_to_learn_from() -> None:
    made = events(60)
    log = log_of_log_table(table_of(made), BadRows("log"))
    kept = [e for e in made if "_label_cost" in e and not e.get("_skipLearn")]
    assert len(log) == len(kept)
    assert log.contexts.sizes.tolist() == [len(e["a"]) for e in kept]
    assert log.contexts[0] == kept[0]["c"]
    slots = log_of_log_table(table_of(slot_events(5)), BadRows("log"))
    assert slots.contexts.sizes.tolist() == [4, 3] * 5
    assert slots.slots is not None
    assert slots.slots.tolist() == [0, 1] * 5
    shared, items = split_set(slots.contexts[1])
    event = slot_events(1)[0]
    assert shared["slot"] == {"Slot": {"low": 1}, "place": "1"}
    assert items[slots.actions[1]] == event["c"]["_multi"][event["_outcomes"][1]["_a"][0]]
    real = log_of_log_table(table_of(real_events(5)), BadRows("log"))
    assert real.continuous
    assert real.contexts[0] == {"User": {"age": 0}}


def both(lines: list[str], monkeypatch: pytest.MonkeyPatch, limit: int = 0) -> tuple[Any, Any, list[str], list[str]]:
    """Rows of the compiled reader and of the other, with JSON parsed; and what was bad."""
    found = []
    for scan in (scan_dsjson_for_table, left_to_the_slow_reader):
        monkeypatch.setattr("o2pl.formats.dsjson.scan_dsjson_for_table", scan)
        bad = BadRows("log", limit)
        rows = [row for table in read_dsjson([line.encode() for line in lines], bad) for row in table.to_pylist()]
        for row in rows:
            for name in ("context", "rest", "slot_rest"):
                row[name] = row[name] and json.loads(row[name])
        found.append((rows, bad.found))
    (fast, fast_bad), (slow, slow_bad) = found
    return fast, slow, fast_bad, slow_bad


def test_the_compiled_reader_finds_what_the_other_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [*events(60), *slot_events(2)]  # slots are left to the other reader, and come at their place
    lines = [json.dumps(event, indent=None if k % 3 else 0).replace("\n", "  ") for k, event in enumerate(made)]
    lines[5:5] = ["", "  \t", json.dumps(slot_events(1)[0])]
    fast, slow, *_ = both(lines, monkeypatch)
    assert fast == slow
    assert [row["slot"] for row in fast[5:7]] == [0, 1]


def test_odd_lines_are_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    event = events(2)[1]
    c = '"c":{"_multi":[{}]}'
    odd = [
        json.dumps(event | {"_label_probability": 0.1 + 0.2 - 2e-17, "p": [1 / 3] * len(event["a"])}),
        json.dumps(event | {"EventId": 'a "quoted" é', "Timestamp": None, "pdrop": None, "_skipLearn": None}),
        json.dumps(event | {"_skipLearn": False, "a": [], "p": []}),
        json.dumps(event, ensure_ascii=False) + " \r",
        '{"_label_cost":-0.5e-30,"_label_probability":1,"_labelIndex":0,' + c + "}",
        '{"esc\\u0061ped":1,' + c + "}",
        "{" + c + "}",
        '{"a":[1],"p":[0.25],' + c + ',"Version":"1","Version":"2"}',
    ]
    fast, slow, *_ = both(odd, monkeypatch)
    assert fast == slow
    assert len(fast) == len(odd)


def test_what_is_wrong_is_said_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    event = events(2)[1]
    c = '"c":{"_multi":[{}]}'
    contexts = ['{"a":}', '{"a":01}', '{"a":"\x01"}', '{"a":nul}', '{"a" 1}', '{"a":1,}', "[1,]", '{"a":"\\q"}']
    contexts += [
        '{"a":"\\u12g4"}',
        '{"a":1.}',
        '{"a":-}',
        '{"a":1e}',
        '{"a":1e+}',
        '{"a":1.e2}',
        '{"a":tru}',
        "{",
        "[",
        '"',
        "",
    ]
    labels = ['"_label_cost":[]', '"_label_Action":1.5,"_label_cost":1', '"a":[1.5],"p":[1]', '"a":[1,],"p":[1]']
    labels += ['"a":{},"p":[1]', '"EventId":3', '"_skipLearn":1', '"_skipLearn":null,"_label_cost":1']
    labels += ['"_label_probability":2', '"a":[1],"p":[]']
    wrong = [
        *("{}", "[]", '{"c":1', "{" + c + "} x", json.dumps(event)[:-1], json.dumps(event) + "}"),
        *(f'{{"c":{text}}}' for text in contexts),
        *(f"{{{text},{c}}}" for text in labels),
    ]
    fast, slow, fast_bad, slow_bad = both([*wrong, json.dumps(event)], monkeypatch, limit=len(wrong))
    assert fast_bad == slow_bad
    assert fast == slow


def test_the_first_event_says_whether_actions_are_real_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [*real_events(1), *events(3), *real_events(2)]
    for lines in (made, ["x", *made], made[::-1], ["x", *made[::-1]]):
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        fast, slow, fast_bad, slow_bad = both(texts, monkeypatch, limit=len(texts))
        assert fast == slow
        assert len(fast) == 3
        assert fast_bad == slow_bad
        assert sum("with and without _label_ca" in said for said in fast_bad) == 3


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("field", ["EventId", "Version", "c", "future"])
def test_bytes_that_are_no_text_are_a_bad_line(field: str) -> None:
    lines = [json.dumps(event).encode() for event in events(3)]
    lines[1] = lines[1].replace(b"{", f'{{"{field}":"'.encode() + b'\xff",', 1)
    bad = BadRows("log", limit=1)
    (table,) = read_dsjson(lines, bad)
    assert table["event_id"].to_pylist() == ["e0", "e2"]
    assert "line 2: 'utf-8' codec can't decode byte 0xff" in bad.found[0]


def test_events_without_ends_do_not_reach_beyond_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every beginning of a line, as a file that was cut short has it."""
    whole = json.dumps(events(2)[1])
    pieces = [whole[:k] for k in range(1, len(whole))]
    fast, _, fast_bad, slow_bad = both(pieces, monkeypatch, limit=len(pieces))
    assert not fast
    assert fast_bad == slow_bad


def test_actions_that_are_counted_from_zero() -> None:
    made = [event for event in events(40) if "_label_cost" in event]
    from_zero = [event | {"a": [k - 1 for k in event["a"]]} for event in made]
    names = ["action", "reward", "propensity", "ranking", "probabilities"]
    one, zero = (
        [
            table.select(names).to_pylist()
            for table in read_dsjson([json.dumps(e).encode() for e in some], BadRows("log"))
        ]
        for some in (made, from_zero)
    )
    assert one == zero
    assert len({row["action"] for row in one[0]}) > 1


def test_slots_of_which_only_some_actions_are_listed() -> None:
    (event,) = slot_events(1)
    first, second = event["_outcomes"]
    first["_p"], second["_a"], second["_p"] = [0.9995, 0.0003, 0.0001, 0.0001], second["_a"][:1], [0.5]
    (table,) = read_dsjson([json.dumps(event).encode()], BadRows("log"))
    rankings = table["ranking"].to_pylist()
    assert rankings[0] == first["_a"]
    assert rankings[1][0] == second["_a"][0]
    assert sorted(rankings[1]) == sorted(first["_a"][1:])  # what the first slot left
    assert json.loads(next(iter(write_dsjson([table]))))["_outcomes"][1]["_a"] == second["_a"]


def test_slates_are_refused_by_that_word() -> None:
    line = b'{"c":{"_multi":[{"_slot_id":0,"x":1}],"_slots":[{"y":1}]}}\n'
    with pytest.raises(InvalidInput, match="log: found slates"):
        list(read_dsjson([line], BadRows("log")))


def test_the_joined_json_of_rl_client(tmp_path: Path) -> None:
    """As its joiner writes it: observations, costs before the baseline's, and numbers as actions."""
    about = {"Timestamp": "2021-08-24T14:38:15.0000000Z", "Version": "1", "VWState": {"m": "N/A"}}
    user, actions = {"GUser": {"id": "a", "hobby": "hiking"}}, [{"TAction": {"a1": "f1"}}, {"TAction": {"a2": "f2"}}]
    one = {
        "_label_cost": -2.5, "_label_probability": 0.5, "_label_Action": 2, "_labelIndex": 1, "a": [2, 1],
        "p": [0.5, 0.5],
        "o": [{"v": 3.0, "EventId": "e", "ActionTaken": False}, {"v": 2.0, "EventId": "e", "ActionTaken": False}],
        "c": {**user, "_multi": actions}, "_original_label_cost": -2.5,
    }  # fmt: skip
    slots = {
        "c": {**user, "_multi": actions, "_slots": [{"Slot": {"a1": "f1"}, "_id": "s0"}, {"Slot": {"a1": "f1"}}]},
        "_outcomes": [
            {"_label_cost": -1.0, "_id": "s0", "_a": [1, 0], "_p": [0.5, 0.5], "_o": [], "_original_label_cost": 0.0},
            {"_label_cost": -0.0, "_id": "s1", "_a": [0], "_p": [1.0], "_o": [], "_original_label_cost": 0.0},
        ],
        "_ba": [1, 0],
    }
    number = {"_label_ca": {"cost": -1.5, "pdf_value": 0.25, "action": 12.5}, "c": {"Joint": {"friction": 78}}}
    for name, event, found in (
        ("cb", one, ([1], [2.5], [0.5])),
        ("ccb", slots, ([1, 0], [1.0, 0.0], [0.5, 1.0])),
        ("ca", number, ([12.5], [1.5], [0.25])),
    ):
        path = tmp_path / f"{name}.json"
        path.write_text("\n".join(json.dumps({**event, **about, "EventId": f"e{k}"}) for k in range(3)))
        log = o2pl.read_log(path)
        assert (log.actions[: len(found[0])].tolist(), log.rewards[: len(found[0])].tolist()) == found[:2], name
        assert log.propensities[: len(found[0])].tolist() == found[2]
        assert len(log) == 3 * len(found[0])
