"""Numbers for Prometheus."""

from __future__ import annotations

import re
from pathlib import Path

from tests.serving.clients import RANK, inside, key

from o2pl.serving.access_control import Limits


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


def test_an_application_sees_no_other_and_the_operator_sees_all(tmp_path: Path) -> None:
    operator = "o" * 32
    with inside(tmp_path, limits=Limits(operator_key=operator)) as shop:
        other = shop.store.add_application("other")
        for each in (shop.made, other):
            assert (
                shop.client.post(RANK, json={"actions": [{"id": "a"}]}, headers=key(each.write_key)).status_code == 201
            )

        def names(which: str) -> set[str]:
            answer = shop.client.get("/metrics", headers=key(which))
            assert answer.status_code == 200
            assert "o2pl_entries_waiting 0.0" in answer.text
            return set(re.findall('application="(.*?)"', answer.text))

        assert names(shop.made.read_key) == {"shop"}
        assert names(other.write_key) == {"other"}
        assert names(operator) == {"shop", "other"}
        for path in ("/page/events", "/personalizer/v1.0/configurations/service"):
            assert shop.client.get(path, headers=key(operator)).status_code == 401
        assert shop.client.get("/metrics", headers=key("o" * 31)).status_code == 401


def test_without_an_operator_s_key_nobody_is_one(tmp_path: Path) -> None:
    with inside(tmp_path) as shop:
        for wrong in ("", "None", "x"):
            assert shop.client.get("/metrics", headers=key(wrong)).status_code == 401
