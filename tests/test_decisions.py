"""Ids of decisions, and the contexts they keep."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from typing import Any

import numpy as np
import pytest

from o2pl import Decision, InvalidInput
from o2pl.data.decisions import (
    check_decision_ids,
    copied_for_decision,
    decision_id_of,
    decision_number_of,
    decision_numbers_for,
    next_number,
)


def test_a_decision_unpacks_to_two_and_has_an_id() -> None:
    decision = Decision(2, 0.25)
    action, propensity = decision
    assert (action, propensity) == (2, 0.25) == decision
    assert len(decision.id) == 16
    assert decision.id == decision.id
    assert decision.id != Decision(2, 0.25).id
    assert decision.context is None


@pytest.mark.parametrize("again", [lambda d: pickle.loads(pickle.dumps(d)), copy.copy, copy.deepcopy])
def test_a_copy_is_the_same_decision(again: Any) -> None:
    decision = Decision(1, 0.5).keep({"age": 3})
    other = again(decision)
    assert other == decision
    assert other.id == decision.id
    assert other.context == {"age": 3}


def test_contexts_are_kept_as_they_were() -> None:
    array, words = np.ones(3), {"likes": ["red"], "user": {"age": 3}}
    kept_array, kept_words = copied_for_decision(array), copied_for_decision(words)
    array[:] = 0
    words["likes"].append("blue")
    words["user"]["age"] = 4
    assert (kept_array == 1).all()
    assert kept_words == {"likes": ["red"], "user": {"age": 3}}


def test_ids_are_numbers_and_words() -> None:
    number = next_number()
    assert decision_number_of(decision_id_of(number)) == number
    assert decision_number_of("event 17") == decision_number_of("event 17") != decision_number_of("event 18")
    assert decision_number_of("f" * 16) >= 0  # no number of ours
    ids = check_decision_ids([decision_id_of(number), "event 17"])
    assert ids.tolist() == [number, decision_number_of("event 17")]
    with pytest.raises(InvalidInput, match=r"id: found -1, expected a string, or an integer .* in row 1"):
        check_decision_ids([1, -1])
    with pytest.raises(InvalidInput, match="ids: found shape"):
        check_decision_ids([[1]])


def test_words_are_hashed_byte_by_byte() -> None:
    words = ["", "a", "event00001", "äö", "日本", "😀x", "a\0b", "x" * 40]
    for word, found in zip(words, check_decision_ids(words).tolist(), strict=True):
        expected = 0xCBF29CE484222325  # FNV-1a, then mixed
        for byte in word.encode():
            expected = (expected ^ byte) * 0x100000001B3 % 2**64
        expected = (expected ^ expected >> 32) * 0x9E3779B97F4A7C15 % 2**64 >> 1
        assert found == expected
    with pytest.raises(UnicodeEncodeError, match="surrogates"):
        check_decision_ids(["\ud800"])


def test_rows_without_ids_get_new_ones() -> None:
    first, second = decision_numbers_for(100), decision_numbers_for(100)
    assert len(np.union1d(first, second)) == 200
    np.testing.assert_array_equal(decision_numbers_for(5, b"file"), decision_numbers_for(5, b"file"))


def _in_child(_: int) -> int:
    return next_number()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_forked_process_counts_from_elsewhere() -> None:
    before = next_number()
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        theirs = pool.map(_in_child, range(2))
    assert min(abs(theirs[0] - before), abs(theirs[1] - before), abs(theirs[0] - theirs[1])) > 10**6
