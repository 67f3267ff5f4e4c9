"""Dictionaries to rows: names and hashes by a plain reference, collisions by chance, products, and what is refused."""

from __future__ import annotations

import copy
import enum
import itertools
import math
import pickle
import re
import zlib
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from o2pl import InvalidInput, _core
from o2pl.data.contexts import SparseRows
from o2pl.encode.dictionaries import DictionaryReader
from o2pl.encode.name_hash import name_hash
from o2pl.encode.sets import dictionary_sets

CONTEXT: dict[str, Any] = {
    "user": {"id": "u17", "age": 31, "vip": True, "email": None},
    "tags": ["a", "b", "a"],
    "hour": 7,
    "embedding": [0.5, -2.0],
}
# by hand from the rules
NAMES = [
    ("user.id=u17", 1.0),
    ("user.age", 31.0),
    ("user.vip=true", 1.0),
    ("tags=a", 1.0),
    ("tags=b", 1.0),
    ("tags=a", 1.0),
    ("hour", 7.0),
    ("embedding[0]", 0.5),
    ("embedding[1]", -2.0),
]


def murmur_finaliser(h: int) -> int:
    """MurmurHash3's last mixing of 32 bits, on numbers without end."""
    h ^= h >> 16
    h = h * 0x85EBCA6B % 2**32
    h ^= h >> 13
    h = h * 0xC2B2AE35 % 2**32
    return h ^ h >> 16


def entries(rows: SparseRows, row: int = 0) -> list[tuple[int, float]]:
    own = slice(rows.offsets[row], rows.offsets[row + 1])
    return list(zip(rows.indices[own].tolist(), rows.values[own].tolist(), strict=True))


@pytest.mark.parametrize("bits", [4, 18, 26])
@pytest.mark.parametrize("signed", [False, True])
def test_rows_are_those_of_the_rules(bits: int, signed: bool) -> None:
    rows = DictionaryReader(bits, signed).rows([{}, CONTEXT, CONTEXT])
    hashes = [murmur_finaliser(zlib.crc32(name.encode())) for name, _ in NAMES]
    signs = [-1 if signed and h >= 2**31 else 1 for h in hashes]
    expected = [(h % 2**bits, sign * v) for h, sign, (_, v) in zip(hashes, signs, NAMES, strict=True)]
    assert entries(rows, 0) == []
    assert entries(rows, 1) == entries(rows, 2) == expected
    assert len(set(signs)) == 1 + signed
    assert (rows.width, len(rows), rows.indices.dtype, rows.values.dtype) == (2**bits, 3, np.int32, np.float32)


def test_dictionaries_in_a_list_are_read_under_its_name() -> None:
    reader = DictionaryReader(18)
    listed = reader.rows([{"user": ["x", {"age": 3, "tags": ["y"]}, {"age": 4}]}])
    names = [("user=x", 1.0), ("user.age", 3.0), ("user.tags=y", 1.0), ("user.age", 4.0)]
    assert entries(listed) == [(name_hash(name) % 2**18, value) for name, value in names]


def test_products_of_namespaces() -> None:
    context = {"hour": 7.0, "user": {"id": "u", "age": 3.0}, "item": ["x", "y", "z"], "other": "o"}
    plain = entries(DictionaryReader(18).rows([context]))
    pairs = (("user", "item"), ("hour", "user"), ("item", "item"), ("no", "hour"))
    rows = DictionaryReader(18, interactions=pairs).rows([context, dict(reversed(context.items())), {"hour": 1.0}])
    assert entries(rows)[: len(plain)] == plain
    user, item, hour = [1.0, 3.0], [1.0] * 3, [7.0]
    products = [a * b for a, b in itertools.chain(itertools.product(user, item), itertools.product(hour, user))]
    products += [a * b for a, b in itertools.combinations(item, 2)]
    crossed = entries(rows)[len(plain) :]
    assert [value for _, value in crossed] == products
    assert len({index for index, _ in crossed} | {index for index, _ in plain}) == len(plain) + len(products)
    assert sorted(entries(rows, 1)) == sorted(entries(rows))  # the order of the keys does not matter
    assert len(entries(rows, 2)) == 1


