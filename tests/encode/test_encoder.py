"""The door: what the first contexts decide, what later ones are checked against, and what a file keeps of it."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

from o2pl import ActionSets, InvalidInput, Offer, SparseRows
from o2pl.data.contexts import as_contexts
from o2pl.data.kinds import DICTIONARIES, MATRIX, OFFER, ROW, kind_of_contexts
from o2pl.encode import Encoder
from o2pl.encode.encoder import encoder_makes_new_rows
from o2pl.storage import decode_from_storage, encode_for_storage

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 3)).astype(np.float32)
NAMED = [{"age": float(k), "city": ("Rome", "Oslo")[k % 2]} for k in range(6)]
ITEMS = [RNG.normal(size=(k + 1, 2)).astype(np.float32) for k in range(6)]
WORDS: list[Any] = [({"city": "Rome"}, [{"kind": "a"}, {"kind": "b", "price": float(k)}]) for k in range(6)]
HASHED = (8, False, ())
CASES: dict[str, tuple[dict[str, Any], Any]] = {  # settings, contexts
    "numbers": ({}, X),
    "a frame": ({}, pd.DataFrame(NAMED)),
    "names": ({}, NAMED),
    "words": ({"hashed": HASHED}, NAMED),
    "a frame of words": ({"hashed": HASHED}, pd.DataFrame(NAMED)),
    "items": ({"kind": MATRIX, "items": True}, ITEMS),
    "users and items": ({"kind": OFFER, "items": True}, list(zip(X, ITEMS, strict=True))),
    "named users": ({"kind": OFFER, "items": True}, list(zip(NAMED, ITEMS, strict=True))),
    "items of words": ({"kind": DICTIONARIES, "items": True, "hashed": HASHED}, WORDS),
}
each_case = pytest.mark.parametrize(("settings", "contexts"), CASES.values(), ids=CASES)


def one_of(contexts: Any, row: int) -> Any:
    return dict(contexts.iloc[row]) if isinstance(contexts, pd.DataFrame) else contexts[row]


def same(one: Any, other: Any) -> bool:
    """Whether two contexts as rows are the same."""
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other))
    if isinstance(one, SparseRows):
        return one.width == other.width and bool(np.array_equal(one.dense(), other.dense()))
    parts = [(getattr(one, name), getattr(other, name)) for name in ("values", "offsets", "shared")]
    return all((a is None and b is None) or same(a, b) for a, b in parts)


@each_case
def test_one_context_is_encoded_as_in_a_batch(settings: dict[str, Any], contexts: Any) -> None:
    encoder = Encoder(**settings)
    rows: Any = encoder.encode(contexts)
    assert len(rows) == 6
    assert encoder.width == as_contexts(rows).n_inputs
    for row in range(6):
        assert same(encoder.encode_one(one_of(contexts, row)), rows[row : row + 1])
    assert same(encoder.encode(rows), rows)  # what is encoded stays as it is


@each_case
def test_a_file_keeps_what_the_first_contexts_decided(settings: dict[str, Any], contexts: Any) -> None:
    encoder = Encoder(**settings)
    rows = encoder.encode(contexts)
    for again in (
        Encoder.of(*decode_from_storage(encode_for_storage(encoder.settings()))),
        pickle.loads(pickle.dumps(encoder)), copy.deepcopy(encoder),
    ):  # fmt: skip
        assert (again.width, again.shared, again.items, again.users) == (
            encoder.width, encoder.shared, encoder.items, encoder.users
        )  # fmt: skip
        assert again.schema == encoder.schema
        assert same(again.encode(contexts), rows)
        assert same(again.encode_one(one_of(contexts, 2)), encoder.encode_one(one_of(contexts, 2)))


@each_case
def test_kinds(settings: dict[str, Any], contexts: Any) -> None:
    kind = kind_of_contexts(contexts)
    assert kind == settings.get("kind", ROW)
    assert kind_of_contexts(Encoder(**settings).encode(contexts)) == kind


@pytest.mark.parametrize(
    ("case", "later", "said"),
    [
        ("numbers", X[:, :2], r"contexts: found shape \(6, 2\), expected \(rows, 3\)"),
        ("numbers", NAMED, "expected rows of 3 numbers, as in the learner's first data"),
        ("names", [{"age": 1.0, "town": "Rome"}], "column 'town': found, expected only those of the first batch"),
        ("a frame of words", pd.DataFrame({"age": ["old"]}), "column 'age': found strings, expected numbers"),
        ("items", [ITEMS[0][:, :1]], "action sets: found 1 features, expected 2"),
        ("items", [(X[0], ITEMS[0])], "offer 0: found a user, expected only items"),
        ("users and items", [(X[0, :2], ITEMS[0])], r"offer 0: user: context: found shape \(2,\), expected \(3,\)"),
        ("users and items", [ITEMS[0]], "found 0 features of the user, expected 3"),
        ("items of words", [{"a": "x"}], "action set 0: found dict, expected a list of dictionaries"),
        ("words", ActionSets.of(ITEMS), "expected a dictionary of features"),
    ],
)
def test_later_contexts_are_checked_against_the_first(case: str, later: Any, said: str) -> None:
    settings, contexts = CASES[case]
    encoder = Encoder(**settings)
    before = encoder.encode(contexts)
    with pytest.raises(InvalidInput, match=said):
        encoder.encode(later)
    assert same(encoder.encode(contexts), before)  # nothing has changed


def test_what_is_refused_at_first_decides_nothing() -> None:
    encoder = Encoder()
    with pytest.raises(InvalidInput, match="row 1, feature 0: found nan"):
        encoder.encode([[1.0], [np.nan]])
    assert encoder.width is None
    encoder.encode(X)
    assert encoder.width == 3


def test_numbered_contexts_are_within_their_class() -> None:
    encoder = Encoder(numbered=4)
    encoder.encode([[0.0], [3.0]])
    with pytest.raises(InvalidInput, match="row 0: found 4, expected an integer from 0 to 3"):
        encoder.encode_one([4.0])


def test_a_dictionary_is_copied_once() -> None:
    encoder = Encoder(hashed=HASHED)
    encoder.entry(NAMED[0])
    kept = encoder.copied(NAMED[0])
    assert kept == NAMED[0]
    assert kept is not NAMED[0]
    assert Encoder().copied(X[0]) is None


def test_an_entry_is_what_a_log_appends() -> None:
    encoder = Encoder(OFFER, items=True)
    encoder.encode([(X[0], ITEMS[1])])
    entry = encoder.entry(Offer(X[0], ITEMS[2], ids=["a", "b", "c"], exclude=["b"]))
    assert entry.sizes.tolist() == [2]
    np.testing.assert_array_equal(entry.values, ITEMS[2][[0, 2]])


def test_a_later_frame_sets_no_columns() -> None:
    encoder = Encoder(hashed=HASHED)
    encoder.encode(NAMED)
    encoder.encode(pd.DataFrame({"town": ["Rome"]}))
    assert encoder.schema is None
    encoder.encode([{"age": "old"}])


def test_a_numeric_user_with_items_of_words_is_the_same_as_a_pair_and_as_an_offer() -> None:
    items = [{"kind": "a"}, {"kind": "b"}]
    encoder = Encoder(DICTIONARIES, items=True, hashed=HASHED)
    pairs: list[Any] = [(X[0].tolist(), items), (X[0], items), Offer(X[0], items)]
    assert [kind_of_contexts([pair]) for pair in pairs] == [DICTIONARIES] * 3
    expected = encoder.encode([({str(column): value for column, value in enumerate(X[0])}, items)])
    for pair in pairs:
        assert same(encoder.encode([pair]), expected)
        assert same(encoder.entry(pair), expected)


@each_case
def test_rows_that_are_said_to_be_new_share_no_memory_with_what_was_given(
    settings: dict[str, Any], contexts: Any
) -> None:
    rows: Any = Encoder(**settings).encode(contexts)
    assert encoder_makes_new_rows(contexts) == (contexts is not X)
    assert not encoder_makes_new_rows(rows)
    if encoder_makes_new_rows(contexts):
        flat = rows if isinstance(rows, np.ndarray) else rows.values
        assert not any(np.shares_memory(flat, each) for each in (X, *ITEMS) if isinstance(flat, np.ndarray))
