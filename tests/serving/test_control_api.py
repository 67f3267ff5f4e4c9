"""`GET /control`, the metrics and the page say how the service compares with its control group."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.serving import clients
from tests.serving.clients import inside

from o2pl.serving import control_comparison
from o2pl.serving.control_assignment import experiment_of
from o2pl.serving.control_comparison import Point
from o2pl.serving.gain_sequence import Contrast, added
from o2pl.serving.settings import Kind, MetricSettings, Settings
from o2pl.serving.store import Store
from o2pl.serving.trainer import Trainer

SETTINGS = Settings(control_share=0.3, metrics={"complaint": MetricSettings(lower_is_better=True)})


def test_the_page_the_api_and_the_metrics_say_the_same(tmp_path: Path) -> None:
    with inside(tmp_path, settings=SETTINGS) as shop:
        name = experiment_of(SETTINGS, Kind.RANKED)
        assert name is not None
        state, g = control_comparison.begun(name, SETTINGS, 6000.0), np.random.default_rng(0)
        control = g.random(3000) < 0.3
        for asked, chance in (("reward", 0.5), ("complaint", 0.2)):
            values = (g.random(3000) < chance + 0.2 * ~control).astype(float)
            state.sums[asked] = added(Contrast(), values, control, 0.3, (0.0, 1.0))
        state.decisions, state.alerts, state.upto = [2100, 900], {"complaint": "complaint: worse"}, 9000.0
        state.points.append(Point(9000.0, {"reward": (0.2, 0.1, 0.3)}))
        shop.store.put_note(control_comparison.note_of(1), msgspec.json.encode(state).decode())
        found = shop.client.get("/control").json()
        assert shop.client.get("/page/summary/hour").json()["control"] == found
        assert (found["key"], found["period"], found["since"], found["upto"]) == (None, None, 6000.0, 9000.0)
        earns, harms = found["findings"]
        assert (earns["verdict"], earns["sign"], harms["verdict"], harms["sign"]) == ("better", 1, "worse", -1)
        assert earns["low"] <= 0.2 <= earns["high"]
        assert harms["alert"] == "complaint: worse"
        assert "better than the control group, with 95% confidence at any time, jointly" in earns["says"]
        shop.service.watch.look()
        assert 'o2pl_control_alerts{application="shop"} 1.0' in shop.client.get("/metrics").text
        shop.client.put("/personalizer/v1.0/configurations/service", json={"controlShare": 0})
        ended = shop.client.get("/control").json()
        assert (ended["running"], ended["findings"]) == (False, found["findings"])


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_running_server_compares(tmp_path: Path, database: str, request: pytest.FixtureRequest) -> None:
    """Calls over HTTP, then a trainer days later."""
    url = str(tmp_path / "o2pl.sqlite")
    if database == "postgresql":
        postgres = request.getfixturevalue("postgres")
        postgres.empty()
        url = postgres.url
    put = {"controlShare": 0.4, "metrics": {"complaint": {"range": [0, 2], "lowerIsBetter": True}}}
    with (
        clients.server(tmp_path, "--no-trainer", "--rate-limit", "0", database=url) as running,
        running.client() as client, running.client(running.read_key) as reader,
    ):  # fmt: skip
        assert reader.get("/control").status_code == 404
        assert client.put("/personalizer/v1.0/configurations/service", json=put).status_code == 200
        assert reader.get("/control").json()["findings"] == []
        rows = []
        for k in range(150):
            made = client.post("/decide", json={"eventId": f"e{k}", "actions": [{"id": name} for name in "abc"]}).json()
            rows.append(
                {"eventId": f"e{k}", "value": float(made["action"] == "b"), "metrics": {"complaint": k % 3 / 2}}
            )
        for wrong in ({"sales": 1}, {"complaint": 3}):
            told = client.post("/reward", json={**rows[0], "metrics": wrong})
            assert (told.status_code, told.json()["error"]["code"]) == (400, "InvalidRewardRequest")
        stored = client.post("/reward/batch", json={"rewards": rows[:149]}).json()["rewards"]
        assert {each["result"] for each in stored} == {"stored"}
        path = "/personalizer/v1.0/events/e149/reward"
        assert client.post(path, json={"value": rows[149]["value"], "metrics": {"complaint": 1}}).status_code == 204
        with Store.open(url) as store:
            trainer = Trainer(store)
            trainer.step()
            trainer.step(now=time.time() + 86400, last=True)
            groups = {row.event_id: bool(row.control) for row in store.decisions_after(1)}
        found = reader.get("/control").json()
        by_name = {each["name"]: each for each in found["findings"]}
        for name, of in (("reward", lambda k: rows[k]["value"]), ("complaint", lambda k: k % 3 / 2 if k < 149 else 1)):
            for group, control in (("service", False), ("control", True)):
                values = [of(k) for k in range(150) if groups[f"e{k}"] == control]
                assert by_name[name][group] == pytest.approx(np.mean(values))
        assert by_name["reward"]["control"] == 0.0  # the first action, `a`
        assert sum(found["decisions"]) == 150
        assert found["running"] is True