def test_products_hash_by_what_they_are_made_of() -> None:
    pairs = [{"a": f"w{i}", "b": f"w{j}"} for i in range(40) for j in range(40)]
    rows = DictionaryReader(26, interactions=(("a", "b"),)).rows(pairs)
    assert len(set(rows.indices[2::3].tolist())) >= 1600 - 1  # as many as there are, but for a chance in fifty of one


def test_one_at_a_time_and_many_agree() -> None:
    reader = DictionaryReader(18, True, (("user", "tags"),))
    long = {"user": {f"k{i}": f"v{i}" for i in range(200)}, "tags": ["a", "b"]}  # more than there was room for
    for context in (CONTEXT, {}, long, CONTEXT):
        expected, offsets = reader.rows([context]), np.zeros(2, np.int64)
        size = len(expected.indices)
        indices, numbers = np.empty(size, np.int32), np.empty(size, np.float32)
        assert _core.write_row(*reader.entry(context), 0, offsets, indices, numbers)
        assert offsets.tolist() == [0, size]
        assert entries(expected) == list(zip(indices.tolist(), numbers.tolist(), strict=True))
        assert entries(reader.row(context)) == entries(reader.rows([context]))


def test_numpy_values_and_forgotten_words(monkeypatch: pytest.MonkeyPatch) -> None:
    same = {
        "user": {"id": np.str_("u17"), "age": np.int64(31), "vip": np.bool_(True)},
        "tags": ("a", "b", "a"),
        "hour": np.float32(7),
        "embedding": np.array([0.5, -2.0]),
    }
    reader = DictionaryReader(18)
    assert entries(reader.rows([same])) == entries(reader.rows([CONTEXT]))
    assert entries(reader.rows([{"tags": {"b", "a"}}])) == entries(reader.rows([{"tags": ["a", "b"]}]))
    assert (
        entries(reader.rows([{"x": True}]))
        == entries(reader.rows([{"x": "true"}]))
        == entries(reader.rows([{"x": [True]}]))
    )
    monkeypatch.setattr("o2pl.encode.dictionaries._WORDS", 3)
    small = DictionaryReader(18)
    for _ in range(3):
        assert entries(small.rows([CONTEXT])) == entries(reader.rows([CONTEXT]))


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("unusual", "plain"),
    [
        ({"a": Colour.RED, Colour.RED: 1.0}, {"a": "red", "red": 1.0}),  # the strings that they equal
        ({"a": np.array([0.5, -2.0])}, {"a": [0.5, -2.0]}),
        ({"a": np.array([0.1, 2.0], np.float32)}, {"a": [float(np.float32(0.1)), 2.0]}),
        ({"a": np.arange(6.0)[::2], "b": np.array(["x", "y"])}, {"a": [0.0, 2.0, 4.0], "b": ["x", "y"]}),
        ({"a": np.array([], np.float64), "b": np.arange(2)}, {"b": [0, 1]}),
        ({"a": {"c", "b"}, "d": frozenset("e")}, {"a": ["b", "c"], "d": ["e"]}),
        ({"a": OrderedDict(b=1), "c": [MappingProxyType({"d": "e"})]}, {"a": {"b": 1}, "c": [{"d": "e"}]}),
        (MappingProxyType({"a": {"b": np.float32(2)}}), {"a": {"b": 2.0}}),
        (
            {"a": 2**70, "b": np.uint8(3), "c": [np.int64(4), None, True]},
            {"a": 2.0**70, "b": 3, "c": [4, None, "true"]},
        ),
        ({"é": "日本", "\ud800": "\udfff"}, {"é": "日本", "\ud800": "\udfff"}),
    ],
)
def test_unusual_values_are_read_like_plain_ones(unusual: Any, plain: dict[str, Any]) -> None:
    """By the rules of the names, and in one batch or one context alike."""
    reader, sets = DictionaryReader(18), {"shared": unusual, "actions": [unusual, {"x": 1}]}
    assert entries(reader.rows([unusual])) == entries(reader.rows([plain]))
    np.testing.assert_array_equal(reader.entry(unusual)[0], reader.entry(plain)[0])
    found, expected = (
        dictionary_sets(reader, [one]) for one in (sets, {"shared": plain, "actions": [plain, {"x": 1}]})
    )
    np.testing.assert_array_equal(found.values.indices, expected.values.indices)
    np.testing.assert_array_equal(found.values.values, expected.values.values)


