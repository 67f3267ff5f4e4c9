from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from o2pl.data.contexts import ActionSets
from o2pl.data.kinds import OFFER
from o2pl.data.offers import Offer
from o2pl.encode import Encoder
from o2pl.encode.feature_names import column_feature_names, entry_feature_names, shown_feature_values

NESTED = {"user": {"id": "u1", "age": 31, "likes": ["jazz", 2.5]}, "hour": "7", "new": True, "none": None}


@pytest.mark.parametrize("signed", [False, True])
def test_hashed_entries_get_their_words_back_in_order(signed: bool) -> None:
    encoder = Encoder(hashed=(18, signed, (("user", "hour"), ("user", "user"))))
    (names,) = entry_feature_names(encoder, NESTED)
    own = ["user.id=u1", "user.age", "user.likes=jazz", "user.likes[1]", "hour=7", "new=true"]
    assert [one.name for one in names[:6]] == own
    crossed = [f"{one} × hour=7" for one in own[:4]]
    assert [one.name for one in names[6:10]] == crossed
    assert names[10].name == "user.id=u1 × user.age"
    assert names[6].features == ("user.id", "hour")
    assert [one.value for one in names[:3]] == ["u1", "31", "jazz"]
    row = encoder.encode_one(NESTED)
    assert len(names) == len(row.indices)
    # Rows without words, of an encoder that has read them: the same names, found by their hashes.
    (recalled,) = entry_feature_names(encoder, row)
    assert [one.name for one in recalled][:10] == [one.name for one in names][:10]
    fresh = Encoder(hashed=(18, signed, ()))
    assert entry_feature_names(fresh, row)[0][0].name == f"feature {row.indices[0]}"


def test_sets_of_dictionaries() -> None:
    encoder = Encoder(items=True, hashed=(18, False, ()))
    context = {"shared": {"country": "IT"}, "actions": [{"topic": "news"}, {"topic": "art", "age": 3}]}
    first, second = entry_feature_names(encoder, context)
    assert [one.name for one in first] == ["topic=news", "shared.country=IT", "shared.country=IT × topic=news"]
    assert [one.name for one in second][:3] == ["topic=art", "age", "shared.country=IT"]
    sets = encoder.encode_one(context)
    assert isinstance(sets, ActionSets)
    assert len(first) + len(second) == len(sets.values.indices)
    assert [[one.name for one in row] for row in entry_feature_names(encoder, sets)] == [
        [one.name for one in row] for row in (first, second)
    ]
    assert ("topic", "news") in encoder.words.words().values()


def test_columns_of_frames_and_what_they_show() -> None:
    encoder = Encoder()
    moment = datetime(2026, 3, 5, 14, 30, tzinfo=UTC)
    people = [
        {"age": 31.5, "city": "Rome", "new": True, "at": moment, "gap": 1.0},
        {"age": 40.0, "city": "Oslo", "new": False, "at": moment, "gap": None},
    ]
    rows = encoder.encode(people)
    names = column_feature_names(encoder, rows.shape[1])
    assert [one.name for one in names[:3]] == ["age", "city=Oslo", "city=Rome"]
    assert {one.features for one in names} == {("age",), ("city",), ("new",), ("at",), ("gap",)}
    shown = shown_feature_values(encoder, rows[0])
    assert shown == {"age": "31.5", "city": "Rome", "new": "true", "at": "2026-03-05 14:30", "gap": "1"}
    assert shown_feature_values(encoder, rows[1])["gap"] == "missing"
    assert (
        shown_feature_values(encoder, encoder.encode_one({**people[0], "city": "Paris"})[0])["city"] == "another string"
    )
    assert shown_feature_values(encoder, encoder.encode_one({**people[0], "city": None})[0])["city"] == "missing"


def test_columns_without_names_and_of_users_and_items() -> None:
    assert [one.name for one in column_feature_names(Encoder(width=2), 2)] == ["x0", "x1"]
    assert shown_feature_values(Encoder(width=2), np.array([0.5, 12345678.0])) == {"x0": "0.5", "x1": "1.235e+07"}
    encoder = Encoder(OFFER, items=True)
    sets = encoder.encode([Offer({"age": 30}, np.ones((2, 2)))])
    assert [one.name for one in column_feature_names(encoder, 4)] == ["slot", "user.age", "item x0", "item x1"]
    assert shown_feature_values(encoder, sets.inputs[0]) == {
        "slot": "",
        "user.age": "30",
        "item x0": "1",
        "item x1": "1",
    }
