"""Hashed features of action sets: selected, joined and encoded as rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl.data import hashed_sets
from o2pl.data.hashed_sets import HashedSets
from o2pl.encode.dictionaries import DictionaryReader
from o2pl.encode.json_sets import json_sets
from o2pl.encode.sets import dictionary_sets

CONTEXTS: list[dict[str, Any]] = [
    {"u": f"u{k}", "n": k, "_multi": [{"i": 0.5 * j, "w": f"w{k}"} for j in range(1 + k % 3)]} for k in range(7)
]
TEXTS = [str(context).replace("'", '"').encode() for context in CONTEXTS]


def hashed(texts: list[bytes]) -> HashedSets:
    found = json_sets(texts)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "rows", [slice(2, 5), slice(None, None, 3), slice(7, 7), np.array([5, 0, 0, 6]), np.arange(7) % 2 == 0]
)
@pytest.mark.parametrize("signed", [False, True])
def test_sets_that_share_nothing_are_encoded_where_they_are(rows: Any, signed: bool) -> None:
    contexts = [{"_multi": context["_multi"]} for context in CONTEXTS]
    sets = hashed([str(context).replace("'", '"').encode() for context in contexts])
    chosen = np.arange(7)[rows].tolist()
    found = sets[rows].encoded(2**18 - 1, signed)
    expected = dictionary_sets(DictionaryReader(18, signed), [contexts[row] for row in chosen])
    for name in ("indices", "values", "offsets"):
        assert getattr(found.values, name).tobytes() == getattr(expected.values, name).tobytes()
    whole = sets.encoded(2**18 - 1, signed).values
    assert np.shares_memory(whole.values, sets.values) == (not signed)
    assert not np.shares_memory(found.values.values, sets.values)


@pytest.mark.parametrize(
    "rows", [slice(2, 5), slice(None, None, 3), slice(7, 7), np.array([5, 0, 0, 6]), np.arange(7) % 2 == 0]
)
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("part", [2, 7])
def test_selected_and_joined_sets_are_encoded_like_their_dictionaries(
    rows: Any, signed: bool, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashed_sets, "_PART", part)  # with 2, in parts
    sets = HashedSets.joined([hashed(TEXTS[:2]), hashed(TEXTS[2:3]), hashed(TEXTS[3:])])
    chosen = np.arange(7)[rows].tolist()
    found = sets[rows].encoded(2**18 - 1, signed)
    assert len(sets[rows]) == len(found) == len(chosen)
    if chosen:
        expected = dictionary_sets(DictionaryReader(18, signed), [CONTEXTS[row] for row in chosen])
        assert found.offsets.tolist() == expected.offsets.tolist()
        for name in ("indices", "values", "offsets"):
            assert getattr(found.values, name).tobytes() == getattr(expected.values, name).tobytes()
