"""Erasing rows from the files of logs: which rows are meant, and that all others stay."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

import o2pl
from o2pl.errors import InvalidInput
from o2pl.formats.erasing import Where, erase


@pytest.mark.parametrize(
    ("where", "context", "found"),
    [
        ("user.id=17", {"user": {"id": 17}}, True),
        ("user.id=17", {"user": {"id": "17"}}, True),
        ("user.id=17", {"user": {"id": 17.0}}, True),
        ("user.id=17", {"user": {"id": 171}}, False),
        ("user.id=17", {"user": {"id": True}}, False),
        ("user.id=17", {"user": 17, "id": 17}, False),
        ("user.id=17", {"other": {"user": {"id": 17}}}, False),
        ("user=ann", {"user": ["bob", "ann"]}, True),
        ("_multi.owner=ann", {"_multi": [{"owner": "bob"}, {"owner": "ann"}]}, True),
        ("vip=true", {"vip": True}, True),
        ("name=a=b", {"name": "a=b"}, True),
        ("name=José", {"name": "José"}, True),
    ],
)
def test_who_is_meant(where: str, context: object, found: bool) -> None:
    assert Where.parsed(where).matches(json.dumps(context)) is found  # also where letters are escaped
    assert Where.parsed(where).matches(json.dumps(context, ensure_ascii=False).encode()) is found


def test_a_name_that_comes_twice_is_seen_twice() -> None:
    assert Where.parsed("user.id=1").matches('{"user":{"id":1},"user":{"id":2}}')
    assert Where.parsed("user.id=2").matches('{"user":{"id":1},"user":{"id":2}}')


@pytest.mark.parametrize("text", ["", "user", "=17", "user.id="])
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"expected a feature and its value, such as user\.id=17"):
        Where.parsed(text)


def log(n: int = 20) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "event_id": [f"e{k}" for k in range(n)],
            "user": [f"u{k % 4}" for k in range(n)],
            "age": [20 + k % 5 for k in range(n)],
            "action": [k % 2 for k in range(n)],
            "reward": [0.5] * n,
            "propensity": [0.5] * n,
        }
    )


def test_rows_go_from_files_of_every_kind(tmp_path: Path) -> None:
    frame = log()
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    for part in range(2):
        (tmp_path / f"days/{part}").mkdir(parents=True)
        frame[10 * part : 10 * part + 10].to_parquet(tmp_path / f"days/{part}/0.parquet")
    for name in ("log.csv", "log.parquet", "days"):
        path = tmp_path / name
        assert erase(path, None, {"e3", "e12", "never"}) == 2
        assert erase(path, Where.parsed("user=u1"), set()) == 5
        assert erase(path, Where.parsed("user=u1"), {"e3"}) == 0
        left = o2pl.read_log(path)
        assert len(left) == 13
    text = frame.assign(context=[json.dumps({"user": {"id": k % 4}}) for k in range(20)])
    text.to_parquet(tmp_path / "json.parquet")
    assert erase(tmp_path / "json.parquet", Where.parsed("user.id=2"), {"e0"}) == 6
    assert pq.read_table(tmp_path / "json.parquet").num_rows == 14


def test_all_rows_of_an_event_log(tmp_path: Path) -> None:
    event = {"_label_cost": -1.0, "_label_probability": 0.5, "_label_Action": 1, "_labelIndex": 0, "a": [1, 2]}
    event |= {"p": [0.5, 0.5], "c": {"user": {"id": 1}, "_multi": [{"a": 1}, {"b": 2}]}}
    path = tmp_path / "log.dsjson"
    path.write_text("".join(json.dumps({**event, "EventId": f"e{k}"}) + "\n" for k in range(3)))
    assert erase(path, None, {"e1"}) == 1
    assert o2pl.read_log(path).event_ids != []
    assert len(o2pl.read_log(path)) == 2
    assert erase(path, Where.parsed("user.id=1"), set()) == 2
    assert path.read_bytes() == b""


def test_what_a_log_does_not_have_is_said_and_the_file_stays(tmp_path: Path) -> None:
    text = tmp_path / "log.vw"
    text.write_text("shared | u\n0:-1:0.5 | a\n | b\n\n" * 2)
    with pytest.raises(InvalidInput, match="no ids of decisions"):
        erase(text, None, {"e1"})
    path = tmp_path / "log.csv"
    log().drop(columns="event_id").to_csv(path, index=False)
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="no ids of decisions"):
        erase(path, None, {"e1"})
    with pytest.raises(InvalidInput, match=r"expected 'context' or 'user\.id'"):
        erase(path, Where.parsed("user.id=1"), set())
    assert path.read_bytes() == before
