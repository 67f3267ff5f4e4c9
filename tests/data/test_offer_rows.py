from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl import Offer
from o2pl.data.offer_rows import sets_of_offers
from o2pl.data.offers import offer_codes_of
from o2pl.encode.readers import OfferReader

USER, ITEMS = np.array([1.0, 2.0]), np.arange(12.0).reshape(4, 3)


def test_users_and_allowed_items() -> None:
    sets = sets_of_offers([(USER, ITEMS), Offer(USER + 1, ITEMS[:2], ids=["a", "b"], exclude=["a"], slot=2)])
    assert sets.offsets.tolist() == [0, 4, 5]
    np.testing.assert_array_equal(sets.values[4], ITEMS[1])
    np.testing.assert_array_equal(sets.shared, [USER, USER + 1])
    assert sets.item_ids is not None
    assert sets.item_ids.tolist() == [-1] * 4 + offer_codes_of(["b"]).tolist()
    assert sets.slots is not None
    assert sets.slots.tolist() == [0, 2]


@pytest.mark.parametrize("read", [sets_of_offers, lambda contexts: OfferReader().rows(contexts)])
@pytest.mark.parametrize(
    ("contexts", "message"),
    [
        (
            [(USER, ITEMS), (USER, ITEMS[:, :2])],
            "offer 1: found 2 features of the user and 2 of an item",
        ),
        ([(USER, [[1.0, np.nan]])], r"offer 0: item 0, feature 1: found nan"),
        ([("ann", ITEMS)], "offer 0: user"),
        ([(USER, [["a"]])], "offer 0: items: expected numbers"),
        ([USER], "expected a user and items"),
    ],
)
def test_bad_offers_are_named(read: Any, contexts: Any, message: str) -> None:
    with pytest.raises(o2pl.InvalidInput, match=message):
        read(contexts)
