"""/decide, /reward and /activate for every kind of application, one at a time and many."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.serving import deciders
from tests.serving.clients import Inside, inside

from o2pl.serving.access_control import Limits
from o2pl.serving.settings import LearningMode, Settings

SIDES = Settings(actions=("left", "middle", "right"))
OFFER = {"context": {"user": "u0"}, "actions": [{"id": "a", "features": {"x": 1}}, {"id": "b"}]}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Inside]:
    with inside(tmp_path, limits=Limits(batch=3, actions=4)) as found:
        yield found


def publish(found: Inside, decider: Any) -> None:
    found.store.add_model(found.made.id, deciders.body_of(decider), 1, 1)
    found.service.models.refresh()


def test_ranked(shop: Inside) -> None:
    answer = shop.client.post("/decide", json={**OFFER, "baselineAction": "b"}).json()
    assert answer["action"] in ("a", "b")
    assert answer["probabilities"] == {"a": 0.5, "b": 0.5}
    (row,) = shop.decisions()
    assert row.context == b'{"user": "u0","_multi":[{"id":"a","x": 1},{"id":"b"}]}'.replace(b": ", b":")
    assert (row.event_id, row.baseline, row.propensity) == (answer["eventId"], 1, 0.5)


def test_fixed(tmp_path: Path) -> None:
    with inside(tmp_path, "fixed", SIDES) as found:
        assert found.client.post("/decide", content=b"{}").json()["probabilities"] == pytest.approx(
            dict.fromkeys(SIDES.actions, 1 / 3)
        )
        publish(found, deciders.fixed())
        body = {"context": {"user": "u1"}, "excludedActions": ["middle"], "eventId": "e"}
        answer = found.client.post("/decide", json=body).json()
        assert answer["modelVersion"] == 1
        assert list(answer["probabilities"]) == ["left", "right"]
        assert answer["propensity"] == answer["probabilities"][answer["action"]]
        row = found.decisions()[1]
        assert msgspec.json.decode(row.actions)[row.action] == answer["action"]
        assert np.frombuffer(row.probabilities).tolist() == list(answer["probabilities"].values())
        for wrong in (
            {"context": [1]},
            {"actions": [{"id": "x"}]},
            {"excludedActions": ["up"]},
            {"baselineAction": "up"},
        ):
            assert found.client.post("/decide", json=wrong).status_code == 400
        assert found.client.post("/personalizer/v1.0/rank", json={"actions": [{"id": "a"}]}).status_code == 400


def test_continuous(tmp_path: Path) -> None:
    with inside(tmp_path, "continuous", Settings(bounds=(0.0, 10.0))) as found:
        first = found.client.post("/decide", json={"context": [0.0, 1.0]}).json()
        assert 0 <= first["action"] <= 10
        assert first["propensity"] == 0.1
        publish(found, deciders.continuous())
        answer = found.client.post("/decide", json={"context": [0.0, 1.0]}).json()
        row = found.decisions()[1]
        assert (row.value, row.propensity, row.model_version) == (answer["action"], answer["propensity"], 1)
        for wrong in ({"context": []}, {"context": ["x", 1]}, {}, {"context": [1.0]}, {"excludedActions": ["a"]}):
            assert found.client.post("/decide", json=wrong).status_code == 400
        assert len(found.decisions()) == 2


def test_an_apprentice_answers_with_the_first_action_or_the_baseline(tmp_path: Path) -> None:
    apprentice = Settings(actions=SIDES.actions, learning_mode=LearningMode.APPRENTICE)
    with inside(tmp_path, "fixed", apprentice) as found:
        assert found.client.post("/decide", content=b"{}").json()["action"] == "left"
        answer = found.client.post("/decide", json={"baselineAction": "right"}).json()
        assert (answer["action"], answer["propensity"]) == ("right", 1.0)


def test_rewards(shop: Inside) -> None:
    event = shop.client.post("/decide", json=OFFER).json()["eventId"]
    body = {"eventId": event, "value": 1.0, "idempotencyKey": "k"}
    for _ in range(2):
        assert shop.client.post("/reward", json=body).status_code == 204
    assert len(shop.rewards()) == 1
    assert shop.client.post("/reward", json={"eventId": event, "value": 2}).status_code == 400
    assert shop.client.post("/reward", json={"eventId": "unknown", "value": 1}).status_code == 404
    assert shop.client.post("/activate", json={"eventId": event}).status_code == 204
    assert shop.client.post("/activate", json={"eventId": "unknown"}).status_code == 404


def test_many_at_once_and_each_by_itself(shop: Inside) -> None:
    body = {"decisions": [{**OFFER, "eventId": "a"}, {**OFFER, "eventId": "a"}, {"actions": []}]}
    fine, twice, wrong = shop.client.post("/decide/batch", json=body).json()["decisions"]
    assert fine["decision"]["eventId"] == "a"
    assert twice == fine  # the same request
    assert "found none" in wrong["error"]["message"]
    assert len(shop.decisions()) == 1
    rewards = [{"eventId": "a", "value": 1}, {"eventId": "b", "value": 1}, {"eventId": "a", "value": 7}]
    results = shop.client.post("/reward/batch", json={"rewards": rewards}).json()["rewards"]
    assert [each["result"] for each in results] == ["stored", "refused", "refused"]
    assert [row.value for row in shop.rewards()] == [1.0]
    odd = {"decisions": [OFFER, {**OFFER, "eventId": "\x00"}]}
    assert ["error" in each for each in shop.client.post("/decide/batch", json=odd).json()["decisions"]] == [
        False,
        True,
    ]


def test_batches_and_sets_have_their_limits(shop: Inside) -> None:
    assert shop.client.post("/decide/batch", json={"decisions": [OFFER] * 4}).status_code == 400
    assert shop.client.post("/decide/batch", json={"decisions": []}).status_code == 400
    assert shop.client.post("/reward/batch", json={"rewards": []}).status_code == 400
    assert shop.client.post("/decide", json={"actions": [{"id": str(k)} for k in range(5)]}).status_code == 400
    assert not shop.decisions()
