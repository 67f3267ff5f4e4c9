from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.serving.filled import decision, fill, saved

import o2pl
from o2pl.serving.batch_writes import ActivationRow
from o2pl.serving.event_description import tell_event
from o2pl.serving.models import decider_of
from o2pl.serving.settings import Kind, Settings
from o2pl.serving.store import Store


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
    assert told["said"] == ("Version 3 chose b with probability 60.0%. The baseline is a. Its reward is 0.5.")
    assert [(each["id"], each["probability"], each["played"]) for each in told["actions"]] == [
        ("b", 0.6, True), ("a", 0.25, False), ("c", 0.15, False)
    ]  # fmt: skip
    assert "é" in told["context"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "The uniform policy (no model yet) chose b"),
        ({"baseline": 1}, "The baseline is the same. It has no reward yet."),
        ({"deferred": True}, "It was deferred and is not activated"),
        (
            {"preferred": 2, "baseline": 1},
            "own choice, b, was returned; the policy would have chosen c.",
        ),
        ({"slot": "top"}, "It has no reward yet."),
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
    assert "It has no reward yet." in tell_event(store, store.application(1), "e")[0]["said"]


def test_features_that_spoke_for_an_action(tmp_path: Path) -> None:
    """Of a model that has learned: the terms are those of the policy's own explanation."""
    with Store.open(tmp_path / "filled.sqlite") as store:
        made = fill(store, minutes=8, per_minute=30)
        row = store.decisions_after(made.id, limit=10_000)[-1]
        (told,) = tell_event(store, store.application(made.id), row.event_id)
        found = decider_of(store.model_body(made.id, row.model_version)).explain(
            json.loads(row.context), action=row.action
        )
        assert [each["adds"] for each in told["features"]] == [each.adds for each in found.features[:8]]
        assert json.loads(row.actions)[row.action] in told["featuresTitle"]
        assert any(each["name"].startswith("reader.age = ") for each in told["features"])
        first = store.decisions_after(made.id, limit=1)[0]
        (untold,) = tell_event(store, store.application(made.id), first.event_id)
        assert "no model yet" in untold["note"]


def test_a_version_that_has_gone_is_said(store: Store) -> None:
    put(store, model_version=7)
    (told,) = tell_event(store, store.application(1), "e")
    assert "found no version 7" in told["note"]


def test_fixed_actions_are_explained_by_name(tmp_path: Path) -> None:
    with Store.open(tmp_path / "fixed.sqlite") as store:
        made = store.add_application("banner", Kind.FIXED, Settings(actions=("red", "green", "blue")))
        learner = o2pl.Bandit(actions=["red", "green", "blue"], policy="hashed", random_state=0)
        for k in range(60):
            context = {"user": {"age": ["young", "old"][k % 2]}}
            decision_made = learner.act(context)
            learner.update(decision_made, float((decision_made.action == "red") == (k % 2 == 0)))
        version = store.add_model(made.id, saved(learner.snapshot()), 1, 60)
        own = {"actions": b'["red","blue"]', "context": b'{"user":{"age":"young"}}', "model_version": version}
        store.add([decision(made.id, "e", action=0, propensity=0.9, **own)])
        (told,) = tell_event(store, store.application("banner"), "e")
    assert told["featuresTitle"] == "Features in favour of red, compared with blue"
    assert told["features"][0]["name"] == "user.age = young"
    assert told["features"][0]["adds"] > 0


def test_real_numbers_and_strangers(store: Store) -> None:
    price = store.add_application("price", Kind.CONTINUOUS, Settings(bounds=(0, 10)))
    store.add([decision(price.id, "e", value=2.5, propensity=0.1)])
    (told,) = tell_event(store, store.application("price"), "e")
    assert "chose 2.5; its density was 0.1." in told["said"]
    assert "actions" not in told
    assert tell_event(store, store.application("price"), "other") == []
