"""Who is in the control group: the share that was asked for, sticky by its key, the same on every server."""

from __future__ import annotations

import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.serving import deciders
from tests.serving.clients import RANK, inside

from o2pl import InvalidInput
from o2pl.serving.applications import Application
from o2pl.serving.control_assignment import Arm, arm_of, experiment_of
from o2pl.serving.deciding import Acting
from o2pl.serving.events import explain_event
from o2pl.serving.models import Served
from o2pl.serving.settings import Kind, LearningMode, Settings, from_json

SHARED = Settings(control_share=0.25, control_key="user.id")
SETTINGS = "/personalizer/v1.0/configurations/service"


def served(settings: Settings, number: int = 1) -> Served:
    application = Application(number, "shop", Kind.RANKED, settings, None, 5.0)
    return Served(application, Acting(Kind.RANKED, settings), experiment=experiment_of(settings, Kind.RANKED))


def arm(one: Served, user: Any, event: str = "e", headers: Any = ()) -> Arm:
    return arm_of(one, event, msgspec.json.encode({"user": {"id": user}}), headers)


def test_a_key_stays_in_its_group_and_the_share_is_kept() -> None:
    one = served(SHARED)
    first = [arm(one, f"u{k}", f"e{k}") for k in range(8000)]
    again = [arm(served(SHARED), f"u{k}", f"later{k}") for k in range(8000)]
    assert [(a.control, a.unit) for a in first] == [(a.control, a.unit) for a in again]
    assert abs(sum(bool(a.control) for a in first) / 8000 - 0.25) < 0.02  # four standard deviations
    assert all(a.own == a.control for a in first)
    assert len({a.unit for a in first}) == 8000
    assert b"u1" not in (first[1].unit or "").encode()
    more = served(msgspec.structs.replace(SHARED, control_share=0.5))
    assert all(arm(more, f"u{k}").control for k in range(500) if first[k].control)


