"""Lines of VW's `--json` become lines of its dsjson, from which VW learns the same."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.formats.vw_logs import close, learned_apart

from o2pl import InvalidInput
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.dsjson import read_dsjson
from o2pl.formats.files import read_file_tables, write_file_tables
from o2pl.formats.vw_json_lines import is_vw_json_line_left_out, vw_json_line_as_dsjson, vw_json_line_members

SETS = [
    '{"u":{"age":3,"age":1.50},"_labelIndex":1,"_label_Action":2,"_label_Cost":-1,"_label_Probability":0.5,'
    '"_multi":[{"a":{"x":1}},{"a":{"y":1}}]}',
    '{"u":{"age":2}, "_multi" : [ {"a":{"x":1}}, {"a":{"y":1},"_label":{"Action":2,"Cost":1,"Probability":0.25}} ] }',
    '{"u":{"age":2},"_multi":[{"a":{"x":1},"_label":"0:0.5:0.75"},{"a":{"y":1}}]}',
    '{"c":{"of":"its own"},"_labelIndex":0,"_label":{"action":1,"cost":1,"probability":0.5},"_multi":[{"x":1}]}',
    '{"u":{"age":2},"_multi":[{"a":{"x":1}},{"a":{"y":1}}]}',
]
NUMBERED = [
    '{"_label":{"Action":2,"Cost":-1,"Probability":0.5},"u":{"age":2},"b":true}',
    '{"_label":"1:0.5:0.25","c":{"age":2}}',
    '{"_label_Action":1,"_label_Cost":1,"_label_Probability":0.5,"c":{"age":3},"words":"of two"}',
]
REAL = ['{"_label_ca":{"action":1.5,"cost":0.5,"pdf_value":0.25},"u":{"age":2}}'] * 4
SLOTS = [
    '{"u":{"age":2},"_multi":[{"a":{"x":1}},{"a":{"y":1}},{"a":{"z":1}}],"_slots":['
    '{"s":{"q":1},"_label_cost":-1,"_a":[2,0,1],"_p":[0.5,0.25,0.25]},{"_label_cost":0,"_a":[0],"_p":[0.5]},{"s":1}]}'
]


def rows(lines: list[str], limit: int = 0) -> list[dict[str, Any]]:
    file = io.BytesIO("\n".join(lines).encode())
    return [row for table in read_dsjson(file, BadRows("log", limit)) for row in table.to_pylist()]


def test_columns() -> None:
    found = rows(SETS)
    assert [row["action"] for row in found] == [1, 1, 0, 0, None]
    assert [row["reward"] for row in found] == [1.0, -1.0, -0.5, -1.0, None]
    assert [row["propensity"] for row in found] == [0.5, 0.25, 0.75, 0.5, None]
    assert found[0]["context"] == '{"u":{"age":3,"age":1.50},"_multi":[{"a":{"x":1}},{"a":{"y":1}}]}'
    assert json.loads(found[1]["context"])["_multi"] == [{"a": {"x": 1}}, {"a": {"y": 1}}]
    assert json.loads(found[3]["context"])["c"] == {"of": "its own"}
    assert [row["action"] for row in rows(NUMBERED)] == [1, 0, 0]
    assert json.loads(rows(NUMBERED)[2]["context"]) == {"c": {"age": 3}, "words": "of two"}
    assert [(row["action"], row["reward"]) for row in rows(REAL)] == [(1.5, -0.5)] * 4
    first, second, third = rows(SLOTS)
    assert (first["action"], second["action"], third["action"]) == (2, 0, None)
    assert (second["ranking"], second["probabilities"]) == ([0, 1], [0.5])
    assert json.loads(first["context"])["_slots"] == [{"s": {"q": 1}}, {}, {"s": 1}]


@pytest.mark.parametrize(
    ("lines", "arguments"),
    [
        ([SETS[0], *SETS[2:3], SETS[4]], "--cb_explore_adf"),
        (NUMBERED, "--cb 2"),
        (REAL, "--cats 8 --bandwidth 1 --min_value 0 --max_value 8"),
        (SLOTS, "--ccb_explore_adf"),
    ],
    ids=["sets", "numbered", "real", "slots"],
)
def test_vw_learns_the_same_from_what_is_written(lines: list[str], arguments: str, tmp_path: Path) -> None:
    pytest.importorskip("vowpalwabbit")
    (tmp_path / "log.json").write_text("\n".join(lines) + "\n")
    weights = learned_apart(tmp_path / "log.json", f"{arguments} --json")
    assert len(weights) > 2
    for name in ("as.vw", "as.dsjson"):
        if (lines is NUMBERED) and name == "as.dsjson":
            continue  # VW's dsjson has no such decisions
        write_file_tables(tmp_path / name, read_file_tables(tmp_path / "log.json", BadRows("log")))
        read_as = " --dsjson" if name == "as.dsjson" else ""
        assert close(learned_apart(tmp_path / name, arguments + read_as), weights, 1e-5), name


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"_multi":[{"a":1}],"_label_Cost":1}', "line 1: found a label without _labelIndex, expected it to say which"),
        ('{"_multi":[{"a":1}],"_label_Price":1}', "line 1: found _label_Price, expected _label_Action, _label_cost"),
        ('{"_multi":[{"a":1}],"_label":3}', "line 1: _label: found 3, expected action:cost:probability"),
        ('{"_multi":{"a":1},"_label":{"Cost":1}}', "line 1: .*without _labelIndex"),
        ('{"user":1,"shown":2}', r"line 1: found the fields user, shown, expected `c` \(VW's dsjson\) or `_multi`"),
        ('{"_multi":[{"a":1}', "line 1: found no complete JSON object"),
    ],
)
def test_bad_lines_are_named_and_may_be_left_out(line: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        rows([line, *SETS])
    assert len(rows([line, *SETS], limit=1)) == len(SETS)


def test_lines_without_an_event_are_left_out_and_said() -> None:
    lines = ["[CHECKPOINT INFO LINE]", '{"RewardValue":1.0,"EventId":"e1"}', *SETS]
    bad = BadRows("log")
    found = [row for table in read_dsjson(io.BytesIO("\n".join(lines).encode()), bad) for row in table.to_pylist()]
    assert len(found) == len(SETS)
    assert bad.notes == ["log: left out checkpoint lines", "log: left out rewards without their event"]
    assert is_vw_json_line_left_out(b'{"RewardValue":1,"c":{}}') is None


def test_members_are_copied_as_they_are_written() -> None:
    assert vw_json_line_members(' { "a" : 1.50 , "a":[1, {"b":2}], "\\u00e9":"x\\"}" } ') == [
        ("a", "1.50"),
        ("a", '[1, {"b":2}]'),
        ("é", '"x\\"}"'),
    ]
    assert vw_json_line_members("{}") == []
    for broken in ("[]", "", '{"a"', '{"a":', '{"a":1', '{"a":1,'):
        with pytest.raises(InvalidInput, match="JSON object"):
            vw_json_line_members(broken)
    assert vw_json_line_as_dsjson('{"c":{}}') is None
