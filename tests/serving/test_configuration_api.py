"""Settings, learning policy and model through the API."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving import deciders
from tests.serving.clients import RANK, Inside, inside
from tests.serving.worlds import decide, visits

from o2pl.serving.trainer import Trainer

AT = "/personalizer/v1.0"
SETTINGS, POLICY, MODEL = f"{AT}/configurations/service", f"{AT}/configurations/policy", f"{AT}/model"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Inside]:
    with inside(tmp_path) as found:
        yield found


def test_settings_that_are_named_are_changed_at_once(shop: Inside) -> None:
    before = shop.client.get(SETTINGS).json()
    assert before["rewardWaitTime"] == "PT600S"
    change = {
        "rewardWaitTime": "PT1H", "defaultReward": 0.5, "rewardAggregation": "sum", "explorationPercentage": 0.2,
        "modelExportFrequency": "PT1M", "logRetentionDays": 90, "learningMode": "Apprentice", "logMirrorEnabled": False,
        "lastConfigurationEditDate": "2021-01-01T00:00:00Z", "rewardRange": [-1, 1],
    }  # fmt: skip
    found = shop.client.put(SETTINGS, json=change)
    assert found.status_code == 200
    after = shop.client.get(SETTINGS).json()
    assert found.json() == after
    assert {**before, **change, "rewardWaitTime": "PT3600S", "modelExportFrequency": "PT60S"}.items() >= after.items()
    answer = shop.client.post(RANK, json={"actions": [{"id": "own"}, {"id": "other"}]}).json()
    assert answer["rewardActionId"] == "own"  # an apprentice
    event = f"{AT}/events/{answer['eventId']}/reward"
    assert shop.client.post(event, json={"value": -1}).status_code == 204


@pytest.mark.parametrize(
    "change",
    [
        {"defaultReward": 5}, {"rewardAggregation": "mean"}, {"explorationPercentage": 2}, {"rewardWaitTime": "soon"},
        {"logMirrorEnabled": True}, {"unknown": 1}, {"learningMode": "No"}, [], 7, {"rewardRange": [1, 0]},
    ],
)  # fmt: skip
def test_settings_that_do_not_hold_together_change_nothing(shop: Inside, change: Any) -> None:
    before = shop.client.get(SETTINGS).json()
    found = shop.client.put(SETTINGS, json=change)
    assert (found.status_code, found.json()["error"]["code"]) == (400, "InvalidServiceConfiguration")
    assert shop.client.get(SETTINGS).json() == before


def test_how_to_learn(shop: Inside) -> None:
    first = shop.client.get(POLICY).json()
    assert first == {"name": "o2pl", "arguments": "--hash_bits 18 --random_state 0"}
    changed = shop.client.put(POLICY, json={"name": "x", "arguments": "--hash-bits 20"}).json()
    assert changed["arguments"] == "--hash_bits 20 --random_state 0"
    assert shop.client.get(SETTINGS).json()["hashBits"] == 20
    for arguments in ("--cb_explore_adf", "--hash_bits x", "--hash_bits 99", "hash_bits 18", "--learning_rate 1", "'"):
        assert shop.client.put(POLICY, json={"name": "x", "arguments": arguments}).status_code == 400
    assert shop.client.delete(POLICY).json() == shop.client.get(POLICY).json() == first


def test_models_go_out_and_come_in(shop: Inside) -> None:
    assert shop.client.get(MODEL).status_code == 404
    assert shop.client.get(f"{MODEL}/properties").json()["version"] == 0
    body = deciders.body_of(deciders.ranked())
    assert shop.client.put(MODEL, content=body).status_code == 204
    assert shop.client.get(MODEL).content == body
    assert shop.client.get(f"{MODEL}/properties").json()["version"] == 1
    shop.store.add_model(shop.made.id, body, 1, 1)
    shop.service.models.refresh()
    assert shop.client.get(f"{MODEL}/properties").json()["version"] == 1  # what was sent in stays
    for wrong in (b"", b"no model", body[:500], deciders.body_of(deciders.fixed())):
        found = shop.client.put(MODEL, content=wrong)
        assert (found.status_code, found.json()["error"]["code"]) == (400, "InvalidModelImportFormat")
    assert shop.client.delete(MODEL).status_code == 204
    assert shop.client.get(f"{MODEL}/properties").json()["version"] == 0


def test_status(shop: Inside) -> None:
    assert shop.client.get(f"{AT}/status").json()["apiStatus"] == "Valid"


def test_changes_at_the_same_time_are_all_kept(shop: Inside) -> None:
    """Each changes one setting, read and written in one transaction."""
    changes: list[dict[str, Any]] = [
        {"rewardWaitTime": "PT1H"}, {"defaultReward": 0.5}, {"rewardAggregation": "sum"}, {"logRetentionDays": 90},
        {"explorationPercentage": 0.2}, {"modelExportFrequency": "PT60S"}, {"learningMode": "Apprentice"},
    ]  # fmt: skip
    with ThreadPoolExecutor(7) as pool:
        done = list(pool.map(lambda change: shop.client.put(SETTINGS, json=change), changes * 3))
    assert {each.status_code for each in done} == {200}
    found = shop.client.get(SETTINGS).json()
    for change in changes[1:]:
        assert change.items() <= found.items()
    assert found["rewardWaitTime"] == "PT3600S"


def test_settings_that_another_has_changed_are_not_overwritten(shop: Inside) -> None:
    tag = shop.client.get(SETTINGS).headers["etag"]
    changed = shop.client.put(SETTINGS, json={"defaultReward": 0.5}, headers={"If-Match": tag})
    assert (changed.status_code, changed.headers["etag"]) == (200, shop.client.get(SETTINGS).headers["etag"])
    refused = shop.client.put(SETTINGS, json={"defaultReward": 0.7}, headers={"If-Match": tag})
    assert (refused.status_code, refused.headers["etag"]) == (412, changed.headers["etag"])
    assert shop.client.get(SETTINGS).json()["defaultReward"] == 0.5
    assert shop.client.put(SETTINGS, json={"defaultReward": 0.7}, headers={"If-Match": "*"}).status_code == 200


def test_flags_that_are_no_integers_are_refused(shop: Inside) -> None:
    for value in ("²", "٣", "1" * 30):
        found = shop.client.put(POLICY, json={"name": "x", "arguments": f"--hash_bits {value}"})
        assert found.status_code == 400


def test_a_reset_forgets_what_was_learned(shop: Inside) -> None:
    g, trainer = np.random.default_rng(0), Trainer(shop.store)
    decide(shop.store, visits(150, g), g, "a")
    trainer.step(last=True)
    shop.service.models.refresh()
    assert shop.client.get(f"{MODEL}/properties").json()["version"] == 1
    assert shop.client.delete(MODEL).status_code == 204
    decide(shop.store, visits(40, g), g, "b")
    for each in (trainer, Trainer(shop.store)):
        each.step(last=True)
        assert len(each.training[1].learner.log_) == 40
    assert shop.store.served_version(1) == 2
