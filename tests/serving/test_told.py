from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.serving.filled import decision

from o2pl.serving.entries import ActivationRow
from o2pl.serving.settings import Kind, Settings
from o2pl.serving.store import Store
from o2pl.serving.told import tell_event


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "o2pl.sqlite") as store:
        store.add_application("shop")
        yield store


def put(store: Store, **values: object) -> int:
    pi = np.array([0.25, 0.6, 0.15])
    plain = {"actions": b'["a","b","c"]', "action": 1, "propensity": 0.6, "probabilities": pi.astype("<f8").tobytes()}
    store.add([decision(1, "e", context=b'{"user":"\xc3\xa9"}', **(plain | values))])
    return int(store.decisions_after(1)[-1].id)


def test_a_decision_is_told_with_all_its_probabilities(store: Store) -> None:
    number = put(store, model_version=3, baseline=0)
    store.add_outcomes(
        [{"application_id": 1, "decision_id": number, "reward": 0.5, "by_default": False, "joined_at": 0.0}]
    )
    (told,) = tell_event(store, store.application(1), "e")
    assert told["said"] == (
        "Version 3 chose b with probability 60.0%. The baseline is a. It is learned with the reward 0.5."
    )
    assert [(each["id"], each["probability"], each["played"]) for each in told["actions"]] == [
        ("b", 0.6, True), ("a", 0.25, False), ("c", 0.15, False)
    ]  # fmt: skip
    assert "é" in told["context"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "Uniform choice, before the first model, chose b"),
        ({"baseline": 1}, "So would the baseline. Its reward is open."),
        ({"deferred": True}, "It was deferred and is not activated"),
        (
            {"preferred": 2, "baseline": 1},
            "own choice, b, was answered; the policy would have chosen c.",
        ),
        ({"slot": "top"}, "Its reward is open."),
    ],
)
def test_what_is_special_is_said(store: Store, values: dict[str, object], said: str) -> None:
    put(store, **values)
    (told,) = tell_event(store, store.application(1), "e")
    assert said in told["said"]
    assert told["slot"] == values.get("slot", "")


def test_an_activated_event_waits_for_its_reward(store: Store) -> None:
    put(store, deferred=True)
    store.add([ActivationRow(1, "e", 0.0)])
    assert "Its reward is open." in tell_event(store, store.application(1), "e")[0]["said"]


def test_real_numbers_and_strangers(store: Store) -> None:
    price = store.add_application("price", Kind.CONTINUOUS, Settings(bounds=(0, 10)))
    store.add([decision(price.id, "e", value=2.5, propensity=0.1)])
    (told,) = tell_event(store, store.application("price"), "e")
    assert "answered 2.5; the density there was 0.1." in told["said"]
    assert "actions" not in told
    assert tell_event(store, store.application("price"), "other") == []
