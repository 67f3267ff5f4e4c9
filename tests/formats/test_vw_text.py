"""VW's text to columns and back; VW finds the same features in text, JSON and what was converted."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.formats.vw_logs import close, events, learned, write_events

from o2pl import InvalidInput
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.dsjson import read_dsjson, write_dsjson
from o2pl.formats.vw_text import read_vw_text
from o2pl.formats.vw_writing import write_vw_text

TEXT = b"""shared 'first|User age:31 city=Rome new |Page:2 x:1.5 y
|Item price:3 kind=news
0:-1:0.8 |Item price:2.5 kind=sport | loose:1 alone

|Item x
0:0.5:0.25 |Item :3 12:4
"""


def rows(text: bytes, limit: int = 0) -> list[dict[str, Any]]:
    return [row for table in read_vw_text(text.splitlines(), BadRows("log", limit)) for row in table.to_pylist()]


@pytest.fixture(params=[False, True], ids=["line by line", "compiled"])
def compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both readers, whatever the size."""
    monkeypatch.setattr("o2pl.formats.vw_text._LONG", -1 if request.param else 1 << 60)


@pytest.mark.usefixtures("compiled")
def test_columns() -> None:
    first, second = rows(TEXT)
    assert (first["action"], first["reward"], first["propensity"], first["event_id"]) == (1, 1.0, 0.8, "first")
    assert json.loads(first["context"]) == {
        "User": {"age": 31, "city=Rome": 1, "new": 1},
        "Page": {"x": 3.0, "y": 2.0},
        "_multi": [
            {"Item": {"price": 3, "kind=news": 1}},
            {"loose": 1, "alone": 1, "Item": {"price": 2.5, "kind=sport": 1}},
        ],
    }
    assert (second["action"], second["reward"], second["propensity"]) == (1, -0.5, 0.25)
    assert json.loads(second["context"])["_multi"][1] == {"Item": {"": 3, "12": 4}}


def test_vw_learns_the_same_from_text_that_was_written_again(tmp_path: Path) -> None:
    pytest.importorskip("vowpalwabbit")
    original, again, as_json = tmp_path / "original.vw", tmp_path / "again.vw", tmp_path / "as.dsjson"
    twice = TEXT.replace(b"new", b"new new")  # counts twice
    original.write_bytes(twice)
    tables = list(read_vw_text(twice.splitlines(), BadRows("log")))
    again.write_bytes(b"".join(write_vw_text(tables)))
    weights = learned(original, "--cb_explore_adf")
    assert len(weights) > 8
    assert learned(again, "--cb_explore_adf") == weights
    pytest.importorskip("msgspec")
    as_json.write_bytes(b"".join(write_dsjson(tables)))
    assert close(learned(as_json, "--cb_explore_adf --dsjson"), weights, 1e-6)


def test_vw_finds_the_features_of_json_in_the_text_made_of_it(tmp_path: Path) -> None:
    """Words, booleans, arrays, nested objects; VW rounds numbers of text a little differently."""
    pytest.importorskip("vowpalwabbit")
    pytest.importorskip("msgspec")
    made = [event for k, event in enumerate(events(120)) if k % 7]
    for k, event in enumerate(made):
        del event["c"]["User"]['é "x"']
        event["c"] |= {"flag": True, "off": False, "none": None, "top": 2, "word": "a b:c|d"}
        event["c"]["User"] |= {"deep": {"er": {"v": k % 3}}, "list": [{"p": 1}, {"q": "r"}], "_text": "one two"}
    original = write_events(tmp_path / "original.dsjson", made)
    with original.open("rb") as file:
        (tmp_path / "as.vw").write_bytes(b"".join(write_vw_text(read_dsjson(file, BadRows("log")))))
    weights = learned(original, "--cb_explore_adf --dsjson")
    assert len(weights) > 15
    assert close(learned(tmp_path / "as.vw", "--cb_explore_adf"), weights, 1e-4)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"0:1 |a x", r"line 2: found the label '0:1', expected action:cost:probability"),
        (b"0:1:0.5|a x", r"line 2: found '0:1:0.5\|', which VW takes for a tag, expected a blank before the \|"),
        (b"0:1:0.5 1.0 |a x", r"line 2: found '1.0' before the \|, expected one label"),
        (b"0.5 |a x", "line 2: found the label '0.5', a number as of regression or classification"),
        (b"1:1 2:0 |a x", r"line 2: found the labels '1:1 2:0', the costs of all actions"),
        (b"0:1:0 |a x", r"line 2: label: found the probability 0, expected one in \(0, 1\]"),
        (b"no bar", "line 2: found 'no bar', expected a label and features after a |"),
        (b"|a x:much", "line 2: found the feature 'x:much', expected name or name:number"),
        (b"|a x:nan", "line 2: found the feature 'x:nan', expected name or name:number"),
        (b"0:1:0.5 |a x\n0:1:0.5 |a y", "line 3: found a second label"),
        (
            b"|a x\nshared |b y",
            "line 3: found a second 'shared' .*, expected it once, before the actions",
        ),
    ],
)
@pytest.mark.usefixtures("compiled")
def test_bad_events_are_named_and_may_be_left_out(line: bytes, said: str) -> None:
    text = b"shared |u z\n" + line + b"\n\n" + TEXT
    with pytest.raises(InvalidInput, match=said):
        rows(text)
    assert len(rows(text, limit=1)) == 2
    with pytest.raises(InvalidInput, match="line 1: found an event without actions"):
        rows(b"shared |u z\n\n" + TEXT)