def test_other_applications_other_periods_and_other_versions_have_other_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    def groups(one: Served) -> list[bool | None]:
        return [arm(one, f"u{k}").control for k in range(200)]

    here, now = groups(served(SHARED)), time.time()
    assert groups(served(SHARED, number=2)) != here
    assert groups(served(msgspec.structs.replace(SHARED, control_version=0))) != here
    monkeypatch.setattr("o2pl.serving.control_assignment.time.time", lambda: now + 86400)
    assert groups(served(SHARED)) != here
    long = msgspec.structs.replace(SHARED, control_period=timedelta(days=300))
    started = groups(served(long))
    monkeypatch.setattr("o2pl.serving.control_assignment.time.time", lambda: (now // 25920000) * 25920000 + 5)
    before = groups(served(long))
    monkeypatch.setattr("o2pl.serving.control_assignment.time.time", lambda: (now // 25920000) * 25920000 + 25910000)
    assert groups(served(long)) == before == started


def test_units_are_keys_headers_or_events() -> None:
    by_header = served(msgspec.structs.replace(SHARED, control_key="header:X-User"))
    headers = [(b"host", b"x"), (b"x-user", b"ann")]
    assert arm(by_header, 1, "a", headers).unit == arm(by_header, 2, "b", headers).unit
    assert arm(by_header, 1, "a").unit != arm(by_header, 1, "b").unit  # none was sent
    one = served(SHARED)
    assert arm(one, 17, "a").unit == arm(one, "17", "b").unit
    for nothing in (None, "", {"x": 1}, [1]):
        assert arm(one, nothing, "a").unit != arm(one, nothing, "b").unit
    assert arm_of(one, "e", b"[1,2]", ()).unit == arm(one, None, "e").unit
    by_event = served(Settings(control_share=0.5))
    assert {arm(by_event, 1, f"e{k}").control for k in range(40)} == {True, False}
    assert arm(by_event, 1, "e1").unit == arm(by_event, 1, "e1").unit


def test_nothing_is_compared_where_nothing_is_asked_for() -> None:
    for settings in (
        Settings(), Settings(control_key="user.id"),
        replace_mode(SHARED, LearningMode.APPRENTICE), replace_mode(SHARED, LearningMode.LOGGING_ONLY),
    ):  # fmt: skip
        found = arm(served(settings), "u1")
        assert (found.experiment, found.unit, found.control) == (None, None, None)
        assert found.own == (settings.learning_mode is not LearningMode.ONLINE)


def replace_mode(settings: Settings, mode: LearningMode) -> Settings:
    return msgspec.structs.replace(settings, learning_mode=mode)


def test_decisions_of_the_control_group_are_the_applications_own(tmp_path: Path) -> None:
    with inside(tmp_path) as shop:
        shop.store.pin(shop.made.id, shop.store.add_model(shop.made.id, deciders.body_of(deciders.ranked()), 0, 0))
        assert shop.client.put(SETTINGS, json={"controlShare": 0.5, "controlKey": "user"}).status_code == 200
        actions = [{"id": name, "features": [{"x": 0.5}]} for name in "cba"]
        for k in range(60):
            asked = {"contextFeatures": [{"user": f"u{k // 2}"}], "actions": actions, "eventId": f"e{k}"}
            made = shop.client.post(RANK, json=asked).json()
            again = shop.client.post(RANK, json=asked)
            assert again.json() == made  # sent again
        rows = shop.decisions()
        assert {row.experiment for row in rows} == {experiment_of(shop.store.settings(1), Kind.RANKED)}
        groups = [row.control for row in rows]
        assert groups[::2] == groups[1::2]
        assert {True, False} == set(groups)
        for row in rows:
            if row.control:
                assert (row.action, row.propensity) == (0, 1.0)
                assert row.preferred is not None
            else:
                assert row.preferred is None
            explain_event(shop.store, shop.store.application(1), row.event_id)  # made again, bit for bit
        assert Counter(row.action for row in rows if not row.control)[0] < 25  # `c` is what the policy likes least
        slots = [{"id": "top", "baselineAction": "b"}, {"id": "side", "baselineAction": "a"}]
        for k in range(12):
            asked = {"contextFeatures": [{"user": f"u{k}"}], "actions": actions, "slots": slots, "eventId": f"s{k}"}
            assert shop.client.post("/personalizer/v1.1/multislot/rank", json=asked).status_code == 201
            one, two = shop.store.event(1, f"s{k}")["decisions"]
            assert (one.control, one.unit) == (two.control, two.unit) == (rows[2 * k].control, rows[2 * k].unit)
            if one.control:
                assert (one.propensity, two.propensity) == (1.0, 1.0)


def test_a_version_decides_for_the_control_group(tmp_path: Path) -> None:
    settings = Settings(actions=("left", "middle", "right"))
    with inside(tmp_path, "fixed", settings) as shop:
        first = shop.store.add_model(shop.made.id, deciders.body_of(deciders.fixed()), 0, 0)
        newer = shop.store.add_model(shop.made.id, deciders.body_of(deciders.fixed()), 0, 0)
        put = {"controlShare": 0.5, "controlVersion": 9, "controlKey": "header:X-User"}
        assert shop.client.put(SETTINGS, json=put).status_code == 400
        assert shop.store.settings(1).control_share == 0.0
        for version in (first, 0):
            put["controlVersion"] = version
            assert shop.client.put(SETTINGS, json=put).status_code == 200
            for k in range(30):
                asked = {"context": {"user": "u0"}, "eventId": f"{version}-{k}"}
                shop.client.post("/decide", json=asked, headers={"X-User": f"u{k}"})
            rows = [row for row in shop.decisions() if row.event_id.startswith(f"{version}-")]
            assert {(bool(row.control), row.model_version) for row in rows} == {(True, version), (False, newer)}
            assert all(row.preferred is None for row in rows)


def test_real_values_need_a_version(tmp_path: Path) -> None:
    with inside(tmp_path, "continuous", Settings(bounds=(0.0, 10.0))) as shop:
        refused = shop.client.put(SETTINGS, json={"controlShare": 0.5})
        assert "controlVersion: found none" in refused.json()["error"]["message"]
        assert shop.client.put(SETTINGS, json={"controlShare": 0.5, "controlVersion": 0}).status_code == 200
        for k in range(20):
            shop.client.post("/decide", json={"context": [0.1], "eventId": f"e{k}"})
        assert {row.control for row in shop.decisions()} == {True, False}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"controlShare": 0.95}, "controlShare"),
        ({"controlShare": -0.1}, "controlShare"),
        ({"controlPeriod": "PT1S"}, "controlPeriod"),
        ({"controlVersion": -1}, "controlVersion"),
        ({"controlKey": "header:"}, "controlKey"),
        ({"controlShare": 0.1, "controlKey": "a", "logRetentionDays": 1}, "logRetentionDays"),
        ({"metrics": {"reward": {}}}, "metrics"),
        ({"metrics": {"x": {"range": [1, 0]}}}, "range"),
        ({"metrics": {"x": {"default": 2}}}, "default"),
        ({"metrics": {"x": {"tolerance": -1}}}, "tolerance"),
        ({"metrics": {f"m{k}": {} for k in range(21)}}, "at most 20"),
        ({"metrics": {"x": {"colour": 1}}}, "colour"),
    ],
)
def test_settings_of_a_control_group_are_checked(change: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        from_json(msgspec.json.encode(change))


def test_a_control_version_that_cannot_be_served_is_said(tmp_path: Path) -> None:
    with inside(tmp_path) as shop:
        shop.store.add_model(shop.made.id, b"damaged", 0, 0)
        shop.store.add_model(shop.made.id, deciders.body_of(deciders.ranked()), 0, 0)
        assert shop.client.put(SETTINGS, json={"controlShare": 0.5, "controlVersion": 1}).status_code == 200
        found = shop.service.models.of[1]
        assert (found.acting.version, found.experiment) == (2, None)
        assert "there is no control group, since its version 1 cannot be served" in (found.failed or "")
        made = shop.client.post(RANK, json={"actions": [{"id": "a"}, {"id": "b"}], "eventId": "e"})
        assert made.status_code == 201
        assert shop.decisions()[0].experiment is None
