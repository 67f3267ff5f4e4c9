from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from o2pl.data.contexts import ActionSets, Contexts, SparseRows, as_contexts, is_encoded_context
from o2pl.encode.dictionaries import DictionaryReader
from o2pl.encode.name_hash import name_hash
from o2pl.errors import InvalidInput

CONTEXT: dict[str, Any] = {
    "user": {"id": "u17", "age": 31, "vip": True, "email": None},
    "tags": ["a", "b", "a"],
    "hour": 7,
    "embedding": [0.5, -2.0],
}


def test_sparse_rows_slice_and_densify() -> None:
    rows = DictionaryReader(bits=6).rows([CONTEXT, {}, {"tags": ["a", "a"]}, {"hour": 3}])
    dense = rows.dense()
    assert dense.shape == (4, 64)
    assert dense[2, name_hash("tags=a") % 64] == 2
    for cut in (slice(1, 3), slice(0, 0), slice(3, 1), slice(-1, None), slice(None)):
        np.testing.assert_array_equal(rows[cut].dense(), dense[cut])
    wider = SparseRows(rows.indices.astype(np.int64), rows.values.astype(np.float64), rows.offsets, 64)  # composed
    for some in (np.array([3, 0, 0, 2]), np.array([-1]), dense[:, 0] >= 0, slice(None, None, -2), np.array([], int)):
        for one in (rows, wider):
            np.testing.assert_array_equal(one[some].dense(), dense[some])
    broken = SparseRows(rows.indices, rows.values, rows.offsets[::-1].copy(), 64)
    with pytest.raises(ValueError, match="beyond the entries"):
        broken[np.array([0])]


def test_action_sets_of_unlike_width_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"action set 1: found shape \(2, 3\), expected \(number of actions, 2\)"):
        ActionSets.of([np.zeros((4, 2)), np.zeros((2, 3))])


def test_action_sets_of_other_things_are_refused_by_name() -> None:
    for given, said in (
        ([{"a": 1.0}], 'action set 0: found a dictionary, expected a matrix, .* policy="hashed actionwise"'),
        ([np.ones((2, 2)), {"a": 1.0}], "action set 1: found a dictionary"),
        ([3.0], r"action set 0: found shape \(\), expected \(number of actions, features\)"),
    ):
        with pytest.raises(InvalidInput, match=said):
            ActionSets.of(given)


RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 3)).astype(np.float32)
ITEMS = [RNG.normal(size=(size, 2)).astype(np.float32) for size in (2, 1, 3, 2)]
USERS = RNG.normal(size=(4, 2)).astype(np.float32)
FLAT = np.concatenate(ITEMS)
SLOTS, ACTIONS = np.array([0, 1, 0, 1]), np.array([1, 0, 2, 0])
ENDS = np.array([0, 2, 3, 6, 8])
SPARSE = DictionaryReader(bits=5).rows([{"a": f"w{row}"} for row in range(8)])
FORMS: dict[str, Any] = {
    "dense": X,
    "sparse": SPARSE[:4],
    "sets": ActionSets(FLAT, ENDS),
    "sparse sets": ActionSets(SPARSE, ENDS),
    "users": ActionSets(FLAT, ENDS, USERS, None, SLOTS),
}
each_form = pytest.mark.parametrize("form", FORMS)


def plain(rows: Any) -> Any:
    return rows if isinstance(rows, np.ndarray) else rows.dense()


@each_form
def test_the_kinds_of_rows(form: str) -> None:
    contexts = as_contexts(FORMS[form])
    assert as_contexts(contexts) is contexts
    assert contexts.kind == form.replace("users", "sets")
    assert contexts.n_inputs == plain(contexts.inputs).shape[1]
    assert (contexts.items is None) == (form in ("dense", "sparse"))
    assert is_encoded_context(FORMS[form]) == (form != "dense")
    assert as_contexts([{"a": 1}]).kind == "raw"


def test_inputs_of_users_and_items_by_hand() -> None:
    expected = [[SLOTS[s], *USERS[s], *item] for s, items in enumerate(ITEMS) for item in items]
    contexts = FORMS["users"]
    np.testing.assert_array_equal(contexts.inputs, np.array(expected, np.float32))
    np.testing.assert_array_equal(contexts.played(ACTIONS), contexts.inputs[ENDS[:-1] + ACTIONS])
    np.testing.assert_array_equal(contexts.alone(ACTIONS).inputs, contexts.played(ACTIONS))
    assert contexts.alone(ACTIONS).sizes.tolist() == [1] * 4


@each_form
def test_tables_of_all_actions_by_hand(form: str) -> None:
    """Against loops over contexts, each with its own numbers."""
    contexts, fixed = as_contexts(FORMS[form]), form in ("dense", "sparse")
    sizes = [3] * 4 if fixed else [2, 1, 3, 2]
    own = [RNG.random(size) for size in sizes]
    table = np.stack(own) if fixed else np.concatenate(own)
    assert contexts.counts(3).tolist() == sizes
    np.testing.assert_array_equal(
        table[contexts.places(ACTIONS)], [one[a] for one, a in zip(own, ACTIONS, strict=True)]
    )
    np.testing.assert_allclose(contexts.sums(table), [one.sum() for one in own])
    assert contexts.likeliest(table).tolist() == [int(one.argmax()) for one in own]
    assert contexts.ends(table.size).tolist() == np.cumsum([0, *sizes]).tolist()
    np.testing.assert_array_equal(contexts.table(table.reshape(-1)), table)
    column = np.arange(4.0)
    spread = np.broadcast_to(contexts.spread(column), table.shape)
    np.testing.assert_array_equal(contexts.sums(spread), column * sizes)
    for rows in (slice(1, 3), np.array([3, 0])):
        some = [own[row] for row in np.arange(4)[rows]]
        expected = np.stack(some) if fixed else np.concatenate(some)
        np.testing.assert_array_equal(contexts.part(table, rows), expected)
        assert contexts[rows].counts(3).tolist() == [len(one) for one in some]
        chosen = contexts.part(np.arange(len(contexts.own)), rows)
        np.testing.assert_array_equal(plain(contexts[rows].inputs), plain(contexts.inputs)[chosen])


@each_form
def test_features_keep_the_sets(form: str) -> None:
    contexts = as_contexts(FORMS[form])
    made = contexts.with_features(plain(contexts.inputs) * 2)
    assert isinstance(made, np.ndarray if contexts.items is None else ActionSets)
    np.testing.assert_array_equal(as_contexts(made).inputs, 2 * plain(contexts.inputs))
    assert as_contexts(made).offsets is contexts.offsets


def test_a_pickled_set_is_the_same() -> None:
    again = pickle.loads(pickle.dumps(FORMS["users"]))
    assert isinstance(again, ActionSets)
    np.testing.assert_array_equal(again.inputs, FORMS["users"].inputs)
    with pytest.raises(AttributeError):
        again.items = None
    assert Contexts(X).slots is None