ODD = (
    rb"""

  shared 'one |User age:31 city=Rome  new| x
 0:-1.25e-1:0.3333333333333333 |Item price:3 kind=news:2:1
|Item|Other a |Third

| loose:1 alone |Item x
1:2:1 'two| only

|a x |b y |a z
0:1:0.5 |a "quoted" back\slash

shared |
|a:2 x:3
0:0:0.25 | EE:1 kEET:5

|a x:1e5 y:.5 z:+1 v:007 w:1e-30 u:-0.0 t:12345678901234567890
0:1e0:1 |b x:0.10 y:-3R
R
| a

|last 1:1""".replace(b"EE", "é".encode())
    .replace(b"T:", b"\t:")
    .replace(b"R\n", b"\r\n")
)


def test_the_compiled_reader_finds_what_the_other_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for threshold in (-1, 1 << 60):
        monkeypatch.setattr("o2pl.formats.vw_text._LONG", threshold)
        made = [row for table in read_vw_text(io.BytesIO(ODD), BadRows("log")) for row in table.to_pylist()]
        found.append([row | {"context": json.loads(row["context"])} for row in made])
    assert found[0] == found[1]
    assert len(found[0]) == 7


def test_text_that_was_cut_short_is_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    for end in range(1, len(ODD)):
        found = []
        for threshold in (-1, 1 << 60):
            monkeypatch.setattr("o2pl.formats.vw_text._LONG", threshold)
            bad = BadRows("log", 10)
            made = [row for table in read_vw_text(io.BytesIO(ODD[:end]), bad) for row in table.to_pylist()]
            found.append(([row | {"context": json.loads(row["context"])} for row in made], bad.found))
        assert found[0] == found[1], ODD[:end]


@pytest.mark.parametrize("hashed", [False, True])
def test_blocks_are_read_alike_on_any_number_of_threads(hashed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, their order, and the numbers of bad lines, within blocks and beyond."""
    text = b"".join(
        b"shared 'e%d |u a:%d\n0:%d:0.5 |i b%s\n|i c\n\n" % (k, k, k % 3, b":x" if k % 17 == 5 else b":2")
        for k in range(100)
    )
    monkeypatch.setattr("o2pl.formats.vw_text._LONG", -1)
    monkeypatch.setattr("o2pl.formats.blocks._BYTES", 300)
    found = []
    for count in (1, 2, 3):
        monkeypatch.setattr("o2pl.threads._given_threads", lambda count=count: count)
        bad = BadRows("log", 100)
        tables = list(read_vw_text(io.BytesIO(text), bad, hashed=hashed))
        assert len(tables) > 10
        found.append(([row for table in tables for row in table.to_pylist()], bad.found))
        with pytest.raises(InvalidInput, match="line 90: found the feature 'b:x'"):
            list(read_vw_text(io.BytesIO(text), BadRows("log", 1), hashed=hashed))
    assert found[0] == found[1] == found[2]
    assert [row["event_id"] for row in found[0][0]] == [f"e{k}" for k in range(100) if k % 17 != 5]
    assert len(found[0][1]) == 6
