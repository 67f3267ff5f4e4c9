from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from o2pl import Offer
from o2pl.data.kinds import DICTIONARIES, as_offer, kind_of_context, kind_of_contexts, split_set

USER, ITEMS = np.array([1.0, 2.0]), np.arange(12.0).reshape(4, 3)
WORDS = [{"sku": f"s{k}", "kind": "a"} for k in range(4)]
SHARED = {"user": {"id": "u", "age": 2.0}}
Pair = namedtuple("Pair", "a b")
FORMS: list[Any] = [
    {"shared": SHARED, "actions": WORDS},
    (SHARED, WORDS),
    (SHARED, tuple(WORDS)),
    {**SHARED, "_multi": WORDS, "_tag": "left out"},
    WORDS,
    tuple(WORDS),
    [{}],
]


@pytest.mark.parametrize(
    ("context", "kind"),
    [
        (USER, "row"),
        ({"age": 3}, "row"),
        (ITEMS, "matrix"),
        ((USER, ITEMS), "offer"),
        ((None, ITEMS.tolist()), "offer"),
        (({"age": 3}, ITEMS), "offer"),
        ((USER, WORDS), "dictionaries"),
        (WORDS, "dictionaries"),
        ({"shared": {}, "actions": WORDS}, "dictionaries"),
        ({"_multi": WORDS}, "dictionaries"),
        ((1.0, 2.0), "row"),
        ((WORDS[0], WORDS[1]), "dictionaries"),  # two actions
        (tuple(WORDS), "dictionaries"),
        ([[1.0, 2.0], [3.0, 4.0]], "matrix"),
        ([[1.0, 2.0], [3.0]], "row"),
        (Offer(USER, ITEMS), "offer"),
        (Offer(USER, WORDS), "dictionaries"),
    ],
)
def test_kinds(context: Any, kind: str) -> None:
    assert kind_of_context(context) == kind
    assert kind_of_contexts([context]) == kind
    pair = isinstance(context, tuple) and kind != "row" and len(context) == 2 and not isinstance(context[1], dict)
    assert (as_offer(context) is not None) == (pair or isinstance(context, Offer))


def test_forms_are_told_apart() -> None:
    assert all(kind_of_context(form) == DICTIONARIES for form in FORMS)
    others: list[Any] = [{"a": 1}, [1.0, 2.0], [], "ab", {"actions": "run", "user": "u"}, 3, Pair({"a": 1}, 2.0)]
    assert not any(kind_of_context(other) == DICTIONARIES for other in others)
    assert split_set(([1.0, 2.0], [{"v": 1}]))[0] == {"0": 1.0, "1": 2.0}  # a numeric user
    assert split_set(({"u": 1}, [{}]))[0] == {"u": 1}
    assert split_set(({"u": 1}, {"v": 1}))[0] == {}  # a pair of dictionaries is two actions
    assert split_set((SHARED, pa.table({"kind": ["x", "y"]})))[1] == [{"kind": "x"}, {"kind": "y"}]
