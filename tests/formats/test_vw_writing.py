"""What VW's text can hold, and what it cannot; that VW learns the same from it is in test_vw_text and test_vw_files."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from o2pl import InvalidInput
from o2pl.formats.vw_writing import write_vw_text

COLUMNS: dict[str, list[Any]] = {"context": ['{"a":{"x":1}}'], "action": [1], "reward": [1.0], "propensity": [0.5]}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"drop_probability": [0.5]}, "found drop_probability"),
        ({"context": ['{"a b":1}']}, "found the name 'a b', with a blank, a colon or a bar"),
        ({"context": ['{"a:b":{"x":1}}']}, "found the name 'a:b'"),
        ({"context": ['{"a|b":[1]}']}, r"found the name 'a\|b'"),
    ],
)
def test_what_text_cannot_hold(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        list(write_vw_text([pa.table(COLUMNS | changes)]))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, b"2:-1.0:0.5 |a x:1\n"),
        ({"event_id": ["e1"]}, b"2:-1.0:0.5 'e1|a x:1\n"),
        ({"rest": ['{"_eval":3,"_tag":"seed=1"}']}, b"3 2:-1.0:0.5 'seed=1|a x:1\n"),
        ({"action": [1.5]}, b"ca 1.5:-1.0:0.5 |a x:1\n"),
        ({"action": [1.5], "reward": [None]}, b"ca |a x:1\n"),
        ({"context": ['{"word":"a b:c|d"}']}, b"2:-1.0:0.5 | worda_b_c_d\n"),
        ({"context": ['{"_multi":[{"a":1}]}'], "action": [0], "skip_learn": [True]}, b"| a:1\n\n"),
    ],
)
def test_decisions_of_one_line(changes: dict[str, Any], text: bytes) -> None:
    assert list(write_vw_text([pa.table(COLUMNS | changes)])) == [text]


def test_slots_of_events() -> None:
    context = '{"u":1,"_multi":[{"a":1},{"b":1},{}],"_slots":[{"s":1},{"_inc":[0,2]},{}]}'
    table = pa.table(
        {
            "context": [context] * 5,
            "action": [1, 2, None, 0, 2],
            "reward": [1.0, -2.0, None, 0.0, 1.0],
            "propensity": [0.5, 1.0, None, 0.25, 0.5],
            "slot": [0, 1, 2, 0, 1],
            "ranking": [[1, 0, 2], [2], [], [0, 1, 2], [2]],
            "probabilities": [[0.5, 0.25, 0.25], [1.0], [], [0.25], [0.5]],
            "event_id": ["one", "one", "one", "two", "two"],
        }
    )
    one, two = b"".join(write_vw_text([table[:2], table[2:]])).decode().strip().split("\n\n")
    assert one.split("\n") == [
        "ccb shared 'one| u:1", "ccb action | a:1", "ccb action | b:1", "ccb action |",
        "ccb slot 1:-1.0:0.5,0:0.25,2:0.25 | s:1", "ccb slot 2:2.0:1.0 0,2 |", "ccb slot |",
    ]  # fmt: skip
    assert two.split("\n")[4:] == ["ccb slot 0:0.0:0.25 | s:1", "ccb slot 2:-1.0:0.5 0,2 |", "ccb slot |"]
