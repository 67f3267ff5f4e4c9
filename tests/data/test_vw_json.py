"""Events of VW's text as JSON: one by one and compiled, beside JSON that is left as it is."""

from __future__ import annotations

import json

import pytest

from o2pl.data.vw_events import is_vw_event, vw_event_json
from o2pl.data.vw_json import as_json

TEXTS = [
    b"shared 't |User age:31 city=Rome |Page x:-0.50\n|Item price:3 kind=news\n0:-1:0.8 |Item price:2.5e1\n \r\n\n",
    b'{"u":1,"_multi":[{"a":"|"}]}',
    b"0:1:0.5 | loose :3 12:4|A\r\n|\n|A a:b:1 |B\n",
    b"shared |\n|a x",
    "|é ü:1".encode(),
    b'{"_multi":[{}]}',
]


def test_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = list(as_json(TEXTS))
    monkeypatch.setattr("o2pl.data.vw_json._MANY", 0)
    monkeypatch.setattr("o2pl.data.vw_json._BLOCK", 4)
    found = list(as_json(TEXTS))
    assert [repr(json.loads(text)) for text in found] == [repr(json.loads(text)) for text in plain]
    assert (found[1], found[5]) == (TEXTS[1], TEXTS[5])
    assert found[3] == b'{"_multi":[{"a":{"x":1}}]}'
    assert json.loads(found[2]) == {"_multi": [{"loose": 1, "": 3, "12": 4, "A": {}}, {}, {"A": {"a:b": 1}, "B": {}}]}
    assert json.loads(found[0])["Page"] == {"x": -0.5}


def test_events_are_told_from_json() -> None:
    assert [is_vw_event(text) for text in TEXTS] == [True, False, True, True, True, False]
    assert [is_vw_event(text) for text in (b"", b" {}", b"3", b'"a|b"', b"-1")] == [False] * 5
    assert json.loads(vw_event_json(TEXTS[0]))["_multi"][1] == {"Item": {"price": 25.0}}
