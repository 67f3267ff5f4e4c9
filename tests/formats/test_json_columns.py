"""Columns of features as JSON, and lists as text."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import o2pl
from o2pl import InvalidInput
from o2pl.formats.json_columns import (
    json_context_column,
    lists_as_json_columns,
    renamed_columns_of,
    table_of_number_columns,
    with_renamed_columns,
)

REST: dict[str, list[Any]] = {"reward": [1.0, 0.0], "propensity": [0.5, 0.5]}


def contexts(table: Any, *, numbered: bool = False) -> tuple[list[Any], list[Any]]:
    (made,) = json_context_column([table], numbered=numbered)
    return [json.loads(text) for text in made["context"].to_pylist()], made["action"].to_pylist()


def test_named_and_numbered_actions_become_items() -> None:
    features: dict[str, list[Any]] = {"age": [3.5, None], "city": ["Rome", "Oslo"]}
    found, actions = contexts(pa.table({**features, "action": ["red", "blue"], **REST}))
    items = [{"action": {"name": "blue"}}, {"action": {"name": "red"}}]
    assert found == [{"age": 3.5, "city": "Rome", "_multi": items}, {"city": "Oslo", "_multi": items}]
    assert actions == [1, 0]
    found, actions = contexts(pa.table({**features, "action": [2, 0], **REST}))
    assert [item["action"]["name"] for item in found[0]["_multi"]] == ["0", "1", "2"]
    assert actions == [2, 0]
    with pytest.raises(
        InvalidInput, match="action: found 'green', expected one of the actions of the first rows: blue, red"
    ):
        list(
            json_context_column([pa.table({"action": names, **REST}) for names in (["red", "blue"], ["red", "green"])])
        )


def test_actions_beside_json_contexts_become_items_but_where_numbers_can_stay() -> None:
    """VW's dsjson has no numbered actions; its text has."""
    texts = ['{"u": {"age": 3, "age": 4}}', "{}", "{}"]
    log: dict[str, list[Any]] = {"context": texts, "reward": [1.0] * 3, "propensity": [0.5] * 3}
    table = pa.table(log | {"action": [2, None, 0]})
    (made,) = json_context_column([table])
    items = '"_multi":[{"action": {"name": "0"}}, {"action": {"name": "1"}}, {"action": {"name": "2"}}]}'
    assert made["context"].to_pylist() == ['{"u": {"age": 3, "age": 4},' + items, "{" + items, "{" + items]
    assert made["action"].to_pylist() == [2, None, 0]
    assert next(json_context_column([table], numbered=True)) is table
    found, actions = contexts(pa.table(log | {"action": ["b", "a", "b"]}), numbered=True)
    assert found[1] == {"_multi": [{"action": {"name": "a"}}, {"action": {"name": "b"}}]}
    assert actions == [1, 0, 1]


def test_real_numbers_items_and_times() -> None:
    found, actions = contexts(pa.table({"x": [1, 2], "action": [0.5, 1.0], **REST}))
    assert (found, actions) == ([{"x": 1}, {"x": 2}], [0.5, 1.0])
    items = [[{"a": 1}, {"a": 2}], [{"a": 3}]]
    moments = [datetime(2024, 1, 1), datetime(2024, 1, 2)]
    table = pa.table({"when": moments, "time": moments, "actions": items, "action": [1, 0], **REST})
    (made,) = json_context_column([table])
    assert json.loads(made["context"][0].as_py()) == {"when": "2024-01-01T00:00:00", "_multi": items[0]}
    assert made["time"].to_pylist() == ["2024-01-01T00:00:00", "2024-01-02T00:00:00"]


def test_lists_as_text_and_back() -> None:
    table = pa.table({"context": ["{}"], "ranking": [[1, 0]], "probabilities": [[0.5, 0.5]], "action": [1]})
    flat = lists_as_json_columns(table)
    assert flat["ranking"].to_pylist() == ["[1, 0]"]
    (again,) = json_context_column([flat])
    assert again["ranking"].to_pylist() == [[1, 0]]
    assert again["probabilities"].to_pylist() == [[0.5, 0.5]]


def test_a_learners_log_as_a_table() -> None:
    log = o2pl.Interactions(np.array([[1.0, 2.0]]), [0], [1.0], [0.5])
    assert table_of_number_columns(log).to_pylist() == [
        {"action": 0, "reward": 1.0, "propensity": 0.5, "x0": 1.0, "x1": 2.0}
    ]
    with pytest.raises(InvalidInput, match="found action sets of a saved learner"):
        table_of_number_columns(o2pl.Interactions([[{"a": 1}]], [0], [1.0], [0.5]))


def test_columns_by_other_names() -> None:
    table = pa.table({"item_id": [0], "click": [1.0], "rest": ["x"]})
    (found,) = with_renamed_columns([table], renamed_columns_of("action=item_id, reward=click"), ["rest"], "log.csv")
    assert found.column_names == ["action", "reward"]
    with pytest.raises(
        InvalidInput, match=r"log.csv: found columns .*, expected a column 'clik' \(did you mean 'click'"
    ):
        list(with_renamed_columns([table], renamed_columns_of("reward=clik"), [], "log.csv"))
    with pytest.raises(InvalidInput, match="found 'rest' twice after renaming"):
        list(with_renamed_columns([table], renamed_columns_of("rest=click"), [], "log.csv"))
    with pytest.raises(InvalidInput, match="columns: found 'click', expected name=column"):
        renamed_columns_of("click")
