"""A decision that is asked for again: the same answer for the same request, an error for another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.serving.clients import RANK, inside

from o2pl.serving.settings import LearningMode, Settings

ACTIONS = [{"id": "a", "features": [{"x": 1}]}, {"id": "b"}, {"id": "c"}]
SLOTS = "/personalizer/v1.1-preview.3/multislot/rank"
OF_SLOTS = {
    "eventId": "e", "contextFeatures": [{"user": 1}], "actions": ACTIONS,
    "slots": [{"id": "top", "baselineAction": "a"}, {"id": "side", "baselineAction": "b"}],
}  # fmt: skip
PLAIN = {"eventId": "e", "context": {"user": 1}, "actions": [{"id": "a"}, {"id": "b"}, {"id": "c"}]}


@pytest.mark.parametrize(
    ("path", "body", "change", "kind", "settings"),
    [
        (RANK, {"eventId": "e", "contextFeatures": [{"user": 1}], "actions": ACTIONS, "excludedActions": ["b"]},
         {"excludedActions": ["c"]}, "ranked", Settings()),
        (RANK, {"eventId": "e", "actions": ACTIONS}, {"deferActivation": True}, "ranked", Settings()),
        (RANK, {"eventId": "e", "actions": ACTIONS}, {"contextFeatures": [{"user": 2}]}, "ranked",
         Settings(learning_mode=LearningMode.APPRENTICE)),
        (SLOTS, OF_SLOTS, {"contextFeatures": [{"user": 2}]}, "ranked", Settings()),
        (SLOTS, OF_SLOTS, {"slots": OF_SLOTS["slots"][:1]}, "ranked", Settings()),
        ("/decide", PLAIN, {"baselineAction": "b"}, "ranked", Settings()),
        ("/decide", {"eventId": "e", "context": {"user": 1}}, {"context": {"user": 2}}, "fixed",
         Settings(actions=("a", "b", "c"))),
        ("/decide", {"eventId": "e", "context": [1.0]}, {"context": [2.0]}, "continuous", Settings(bounds=(0.0, 1.0))),
    ],
)  # fmt: skip
def test_a_call_that_is_sent_again_is_answered_as_before(
    tmp_path: Path, path: str, body: Any, change: Any, kind: str, settings: Settings
) -> None:
    with inside(tmp_path, kind, settings) as shop:
        first = shop.client.post(path, json=body)
        assert first.status_code in (200, 201)
        for _ in range(8):  # it is drawn anew each time
            again = shop.client.post(path, json=body)
            assert (again.status_code, again.json()) == (first.status_code, first.json())
        other = shop.client.post(path, json={**body, **change})
        assert other.status_code == 409
        assert "with another request" in other.json()["error"]["message"]
        assert {row.event_id for row in shop.decisions()} == {"e"}
        assert len(shop.decisions()) == len(first.json().get("slots", [1]))


def test_a_batch_that_is_sent_again(tmp_path: Path) -> None:
    with inside(tmp_path) as shop:
        requests = [{**PLAIN, "eventId": f"e{k}"} for k in range(9)]
        first = shop.client.post("/decide/batch", json={"decisions": requests}).json()
        assert shop.client.post("/decide/batch", json={"decisions": requests}).json() == first
        changed = [{**requests[0], "context": {"user": 2}}, requests[1]]
        one, two = shop.client.post("/decide/batch", json={"decisions": changed}).json()["decisions"]
        assert "another request" in one["error"]["message"]
        assert two == first["decisions"][1]
        assert len(shop.decisions()) == 9
