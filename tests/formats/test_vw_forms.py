"""The forms of VW's text: known by their lines, read as VW reads them, or refused by line and word."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.formats.vw_logs import close, learned_apart

import o2pl
from o2pl import InvalidInput
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.files import read_file_tables, write_file_tables
from o2pl.formats.vw_forms import completed_vw_ranking, is_vw_line, vw_form_of
from o2pl.formats.vw_text import read_vw_text

BY_LINE = b"""2:-1:0.5 'e1|user age:31 new
1:0:0.25 |user age:2 | loose

|user age:4
2:-0.5:0.5 |user age:31
"""
REAL = b"ca 3.5:-1:2.5 |user age:31\nca 1:0:0.25 'e2|user age:2\nca |user age:3\n"
SLOTS = b"""ccb shared 'e1|user age:31
ccb action |item a
ccb action |item b
ccb action |item c
ccb slot 2:-1:0.5 |place top
ccb slot 0:0:0.25,1:0.75 0,1 |place low

ccb shared |
ccb action |item a
ccb action |item b
ccb slot 1:-1:0.5 |
ccb slot |
"""


def rows(text: bytes, limit: int = 0, *, file: bool = False) -> list[dict[str, Any]]:
    lines = io.BytesIO(text) if file else text.splitlines()
    return [row for table in read_vw_text(lines, BadRows("log", limit)) for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (BY_LINE, "cb"),
        (b"1:0:0.5 |a x\n", "cb"),
        (b"2 1:0:0.5 |a x\n2 1:0:0.5 |a x\n", "cb"),
        (b"|a x\n0:1:0.5 |a y\n\n|a x\n", "adf"),
        (b"0:1:1 |a x\n", "adf"),
        (b"1:1:1 |a x\n\n1:1:1 |a x\n", "adf"),
        (b"0:1:0.5 |a y\n0:1:0.5 |a y\n", "adf"),
        (b"shared |u\n0:1:0.5 |a y\n0:1:0.5 |a y\n", "adf"),  # an error of the event, not another form
        (b"x1a1| a\n0:1:0.5 x1a2| b\n", "adf"),
        (b"1:-1:1 |A\n|B\n\n|C\n1:-1:1 |D\n", "adf"),
        (REAL, "ca"),
        (SLOTS, "ccb"),
    ],
)
def test_forms(text: bytes, form: str) -> None:
    assert vw_form_of(text, "log") == form


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"2 1:1:0.5 | a", True),
        (b"ca 1:1:0.5 |a", True),
        (b"'tag|a b", True),
        (b"slates shared |a", True),
        (b"a|b,action", False),
        (b"x,action", False),
        (b"e|f,action", False),
    ],
)
def test_first_lines(line: bytes, expected: bool) -> None:
    assert is_vw_line(line) is expected


def test_slates_are_refused_by_that_word() -> None:
    with pytest.raises(InvalidInput, match="log: found slates, one reward for choices in several slots together"):
        rows(b"slates shared 0.8 | a\nslates action 0 | b\nslates slot 0:0.8 | c\n\n")


@pytest.mark.parametrize("file", [False, True])
def test_a_decision_per_line(file: bool) -> None:
    first, second, third, fourth = rows(BY_LINE, file=file)
    assert (first["action"], first["reward"], first["propensity"], first["event_id"]) == (1, 1.0, 0.5, "e1")
    assert json.loads(first["context"]) == {"user": {"age": 31, "new": 1}}
    assert json.loads(second["context"]) == {"loose": 1, "user": {"age": 2}}
    assert (third["action"], third["reward"]) == (None, None)
    assert fourth["reward"] == 0.5


def test_real_valued_actions() -> None:
    first, second, third = rows(REAL)
    assert (first["action"], first["reward"], first["propensity"]) == (3.5, 1.0, 2.5)
    assert (second["action"], second["event_id"], third["action"]) == (1.0, "e2", None)


def test_a_policy_to_be_evaluated_is_kept(tmp_path: Path) -> None:
    (row,) = rows(b"2 1:0.5:0.25 | a\n")
    assert (row["action"], row["rest"]) == (0, '{"_eval": 2}')


def test_slots() -> None:
    first, second, third, fourth = rows(SLOTS)
    assert [row["slot"] for row in (first, second, third, fourth)] == [0, 1, 0, 1]
    assert (first["action"], first["reward"], first["propensity"], first["event_id"]) == (2, 1.0, 0.5, "e1")
    assert (first["ranking"], first["probabilities"]) == ([2, 0, 1], [0.5])  # what else could be chosen
    assert (second["ranking"], second["probabilities"]) == ([0, 1], [0.25, 0.75])
    assert third["ranking"] == [1, 0]
    assert (fourth["action"], fourth["ranking"]) == (None, [])
    assert json.loads(first["context"]) == {
        "user": {"age": 31},
        "_multi": [{"item": {"a": 1}}, {"item": {"b": 1}}, {"item": {"c": 1}}],
        "_slots": [{"place": {"top": 1}}, {"_inc": [0, 1], "place": {"low": 1}}],
    }


def test_what_else_a_slot_could_choose() -> None:
    assert completed_vw_ranking([2], 4, None, [0]) == [2, 1, 3]
    assert completed_vw_ranking([2], 4, [0, 2, 3], [0]) == [2, 3]
    assert completed_vw_ranking([], 4, None, []) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BY_LINE + b"0:1:0.5 | a\n", "line 6: label: found the action 0, expected an integer from 1"),
        (BY_LINE + b"1.5:1:0.5 | a\n", "line 6: label: found the action 1.5, expected an integer from 1"),
        (BY_LINE + b"1:1:0.5 2:1:0.5 | a\n", "line 6: found a second label, '2:1:0.5'"),
        (BY_LINE + b"1:1:1.5 | a\n", "line 6: label: found the probability 1.5"),
        (BY_LINE + b"1:nan:0.5 | a\n", "line 6: found the label '1:nan:0.5'"),
        (REAL + b"1:1:0.5 | a\n", "line 4: found '1:1:0.5 | a', expected a line that starts with 'ca'"),
        (REAL + b"ca 1:1:0 | a\n", "line 4: label: found the density 0, expected a density above 0"),
        (b"\n" + SLOTS + b"|a\n", r"line 14: found '', expected 'ccb shared' once"),
        (SLOTS.replace(b"slot 2:-1", b"slot 3:-1"), "line 5: label: found the action '3', expected an integer from 0"),
        (SLOTS.replace(b"0,1 |", b"0,x |"), "line 6: label: found the action 'x', expected an integer from 0 to 2"),
        (b"ccb shared |a\nccb slot |b\n\n" + SLOTS, "line 1: found 0 actions and 1 slots"),
    ],
)
def test_bad_lines_are_named_and_may_be_left_out(text: bytes, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        rows(text)
    assert 1 < len(rows(text, limit=1)) <= 4


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (BY_LINE * 3, "--cb 2"),
        (REAL.replace(b"2.5", b"0.2") * 5, "--cats 8 --bandwidth 1 --min_value 0 --max_value 8"),
        ((SLOTS + b"\n") * 3, "--ccb_explore_adf"),
    ],
    ids=["cb", "ca", "ccb"],
)
def test_vw_learns_the_same_from_what_is_written(text: bytes, arguments: str, tmp_path: Path) -> None:
    pytest.importorskip("vowpalwabbit")
    (tmp_path / "log.txt").write_bytes(text)
    weights = learned_apart(tmp_path / "log.txt", arguments)
    assert len(weights) > 2
    for form in ("vw", "parquet", "dsjson"):
        write_file_tables(tmp_path / f"as.{form}", read_file_tables(tmp_path / "log.txt", BadRows("log")))
        again = tmp_path / ("as.dsjson" if form == "dsjson" else "again.vw")
        if form != "dsjson":
            write_file_tables(again, read_file_tables(tmp_path / f"as.{form}", BadRows("log")))
        elif arguments == "--cb 2":
            continue  # VW's dsjson has no such decisions: see test_json_columns
        assert close(learned_apart(again, arguments + " --dsjson" * (form == "dsjson")), weights, 1e-6), form


def test_logs_of_every_form_are_learned_from(tmp_path: Path) -> None:
    for name, text, expected in (("cb", BY_LINE, 3), ("ca", REAL, 2), ("ccb", SLOTS, 3)):
        (tmp_path / name).write_bytes(text)
        log = o2pl.read_log(tmp_path / name, reward_range=(-1, 1))
        assert len(log) == expected
        assert log.continuous == (name == "ca")
    assert log.contexts.sizes.tolist() == [3, 2, 2]  # the second slot of the first event has what was left and allowed
    assert log.actions.tolist() == [2, 0, 1]
    fixed = o2pl.read_log(tmp_path / "cb", reward_range=(-1, 1))
    assert o2pl.Bandit(policy="hashed", random_state=0).fit(fixed).act({"user": {"age": 31}}).action in (0, 1)
