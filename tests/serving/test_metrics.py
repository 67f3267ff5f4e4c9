"""Numbers for Prometheus."""

from __future__ import annotations

from pathlib import Path

from tests.serving.clients import RANK, inside, key


def test_calls_and_rows_are_counted(tmp_path: Path) -> None:
    with inside(tmp_path) as shop:
        event = shop.client.post(RANK, json={"actions": [{"id": "a"}]}).json()["eventId"]
        shop.client.post("/reward", json={"eventId": event, "value": 1})
        shop.client.post("/decide/batch", json={"decisions": [{"actions": [{"id": "a"}]}] * 2})
        shop.client.post(RANK, content=b"{")
        text = shop.client.get("/metrics", headers=key(shop.made.read_key)).text
    for line in (
        'o2pl_calls_total{route="/personalizer/v1.0/rank",status="201"} 1.0',
        'o2pl_calls_total{route="/personalizer/v1.0/rank",status="400"} 1.0',
        'o2pl_decisions_total{application="shop"} 3.0',
        'o2pl_rewards_total{application="shop"} 1.0',
        'o2pl_model_version{application="shop"} 0.0',
        "o2pl_entries_waiting 0.0",
        'o2pl_call_seconds_count{route="/reward"} 1.0',
    ):
        assert line in text.splitlines()