def test_names_are_hashed_in_utf8() -> None:
    rows = DictionaryReader(26).rows([{"é": "日本", "\ud800": "\udfff", "": {"a": "b"}, "c": {"": {"d": 1}}}])
    names = ["é=日本", "\ud800=\udfff", "a=b", "c..d"]  # an empty name adds nothing at the top
    assert rows.indices.tolist() == [name_hash(name) % 2**26 for name in names]


def test_names_can_be_pickled_and_copied() -> None:
    reader = DictionaryReader(18)
    reader.rows([CONTEXT, {"é": "\ud800"}])
    words = reader.words()
    assert ("user.id", "u17") in words.values()
    assert ("user.age", None) in words.values()
    assert ("é", "\ud800") in words.values()
    assert len(words) == len(set(NAMES)) + 1
    for other in (pickle.loads(pickle.dumps(reader)), copy.deepcopy(reader)):
        assert other.words() == words
        assert entries(other.rows([CONTEXT])) == entries(reader.rows([CONTEXT]))


def test_names_beyond_the_limit_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("o2pl.encode.dictionaries._WORDS", 1000)
    reader = DictionaryReader(18)
    for t in range(3000):
        reader.entry({"a": f"w{t}"})
        assert 1 <= len(reader.words()) <= 1001
    assert ("a", "w2999") in reader.words().values()


def test_a_context_that_contains_itself_is_no_end() -> None:
    context: dict[str, Any] = {"a": "b"}
    context["self"] = context
    for reads in (DictionaryReader(18).entry, DictionaryReader(18).row):
        with pytest.raises(RecursionError):
            reads(context)


def test_copies_of_nested_dictionaries() -> None:
    context = {"a": {"b": {"c": 1, "d": None}, "e": "f"}, "g": 0.5, "h": True}
    found: Any = _core.copied(context)
    assert found == context
    assert list(found) == list(context)
    assert found["a"] is not context["a"]
    assert found["a"]["b"] is not context["a"]["b"]
    others: list[Any] = [{"a": [1]}, {"a": {"b": {1}}}, {"a": np.float64(1)}, [1], MappingProxyType({})]
    for other in others:
        assert _core.copied(other) is None


def test_what_has_been_read_before_changes_nothing() -> None:
    """Words known and new, numbers, lists and dictionaries at the same key: as a reader reads them that is new."""
    generator, used = np.random.default_rng(0), DictionaryReader(18)
    values = ["w0", "w1", "w2", 0.5, 3, True, None, {"c": "w0"}, {"c": 2.0, "d": "w1"}, ["w0", "w1"], ["w0", 0.5]]
    for t in range(300):
        known = values if t > 100 else values[:3]  # words alone at first
        context = {key: known[generator.integers(len(known))] for key in "abc"[: generator.integers(4)]}
        context["deep"] = {key: f"w{generator.integers(t + 1)}" for key in "abc"}
        new, read = DictionaryReader(18), used.entry(context)
        assert entries(new.rows([context])) == entries(used.rows([context]))
        np.testing.assert_array_equal(read[0], new.entry(context)[0])


