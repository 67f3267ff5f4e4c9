"""Action sets of dictionaries: what is shared, what is an action's own, and their products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from o2pl import InvalidInput, _core
from o2pl.encode.dictionaries import DictionaryReader
from o2pl.encode.name_hash import name_hash
from o2pl.encode.sets import dictionary_sets

SHARED = {"user": {"id": "u", "age": 2.0}}
ACTIONS = [{"kind": "x", "price": 3.0}, {"kind": "y"}]
FORMS: list[Any] = [
    {"shared": SHARED, "actions": ACTIONS},
    (SHARED, ACTIONS),
    (SHARED, tuple(ACTIONS)),
    {**SHARED, "_multi": ACTIONS, "_tag": "left out"},
    (SHARED, pa.table({"kind": ["x", "y"], "price": [3.0, None]})),
]


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_features_and_their_products(form: Any) -> None:
    """By hand: an action's own features, the shared ones under `shared.`, and every product of one and the other."""
    found = dictionary_sets(DictionaryReader(18), [form, ACTIONS])
    assert found.offsets.tolist() == [0, 2, 4]
    shared = [("shared.user.id=u", 1.0), ("shared.user.age", 2.0)]
    own: list[list[tuple[str, float]]] = [[("kind=x", 1.0), ("price", 3.0)], [("kind=y", 1.0)]]
    mask = 2**18 - 1
    for row, features in enumerate(own):
        expected = [(name_hash(name) & mask, value) for name, value in [*features, *shared]]
        for s, u in shared:
            for name, value in features:
                h = _core.crossed_hash(name_hash(s), name_hash(name))
                expected.append((int(h) & mask, u * value))
        begin, end = found.values.offsets[row : row + 2]
        pairs = list(
            zip(found.values.indices[begin:end].tolist(), found.values.values[begin:end].tolist(), strict=True)
        )
        assert pairs == expected
    alone = DictionaryReader(18).rows(ACTIONS)  # without anything shared: as ever
    np.testing.assert_array_equal(found.values[2:].indices, alone.indices)


def test_only_the_products_asked_for() -> None:
    reader = DictionaryReader(18, interactions=(("user", "kind"), ("hour", "kind")))
    found = dictionary_sets(reader, [({"user": "u", "hour": "7", "city": "Rome"}, [{"kind": "x", "price": 3.0}, {}])])
    assert np.diff(found.values.offsets).tolist() == [2 + 3 + 2, 3]  # own, shared, products; nothing to multiply with
    within = dictionary_sets(DictionaryReader(18, interactions=(("a", "b"),)), [[{"a": "x", "b": "y"}]])
    assert np.diff(within.values.offsets).tolist() == [3]


def test_the_number_of_actions_may_differ() -> None:
    sets = [(SHARED, ACTIONS * k) for k in (1, 3, 2)]
    assert dictionary_sets(DictionaryReader(10), sets).sizes.tolist() == [2, 6, 4]


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({"a": "x"}, "action set 0: found dict, expected a list of dictionaries"),
        ([], "action set 0: found list"),
        ("text", "action set 0: found str"),
        ({"shared": {}, "actions": []}, "action set 0: found dict"),
        ({"shared": 3, "actions": [{}]}, "action set 0, shared: found int, expected a dictionary"),
        (({"a": "x"}, [{}, 3]), "action set 0, action 1: found 3 of type int"),
        ({"shared": {"x": [[1]]}, "actions": [{}]}, r"shared.x\[0\]: found \[1\]"),
    ],
)
def test_what_is_no_action_set(context: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        dictionary_sets(DictionaryReader(10), [context])
