"""Rank, reward and activate as Personalizer's clients know them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.serving import deciders
from tests.serving.clients import RANK, Inside, Server, inside, server

ACTIONS = [{"id": name, "features": [{"topic": name * 2}, {"length": 3.5}]} for name in "abc"]
BODY: dict[str, Any] = {"contextFeatures": [{"user": "u0"}, {"hour": 3}], "actions": ACTIONS}
SEVERAL = "/personalizer/v1.1-preview.3/multislot"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Inside]:
    with inside(tmp_path) as found:
        yield found


def test_a_rank_is_stored_before_it_is_answered(shop: Inside) -> None:
    shop.store.add_model(shop.made.id, deciders.body_of(deciders.ranked()), 1, 1)
    shop.service.models.refresh()
    body = {**BODY, "excludedActions": ["c"], "eventId": "e1", "deferActivation": True}
    found = shop.client.post(RANK, json=body)
    assert found.status_code == 201
    answer = found.json()
    assert answer["eventId"] == "e1"
    assert answer["ranking"][0]["id"] == answer["rewardActionId"] != "c"
    assert answer["ranking"][2] == {"id": "c", "probability": 0.0}
    assert sum(each["probability"] for each in answer["ranking"]) == pytest.approx(1)
    (row,) = shop.decisions()
    assert msgspec.json.decode(row.context) == {
        "user": "u0",
        "hour": 3,
        "_multi": [{"id": name, "topic": name * 2, "length": 3.5} for name in "ab"],
    }
    assert msgspec.json.decode(row.actions)[row.action] == answer["rewardActionId"]
    assert row.propensity == answer["ranking"][0]["probability"]
    assert (row.model_version, row.deferred, row.baseline) == (1, True, 0)
    shown = {each["id"]: each["probability"] for each in answer["ranking"]}
    assert np.frombuffer(row.probabilities).tolist() == [shown["a"], shown["b"]]


def test_ids_are_made_and_may_not_come_twice(shop: Inside) -> None:
    first, second = (shop.client.post(RANK, json=BODY).json()["eventId"] for _ in range(2))
    assert first != second
    again = shop.client.post(RANK, json={**BODY, "contextFeatures": [{"other": 1}], "eventId": first})
    assert again.status_code == 409
    assert again.json()["error"]["code"] == "InvalidRankRequest"
    assert len(shop.decisions()) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"actions": []}, {"actions": None}, {"actions": [ACTIONS[0]] * 2},
        {"actions": [{"id": str(k)} for k in range(51)]}, {"actions": [{"id": ""}]}, {"actions": [{"id": 5}]},
        {"actions": [{"id": "x" * 257}]}, {"actions": [{"features": []}]}, {"actions": [{"id": "a", "features": [1]}]},
        {"actions": [{"id": "a", "features": [{"x": [[1]]}]}]}, {"contextFeatures": [[1]]},
        {"contextFeatures": {"a": 1}},
        {"contextFeatures": [{"_multi": [{"x": 1}]}]}, {"excludedActions": ["nobody"]},
        {"excludedActions": ["a", "b", "c"]},
        {"eventId": "x" * 257}, {"eventId": "a\x00b"}, {"deferActivation": "yes"},
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_and_changes_nothing(shop: Inside, change: dict[str, Any]) -> None:
    found = shop.client.post(RANK, json={**BODY, **change})
    assert found.status_code == 400
    assert found.json()["error"]["code"] == "InvalidRankRequest"
    assert found.json()["error"]["message"]
    assert not shop.decisions()


def test_rewards_and_activations_need_their_decision(shop: Inside) -> None:
    event = shop.client.post(RANK, json={**BODY, "eventId": "an id/with é"}).json()["eventId"]
    at = "/personalizer/v1.0/events/an%20id%2Fwith%20%C3%A9"
    for _ in range(2):
        assert shop.client.post(f"{at}/reward", json={"value": 0.5}).status_code == 204
        assert shop.client.post(f"{at}/activate").status_code == 204
    assert [(row.event_id, row.value) for row in shop.rewards()] == [(event, 0.5)] * 2
    assert len(shop.store.activations_after(shop.made.id)) == 1
    for what, body in (("reward", {"value": 1}), ("activate", None)):
        found = shop.client.post(f"/personalizer/v1.0/events/unknown/{what}", json=body)
        assert (found.status_code, found.json()["error"]["code"]) == (404, "ResourceNotFound")


@pytest.mark.parametrize(
    "body", ['{"value": NaN}', '{"value": 1e999}', '{"value": -0.1}', '{"value": "1"}', "{}", "", "7"]
)
def test_rewards_are_numbers_in_their_range(shop: Inside, body: str) -> None:
    event = shop.client.post(RANK, json=BODY).json()["eventId"]
    found = shop.client.post(f"/personalizer/v1.0/events/{event}/reward", content=body)
    assert (found.status_code, found.json()["error"]["code"]) == (400, "InvalidRewardRequest")
    assert not shop.rewards()


def test_slots_have_a_decision_and_a_reward_each(shop: Inside) -> None:
    slots = [
        {"id": "top", "baselineAction": "a", "features": [{"size": "large"}], "excludedActions": ["c"]},
        {"id": "side", "baselineAction": "b"},
    ]
    found = shop.client.post(f"{SEVERAL}/rank", json={**BODY, "slots": slots})
    assert found.status_code == 201
    answer = found.json()
    assert [each["id"] for each in answer["slots"]] == ["top", "side"]
    first, second = shop.decisions()
    for row, each in zip((first, second), answer["slots"], strict=True):
        assert (row.event_id, row.slot) == (answer["eventId"], each["id"])
        assert msgspec.json.decode(row.actions)[row.action] == each["rewardActionId"]
    assert msgspec.json.decode(first.context)["slot"] == {"id": "top", "size": "large"}
    events = f"{SEVERAL}/events/{answer['eventId']}"
    reward = {"reward": [{"slotId": "side", "value": 1}, {"slotId": "top", "value": 0}]}
    assert shop.client.post(f"{events}/reward", json=reward).status_code == 204
    assert [(row.slot, row.value) for row in shop.rewards()] == [("side", 1), ("top", 0)]
    assert shop.client.post(f"{events}/activate").status_code == 204
    unknown = shop.client.post(f"{events}/reward", json={"reward": [{"slotId": "no", "value": 1}]})
    assert unknown.status_code == 404
    assert shop.client.post(f"{events}/reward", json={"reward": []}).status_code == 400


@pytest.mark.parametrize(
    "slots",
    [
        [], [{"id": "s", "baselineAction": "x"}], [{"id": "s"}], [{"id": "s", "baselineAction": "a"}] * 2,
        [{"id": "s", "baselineAction": "a"}, {"id": "t", "baselineAction": "a"}],
        [{"id": "s", "baselineAction": "a", "excludedActions": ["a"]}],
        [{"id": str(k), "baselineAction": name} for k, name in enumerate("abca")],
        [{"id": k, "baselineAction": "a", "excludedActions": ["b", "c"]} for k in "s"]
        + [{"id": "t", "baselineAction": "b", "excludedActions": ["c", "a"]}]
        + [{"id": "u", "baselineAction": "c", "excludedActions": ["c"]}],
    ],
)  # fmt: skip
def test_slots_that_cannot_be_filled_are_refused(shop: Inside, slots: list[Any]) -> None:
    assert shop.client.post(f"{SEVERAL}/rank", json={**BODY, "slots": slots}).status_code == 400
    assert not shop.decisions()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server(tmp_path_factory.mktemp("server"), "--no-trainer") as found:
        yield found


def test_the_published_client_works_unchanged(real: Server) -> None:
    from azure.cognitiveservices.personalizer import PersonalizerClient
    from azure.cognitiveservices.personalizer.models import ErrorResponseException, RankableAction, RankRequest
    from msrest.authentication import CognitiveServicesCredentials
    from msrest.exceptions import HttpOperationError

    with PersonalizerClient(real.address, CognitiveServicesCredentials(real.write_key)) as client:
        actions = [RankableAction(id=name, features=[{"topic": name}]) for name in ("news", "sports", "music")]
        request = RankRequest(
            actions=actions,
            context_features=[{"timeOfDay": "morning"}],
            excluded_actions=["music"],
            event_id="client-1",
            defer_activation=True,
        )
        answer = client.rank(rank_request=request)
        assert answer.event_id == "client-1"
        assert answer.reward_action_id in ("news", "sports")
        assert {each.id: each.probability for each in answer.ranking} == {"news": 0.5, "sports": 0.5, "music": 0.0}
        client.events.activate(event_id=answer.event_id)
        client.events.reward(event_id=answer.event_id, value=1.0)
        with pytest.raises(HttpOperationError) as unknown:
            client.events.reward(event_id="unknown", value=1.0)
        assert unknown.value.response.json()["error"]["code"] == "ResourceNotFound"
        with pytest.raises(ErrorResponseException) as refused:
            client.rank(rank_request=RankRequest(actions=[]))
        assert refused.value.error.error.code == "InvalidRankRequest"
    with PersonalizerClient(real.address, CognitiveServicesCredentials("wrong")) as client:
        with pytest.raises(HttpOperationError) as unknown:
            client.events.activate(event_id="client-1")
        assert unknown.value.response.status_code == 401


def test_the_published_preview_client_needs_no_change(real: Server) -> None:
    """`azure-ai-personalizer`: the version of the API is in the query."""
    from azure.ai.personalizer import PersonalizerAdministrationClient, PersonalizerClient
    from azure.core.credentials import AzureKeyCredential
    from azure.core.exceptions import HttpResponseError

    own = AzureKeyCredential(real.write_key)
    with PersonalizerClient(real.address, credential=own) as client:
        request = {"eventId": "preview", "actions": ACTIONS, "contextFeatures": [{"user": 1}], "deferActivation": True}
        ranked = client.rank(request)
        assert client.rank(request) == ranked
        client.activate("preview")
        client.reward("preview", {"value": 0.5})
        slots = [{"id": "top", "baselineAction": ACTIONS[0]["id"]}]
        several = client.rank_multi_slot({"eventId": "slots", "actions": ACTIONS, "slots": slots})
        assert [slot["id"] for slot in several["slots"]] == ["top"]
        client.activate_multi_slot("slots")
        client.reward_multi_slot("slots", {"reward": [{"slotId": "top", "value": 1.0}]})
        with pytest.raises(HttpResponseError, match="already exists"):
            client.rank({**request, "contextFeatures": []})
    administration = PersonalizerAdministrationClient(real.address, credential=own)
    assert administration.update_service_configuration({"defaultReward": 0.25})["defaultReward"] == 0.25
    assert administration.get_service_configuration()["defaultReward"] == 0.25
    policy = administration.get_policy()
    assert administration.update_policy(policy) == administration.reset_policy() == policy
    assert administration.get_model_properties()["version"] == 0
    administration.reset_model()
    assert administration.get_log_properties()["dateRange"]["from"] > "2020"
    with pytest.raises(HttpResponseError, match="o2pl evaluate log"):
        list(administration.list_evaluations())
    with pytest.raises(HttpResponseError, match="o2pl explain EVENT"):
        administration.get_feature_importance("one")
    administration.delete_logs()
    assert administration.get_log_properties()["dateRange"]["from"] is None
    administration.close()