def test_a_context_that_was_changed_is_read_again() -> None:
    reader = DictionaryReader(18)
    for change in (
        lambda context: context.update(hour=8),
        lambda context: context.pop("hour"),
        lambda context: context["user"].update(id="u18"),
        lambda context: context["user"].pop("age"),
    ):
        context: dict[str, Any] = {"user": {"id": "u17", "age": 31}, "hour": 7}
        before = reader.entry(context)
        assert reader.entry(context) is before
        change(context)
        np.testing.assert_array_equal(reader.entry(context)[0], DictionaryReader(18).entry(context)[0])
        assert reader.entry(context)[0].tolist() != before[0].tolist()


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({"user": {"age": -math.inf}}, "context, row 1, user.age: found -inf, expected a finite number"),
        ({"user": {"age": np.float64("inf")}}, "user.age: found inf"),
        ({"x": 10**60}, "x: found 1000"),
        ({"x": 1e39}, "x: found 1e+39"),
        (
            {"tags": ["a", [1]]},
            "context, row 1, tags[1]: found [1] of type list, expected a string, number, dictionary",
        ),
        ({"tags": ["a", math.inf]}, "tags[1]: found inf"),
        ({"a": {"when": object}}, "a.when: found <class 'object'> of type type, expected a string, number, bool, date"),
        ({"a": {3: 1}}, "context, row 1, a: found the key 3 of type int, expected strings as keys"),
        ({3: 1}, "context, row 1: found the key 3"),
        ("user", "context, row 1: found 'user' of type str, expected a dictionary"),
        ([1.0, 2.0], "context, row 1: found [1.0, 2.0] of type list"),
        ({"m": np.zeros((2, 2))}, "m: found array"),
        ({"z": 1j}, "z: found 1j of type complex"),
    ],
)
def test_what_is_wrong_and_where(context: Any, said: str) -> None:
    reader = DictionaryReader(18)
    with pytest.raises(InvalidInput) as error:
        reader.rows([CONTEXT, context])
    assert said in str(error.value)
    with pytest.raises(InvalidInput, match=r"^context[,:]"):
        reader.entry(context)
    assert entries(reader.rows([CONTEXT])) == entries(DictionaryReader(18).rows([CONTEXT]))


@pytest.mark.parametrize("contexts", [CONTEXT, "text", 3, None])
def test_a_batch_is_a_sequence(contexts: Any) -> None:
    with pytest.raises(InvalidInput, match="expected a sequence of dictionaries"):
        DictionaryReader(18).rows(contexts)


def test_sparse_rows_are_checked() -> None:
    reader = DictionaryReader(4)
    fine = reader.rows([CONTEXT, {"x": 1.0}])
    assert reader.rows(fine) is fine
    with pytest.raises(InvalidInput, match="width 16, expected 32"):
        DictionaryReader(5).rows(fine)
    for bad in (np.nan, np.inf):
        values = fine.values.copy()
        values[-1] = bad
        with pytest.raises(InvalidInput, match=f"row 1: found the value {bad}"):
            reader.rows(SparseRows(fine.indices, values, fine.offsets, 16))
    for bad_index in (-1, 16):
        with pytest.raises(InvalidInput, match=f"at feature {bad_index}"):
            reader.rows(SparseRows(np.full_like(fine.indices, bad_index), fine.values, fine.offsets, 16))


def test_sparse_rows_slice_and_densify() -> None:
    rows = DictionaryReader(6).rows([CONTEXT, {}, {"tags": ["a", "a"]}, {"hour": 3}])
    dense = rows.dense()
    assert dense.shape == (4, 64)
    assert dense[2, name_hash("tags=a") % 64] == 2
    for cut in (slice(1, 3), slice(0, 0), slice(3, 1), slice(-1, None), slice(None)):
        np.testing.assert_array_equal(rows[cut].dense(), dense[cut])


def test_a_row_is_written_where_there_is_room_and_nowhere_else() -> None:
    entry = DictionaryReader(18).entry(CONTEXT)
    for room, rows in ((8, 3), (9, 1)):
        offsets, indices, values = np.zeros(rows, np.int64), np.full(room, -1, np.int32), np.zeros(room, np.float32)
        assert not _core.write_row(*entry, 0, offsets, indices, values)
        assert (indices == -1).all()
    offsets, indices, values = np.zeros(2, np.int64), np.empty(9, np.int32), np.empty(9, np.float32)
    assert _core.write_row(*entry, 0, offsets, indices, values)
    assert offsets.tolist() == [0, 9]


