"""Action sets in JSON: the compiled pass makes what the parsed dictionaries make, or leaves it to them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from o2pl import InvalidInput
from o2pl._core import set_sizes
from o2pl.data.contexts import ActionSets
from o2pl.data.records import Records
from o2pl.encode import sets as sets_module
from o2pl.encode.dictionaries import DictionaryReader
from o2pl.encode.json_sets import json_sets
from o2pl.encode.name_hash import name_hash
from o2pl.encode.sets import dictionary_sets
from o2pl.protocols import Ints

MASK = 2**18 - 1


def encoded(texts: list[bytes], signed: bool = False, played: Ints | None = None) -> ActionSets | None:
    found = json_sets(texts)
    return None if found is None else found.encoded(MASK, signed, played)


def same(one: ActionSets, two: ActionSets) -> None:
    np.testing.assert_array_equal(one.offsets, two.offsets)
    np.testing.assert_array_equal(one.values.offsets, two.values.offsets)
    np.testing.assert_array_equal(one.values.indices, two.values.indices)
    np.testing.assert_array_equal(one.values.values, two.values.values)


words = st.text(min_size=1, max_size=6).filter(lambda text: not text.startswith("_") and text.isprintable())
decimals = st.floats(-1e6, 1e6).map(lambda x: round(x, 4))
numbers = st.integers(-(10**18), 10**18) | decimals | st.floats(-1e4, 1e4, width=16) | st.floats(-10, 10)
scalars = st.text(max_size=6).filter(lambda t: t.isprintable()) | numbers | st.booleans() | st.none()
leaves = scalars | st.lists(scalars | st.dictionaries(words, scalars, max_size=2), max_size=12)
features = st.dictionaries(
    words, st.recursive(leaves, lambda inner: st.dictionaries(words, inner, max_size=3), max_leaves=6), max_size=4
)


@given(st.lists(st.tuples(features, st.lists(features, min_size=1, max_size=4)), min_size=1, max_size=3), st.booleans())
@settings(max_examples=150, deadline=None)
def test_as_the_dictionaries(drawn: Any, escaped: bool) -> None:
    contexts = [{**shared, "_multi": actions} for shared, actions in drawn]
    texts = [json.dumps(context, ensure_ascii=escaped).encode() for context in contexts]
    found = encoded(texts)
    assert found is not None
    same(found, dictionary_sets(DictionaryReader(18), contexts))


@given(st.lists(st.text('ab C1.\n"\\ü', max_size=40), min_size=1, max_size=5), st.booleans())
@settings(max_examples=300, deadline=None)
def test_texts_as_the_dictionaries(drawn: list[str], escaped: bool) -> None:
    contexts = [{"shared": text, "_multi": [{"a": [text, 1], "b": {"c": text}}, {}]} for text in drawn]
    found = encoded([json.dumps(context, ensure_ascii=escaped).encode() for context in contexts])
    assert found is not None
    same(found, dictionary_sets(DictionaryReader(18), contexts))


digits = st.text("0123456789", min_size=1, max_size=25)


@given(st.lists(st.tuples(st.booleans(), st.integers(0), digits, st.integers(-60, 20)), min_size=1, max_size=20))
@settings(max_examples=300, deadline=None)
def test_numbers_are_rounded_as_python_rounds_them(drawn: list[tuple[bool, int, str, int]]) -> None:
    texts = [f"{'-' * negative}{whole}.{fraction}e{power}" for negative, whole, fraction, power in drawn]
    texts = [text for text in texts if abs(float(text)) < 3e38]
    found = json_sets([f'{{"x":{text},"_multi":[{{}}]}}'.encode() for text in texts])
    assert found is not None
    assert found.values.tolist() == [float(np.float32(float(text))) for text in texts]


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5), st.booleans())
@settings(max_examples=300, deadline=None)
def test_names_of_any_length_and_script(drawn: list[str], escaped: bool) -> None:
    names = [name for name in drawn if name.isprintable() and name not in ("x", "y z") and not name.startswith("_")]
    names = [name for name in names if len(name.split()) < 3]  # others are texts
    contexts = [{"_multi": [{name: name, "x": {name: 1, "y z": {"": name}}}]} for name in names]
    texts = [json.dumps(context, ensure_ascii=escaped).encode() for context in contexts]
    found = json_sets(texts)
    assert found is not None
    expected = [name_hash(text) for name in names for text in (f"{name}={name}", f"x.{name}", f"x.y z.={name}")]
    assert found.hashes.tolist() == expected


def test_the_ordinary_is_not_left_to_the_slow_path() -> None:
    context = {
        "_multi": [{"a": -1.5e-7, "_tag": {"x": [1]}, "b": {"c": [1, "x", True, None, {"d": 'é😀\n"\\/\t'}]}}, {}],
        "late": {"deep": {"er": 12345.678}},
        "_hidden": [1, {"x": "}"}],
        "zero": 0,
        "long": list(range(12)),
        "big": 1e22,
        "exp": 2.5e10,
    }
    for ascii_only in (True, False):
        for indent in (None, 2):
            text = json.dumps(context, ensure_ascii=ascii_only, indent=indent).encode()
            for signed in (False, True):
                found = encoded([text, text], signed)
                assert found is not None
                same(found, dictionary_sets(DictionaryReader(18, signed), [context, context]))


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [[1]], "_multi": [{}]}',  # a list in a list
        '{"a": 1e300, "_multi": [{}]}',
        '{"a": 1e39, "_multi": [{}]}',
        '{"_multi": []}',
        '{"a": 1}',
        '{"_multi": [1]}',
        '{"_multi": {"a": 1}}',
        '{"a": "\\ud800", "_multi": [{}]}',
        '{"a": 1,, "_multi": [{}]}',
        '{"a": 1, "_multi": [{}],}',
        '{"a": 1, "_multi": [{}]} x',
        '{"a": [1 2], "_multi": [{}]}',
        '{"a": 01, "_multi": [{}]}',
        '{"a": 1e999, "_multi": [{}]}',
        '{"a": "\t", "_multi": [{}]}',
        '{"_a": [}, "_multi": [{}]}',
        '{"_multi": [{"_a": nul}]}',
        '{"_multi": [{}], "_multi": [{}]}',
        '{"a": tru',
        '{"a": "x',
        '{"a": "x\\',
        '{"a": "\\u12',
        '{"a"',
        '{"a":',
        '{"a": 1',
        '{"_multi": [{"a": 1}',
        '{"_multi": [{"a": 1',
        '{"_multi": [{"a": {"b": [1, 2',
        '{"_multi": [{"a',
        '{"x": {"y": [1}, "_multi": [{}]}',
        "[1]",
        "",
        "{" + '"a": {' * 80,
    ],
)
def test_what_is_left_to_the_slow_path(text: str) -> None:
    assert json_sets([text.encode()]) is None
    fine = b'{"a": 1, "_multi": [{}]}'
    assert json_sets([fine, text.encode(), fine]) is None  # and no reading beyond the end


def test_many_empty_actions_fit() -> None:
    text = b'{"_multi":[' + b",".join([b"{}"] * 5000) + b"]}"
    found = encoded([text])
    assert found is not None
    assert found.sizes.tolist() == [5000]


def test_long_logs_are_read_in_blocks_and_odd_rows_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sets_module, "_MANY", 4)
    monkeypatch.setattr(sets_module, "_BLOCK", 3)
    contexts = [{"u": f"u{k}", "_multi": [{"i": float(j)} for j in range(1 + k % 3)]} for k in range(10)]
    contexts[4]["u"] = 0.0  # type: ignore[assignment]
    values = np.empty(10, object)
    values[:] = [json.dumps(context).encode() for context in contexts]
    values[4] = values[4].replace(b"0.0", b"1e-999")  # the second block is for the slow path
    same(dictionary_sets(DictionaryReader(18), Records(values)), dictionary_sets(DictionaryReader(18), contexts))
    values[7] = b'{"u": {"x": [[1]]}, "_multi": [{}]}'
    with pytest.raises(InvalidInput, match=r"action set 7, shared.u.x\[0\]: found \[1\]"):
        dictionary_sets(DictionaryReader(18), Records(values))
    products = DictionaryReader(18, interactions=(("u", "i"),))
    assert len(dictionary_sets(products, Records(values[:7]))) == 7


@given(st.lists(st.tuples(features, st.lists(features, max_size=4), features), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_actions_are_counted_wherever_they_stand(drawn: Any) -> None:
    contexts = [{**before, "_multi": actions, **after} for before, actions, after in drawn]
    texts = [json.dumps(context, ensure_ascii=False).encode() for context in contexts]
    assert set_sizes(texts).tolist() == [len(context["_multi"]) for context in contexts]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"_multi":', '{"_multi":[', '{"_multi":[{', '{"_multi":{}}', '{"_multi":[1]}', '{"a"']
)
def test_what_has_no_actions_to_count(text: str) -> None:
    assert set_sizes([text.encode(), b'{"_multi":[{}]}']).tolist() == [0, 1]


def test_what_is_shared_may_stand_around_the_actions() -> None:
    lists = [1] * 50
    contexts = [{"a": lists, "_multi": [{"x": 1}, {"x": 2}], "b": "word"}, {"_multi": [{"x": 3}], "a": 1}]
    found = encoded([json.dumps(context, separators=(",", ":")).encode() for context in contexts])
    assert found is not None
    same(found, dictionary_sets(DictionaryReader(18), contexts))


def test_one_action_of_each_set_stands_alone() -> None:
    texts = [
        b'{"u":"x","n":2,"_multi":[{"id":"a"},{"id":"b","y":3},{"id":"c"}]}',
        b'{"_multi":[{"id":"a"},{"id":"b"}],"late":{"v":1}}',
    ]
    whole, played = encoded(texts), np.array([1, 0])
    alone = encoded(texts, False, played)
    assert whole is not None
    assert alone is not None
    expected = whole.values[whole.offsets[:-1] + played]
    for name in ("indices", "values", "offsets"):
        assert np.array_equal(getattr(alone.values, name), getattr(expected, name))
    assert alone.offsets.tolist() == [0, 1, 2]
    for places in ([3, 0], [0, 2], [-1, 0]):
        with pytest.raises(InvalidInput, match="beyond the actions"):
            encoded(texts, False, np.array(places))
