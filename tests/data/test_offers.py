from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl import Interactions, Offer
from o2pl.data.decisions import decision_number_of
from o2pl.data.offers import allowed_in_offer, offer_codes_of, offered, placed_in_offers

USER, ITEMS = np.array([1.0, 2.0]), np.arange(12.0).reshape(4, 3)
WORDS = [{"sku": f"s{k}", "kind": "a"} for k in range(4)]


def test_actions_are_places_or_ids_and_what_is_excluded_is_gone() -> None:
    plain = Offer(USER, ITEMS, exclude=[1])
    assert plain.actions == [0, 2, 3]
    assert (plain.action(1), plain.place(2)) == (2, 1)
    named = Offer(USER, ITEMS, ids=["a", "b", "c", "d"], exclude=["b", "not on offer"])
    assert named.actions == ["a", "c", "d"]
    assert (named.action(1), named.place("c")) == ("c", 1)
    left = named.without(["a"], 1)
    assert (left.actions, left.slot, named.actions) == (["c", "d"], 1, ["a", "c", "d"])
    assert Offer(USER, WORDS, ids="sku").actions == ["s0", "s1", "s2", "s3"]


def test_frames_lose_the_column_of_ids() -> None:
    pa = pytest.importorskip("pyarrow")
    offer = Offer(USER, pa.table({"sku": [7, 8], "price": [1.0, 2.0]}), ids="sku")
    assert offer.actions == [7, 8]
    assert list(offer.items.columns) == ["price"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ids": ["a", "b"]}, r"ids: found 2, expected one per item \(4\)"),
        ({"ids": ["a", "a", "b", "c"]}, "found 'a' twice"),
        ({"ids": [1.5, 2, 3, 4]}, "found 1.5 of type float"),
        ({"ids": "sku"}, "expected a field that all items have"),
        ({"exclude": [4]}, "exclude: found 4, expected indices of items, integers from 0 to 3"),
        ({"exclude": ["a"]}, "exclude: found 'a'"),
        ({"exclude": range(4)}, "exclude: found all 4"),
        ({"ids": list("abcd"), "exclude": "abcd"[:1] * 0 or list("abcd")}, "exclude: found all 4"),
    ],
)
def test_what_is_wrong_is_said(settings: Any, message: str) -> None:
    with pytest.raises(o2pl.InvalidInput, match=message):
        Offer(USER, ITEMS, **settings)


def test_an_action_that_is_not_on_offer_is_refused() -> None:
    with pytest.raises(o2pl.InvalidInput, match="found 'b', expected an id of an allowed item: 'a', 'c'"):
        Offer(USER, ITEMS, ids=list("abcd"), exclude="b").place("b")
    with pytest.raises(o2pl.InvalidInput, match="items: found nothing"):
        Offer(USER, [])


def test_codes_are_the_same_wherever_they_are_made() -> None:
    assert offer_codes_of([3, 7]).tolist() == [3, 7]
    assert offer_codes_of(["a", "b"]).tolist() == offer_codes_of(["b", "a"]).tolist()[::-1]
    assert offer_codes_of(["a"])[0] == decision_number_of("a")
    assert (offer_codes_of([-5, "x"]) >= 0).all()


def test_a_log_of_offers() -> None:
    offers = [Offer(USER, ITEMS, ids=list("abcd"), exclude=["a"]), (USER, ITEMS)]
    log = Interactions(offers, ["c", 2], [1.0, 0.0], [0.5, 0.5])
    assert log.actions.tolist() == [1, 2]
    assert log.contexts.sizes.tolist() == [3, 4]
    words = Interactions([Offer({"u": "x"}, WORDS, ids="sku", exclude=["s0"], slot=1)], ["s3"], [1.0], [0.5])
    assert (words.actions.tolist(), words.contexts.sizes.tolist()) == ([2], [3])
    assert words.slots is not None
    assert words.slots.tolist() == [1]


def test_places_and_actions() -> None:
    offers = [Offer(USER, ITEMS, ids=list("abcd"), exclude=["a"]), Offer(USER, ITEMS, ids=list("efgh"))]
    assert placed_in_offers(offers, ["c", "e"]).tolist() == [1, 0]
    assert offered(offers, [1, 0]).tolist() == ["c", "e"]
    assert offered([(USER, ITEMS)], [2]).tolist() == [2]


def test_allowed_actions() -> None:
    assert allowed_in_offer(4, [1, 1, 3]).tolist() == [0, 2]
    assert allowed_in_offer(4, 2).tolist() == [0, 1, 3]
    with pytest.raises(o2pl.InvalidInput, match="expected actions, integers from 0 to 3"):
        allowed_in_offer(4, [True])