def test_the_hash_of_a_product_depends_on_the_order_and_its_value_is_finite() -> None:
    numbers = [name_hash(name) for name in "abcde"]
    assert len({_core.crossed_hash(a, b) for a, b in itertools.permutations(numbers, 2)}) == 20
    reader = DictionaryReader(18, interactions=(("a", "b"),))
    assert reader.row({"a": 2.0, "b": -3.0}).values[-1] == -6
    assert reader.row({"a": 1e30, "b": -1e30}).values[-1] == -np.finfo(np.float32).max


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        (1, [[0, 10]]),  # a segment beyond the features
        (1, [[-1, 2]]),
        (1, [[3, 2]]),
        (2, [[0, 1]]),  # a pair of an unknown namespace
        (2, [[-1, 0]]),
        (0, np.zeros((3, 3), np.uint32)),
        (5, -1),
    ],
)
def test_what_would_be_read_beyond_an_array_is_refused(place: int, wrong: Any) -> None:
    entry: list[Any] = [*DictionaryReader(18).entry(CONTEXT), 0]
    entry[place] = np.array(wrong, np.int64) if isinstance(wrong, list) else wrong
    with pytest.raises(ValueError, match=r"expected|found"):
        _core.write_row(*entry, np.zeros(2, np.int64), np.empty(9, np.int32), np.empty(9, np.float32))


def test_offsets_beyond_the_features_are_refused() -> None:
    features, segments, pairs = np.zeros((4, 2), np.uint32), np.zeros((2, 1, 2), np.int64), np.empty((0, 2), np.int64)
    assert _core.expanded_rows(features, np.array([0, 1, 4]), segments, pairs, 7, False)[2].tolist() == [0, 1, 4]
    for ends in ([0, 1, 5], [-1, 0, 4], [0, 3, 2]):
        with pytest.raises(ValueError, match="offsets"):
            _core.expanded_rows(features, np.array(ends), segments, pairs, 7, False)
    with pytest.raises(ValueError, match="segments"):
        _core.expanded_rows(features, np.array([0, 4]), segments, pairs, 7, False)


# -- texts


def plain_words(text: str) -> list[str]:
    """The features of a string: itself, or the words of a text and its pairs."""
    parts = [part for part in re.split(r"[ \t\n\v\f\r]+", text) if re.search(r"[A-Za-z0-9\x80-\U0010ffff]", part)]
    if len(parts) < 3:
        return [text]
    lowered = "".join(letter.lower() if letter.isascii() else letter for letter in text)
    words = re.findall(r"[a-z0-9\x80-\U0010ffff]+", lowered)
    return words + [f"{one} {other}" for one, other in itertools.pairwise(words)]


@given(st.text("ab Cz1.,-'\nÜ东", max_size=40))
@settings(max_examples=300, deadline=None)
def test_texts_are_split_into_words_and_pairs(text: str) -> None:
    reader = DictionaryReader(18)
    row = reader.row({"prompt": text, "lang": "en"})
    named = [f"prompt={word}" for word in plain_words(text)] + ["lang=en"]
    expected = sorted(name_hash(name) % 2**18 for name in named)
    found = np.repeat(row.indices, row.values.astype(int)) if (row.values > 1).any() else row.indices
    assert sorted(found.tolist()) == expected
    assert {f"{path}={word}" for path, word in reader.words().values()} == set(named)
    assert _core.is_text(text) == (plain_words(text) != [text])


def test_short_strings_are_categories() -> None:
    reader = DictionaryReader(18)
    reader.row({"city": "New York", "agent": "a/b;c", "date": "2026-11-19 20:41", "note": "a - b -"})
    assert {word for _, word in reader.words().values()} == {"New York", "a/b;c", "2026-11-19 20:41", "a - b -"}
