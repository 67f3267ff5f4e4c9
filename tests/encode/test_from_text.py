"""Contexts that a person types."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from o2pl.data.kinds import kind_of_contexts
from o2pl.data.offers import Offer
from o2pl.encode.encoder import Encoder
from o2pl.encode.from_text import context_from_text
from o2pl.errors import InvalidInput

VISITS = pd.DataFrame(
    {"age": [31.0, 40.0], "city": ["Rome", "Oslo"], "new": [True, False], "at": pd.to_datetime(["2026-01-01"] * 2)}
)


def fitted(contexts: Any) -> Encoder:
    encoder = Encoder(kind_of_contexts(contexts))
    encoder.encode(contexts)
    return encoder


def test_json_files_and_values(tmp_path: Path) -> None:
    encoder = fitted(VISITS)
    given = {"age": 31, "city": "Rome"}
    path = tmp_path / "visit.json"
    path.write_text(json.dumps(given))
    assert context_from_text(json.dumps(given), encoder) == given
    assert context_from_text(str(path), encoder) == given
    assert context_from_text('31,"Rome, Italy",false,2026-01-03', encoder) == {
        "age": 31.0, "city": "Rome, Italy", "new": False, "at": datetime(2026, 1, 3)
    }  # fmt: skip
    assert context_from_text(",,,", encoder) == dict.fromkeys(VISITS)


def test_numbers_and_items() -> None:
    encoder = fitted(np.zeros((2, 2)))
    for text in ("[0.5, -1]", "0.5, -1"):
        np.testing.assert_array_equal(context_from_text(text, encoder), [0.5, -1.0])
    offer = context_from_text('{"user": [1], "items": [[1, 2], [3, 4]], "ids": ["a", "b"]}', encoder)
    assert isinstance(offer, Offer)
    np.testing.assert_array_equal(offer.items, [[1, 2], [3, 4]])
    assert list(offer.ids) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"age": }', "context: found invalid JSON"),
        ("nowhere.json", "context: found no file 'nowhere.json'"),
        ("1,Rome", "found 2 values, expected 4: age, city, new, at"),
        ("old,Rome,true,", "context, age: found 'old', expected a number"),
        ("31,Rome,true,late", "context, at: found 'late', expected a date or time"),
    ],
)
def test_mistakes_say_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        context_from_text(text, fitted(VISITS))
