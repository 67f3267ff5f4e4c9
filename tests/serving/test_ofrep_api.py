"""OpenFeature's clients decide through the service: the published providers, unmodified, and the protocol itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.serving.clients import Inside, inside, key, listening
from tests.serving.node import node

from o2pl.serving.api import make_app
from o2pl.serving.ofrep_api import flag_values
from o2pl.serving.service import Service
from o2pl.serving.settings import Settings
from o2pl.serving.store import Store

FLAGS = "/ofrep/v1/evaluate/flags"
COLOURS = Settings(actions=("red", "green", "blue"))


@pytest.fixture
def button(tmp_path: Path) -> Iterator[Inside]:
    with inside(tmp_path, "fixed", COLOURS) as found:  # the application `shop`
        yield found


def stored(shop: Inside) -> list[Any]:
    return [msgspec.json.decode(bytes(row.context)) for row in shop.decisions()]


def test_the_published_python_provider_works_unchanged(button: Inside) -> None:
    from openfeature import api
    from openfeature.contrib.provider.ofrep import OFREPProvider
    from openfeature.evaluation_context import EvaluationContext

    def client_with(headers: dict[str, str]) -> Any:
        api.set_provider(OFREPProvider(str(button.client.base_url), headers_factory=lambda: headers))
        return api.get_client()

    context = EvaluationContext("user-7", {"device": "phone", "visits": 3})
    try:
        client = client_with({"Authorization": f"Bearer {button.made.write_key}"})
        found = client.get_string_details("shop", "none", context)
        assert found.error_code is None
        assert found.value == found.variant
        assert found.value in COLOURS.actions
        assert found.reason == "SPLIT"
        event = found.flag_metadata["eventId"]
        assert found.flag_metadata == {"eventId": event, "propensity": pytest.approx(1 / 3), "modelVersion": 0}
        assert button.client.post("/reward", json={"eventId": event, "value": 1}).status_code == 204
        assert stored(button) == [{"targetingKey": "user-7", "device": "phone", "visits": 3}]
        other = client.get_string_details("other", "none", context)
        assert (other.value, other.error_code.value) == ("none", "FLAG_NOT_FOUND")
        assert "the application of this key" in other.error_message
        wrong = client.get_boolean_details("shop", False, context)
        assert (wrong.value, wrong.error_code.value) == (False, "TYPE_MISMATCH")
        refused = client.get_string_details("shop", "none", EvaluationContext(None, {"o2pl": {"actions": ["x"]}}))
        assert (refused.value, refused.error_code.value) == ("none", "INVALID_CONTEXT")
        locked = client_with({"X-API-Key": "wrong"}).get_string_details("shop", "none", context)
        assert (locked.value, locked.error_message) == ("none", "unauthorized")
    finally:
        api.clear_providers()


def test_the_published_javascript_providers_work_unchanged(button: Inside) -> None:
    said = node("openfeature.cjs", str(button.client.base_url), button.made.write_key, "shop")
    assert said["first"]["value"] == said["first"]["variant"]
    assert said["first"]["value"] in COLOURS.actions
    assert said["first"]["metadata"]["propensity"] == pytest.approx(1 / 3)
    assert said["again"]["metadata"]["eventId"] == "mine"
    assert said["retried"] == said["again"]
    errors = {name: said[name]["error"] for name in ("unknown", "type", "invalid", "locked")}
    assert errors == {
        "unknown": "FLAG_NOT_FOUND", "type": "TYPE_MISMATCH", "invalid": "INVALID_CONTEXT", "locked": "GENERAL",
    }  # fmt: skip
    assert said["statuses"] == [200, 304, 304]
    assert said["web"] == said["polled"]
    assert said["web"]["value"] in COLOURS.actions
    # One evaluation of the wrong type is a decision too: only the client knows what type it wants.
    assert [each["targetingKey"] for each in stored(button)] == ["user-7"] * 3 + ["user-8"]


def test_the_tag_changes_with_the_context_and_the_actions_only(button: Inside) -> None:
    def ask(context: Any, tag: str = "") -> Any:
        return button.client.post(FLAGS, json={"context": context}, headers={"If-None-Match": tag} if tag else {})

    first = ask({"targetingKey": "a", "b": 1})
    tag = first.headers["etag"]
    (flag,) = first.json()["flags"]
    assert "cacheable" not in flag
    same = ask({"b": 1, "targetingKey": "a"}, f'"x", {tag}')
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
    assert len(button.decisions()) == 1
    assert ask({"targetingKey": "b", "b": 1}, tag).status_code == 200
    button.client.put("/personalizer/v1.0/configurations/service", json={"actions": ["red", "green"]})
    assert ask({"targetingKey": "a", "b": 1}, tag).status_code == 200
    assert len(button.decisions()) == 3


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "PARSE_ERROR"), (b'{"context": [1]}', "INVALID_CONTEXT"), (b"\xff", "PARSE_ERROR"),
        (b'{"context": {"o2pl": {"eventId": 3}}}', "INVALID_CONTEXT"),
        (b'{"context": {"o2pl": {"excludedActions": ["red", "green", "blue"]}}}', "INVALID_CONTEXT"),
    ],
)  # fmt: skip
def test_errors_are_those_of_the_protocol(button: Inside, body: bytes, code: str) -> None:
    answer = button.client.post(f"{FLAGS}/shop", content=body)
    assert answer.status_code == 400
    assert (answer.json()["key"], answer.json()["errorCode"]) == ("shop", code)
    assert answer.json()["errorDetails"]
    every = button.client.post(FLAGS, content=body)
    said = every.json() if every.status_code == 400 else every.json()["flags"][0]
    assert said == answer.json()
    assert not button.decisions()


def test_an_event_id_of_another_context_is_refused(button: Inside) -> None:
    for device, status in (("phone", 200), ("desk", 400)):
        body = {"context": {"device": device, "o2pl": {"eventId": "e"}}}
        answer = button.client.post(f"{FLAGS}/shop", json=body)
        assert answer.status_code == status
    assert "already exists" in answer.json()["errorDetails"]
    assert answer.json()["errorCode"] == "GENERAL"
    assert len(button.decisions()) == 1


def test_a_read_key_does_not_decide(button: Inside) -> None:
    assert button.client.post(f"{FLAGS}/shop", json={}, headers=key(button.made.read_key)).status_code == 403
    assert not button.decisions()


def test_calls_may_bring_their_actions(tmp_path: Path) -> None:
    with inside(tmp_path) as shop:
        own = {"actions": ["5", {"id": "7.5", "features": {"size": 2}}], "eventId": "e", "baselineAction": "7.5"}
        answer = shop.client.post(f"{FLAGS}/shop", json={"context": {"device": "phone", "o2pl": own}})
        assert answer.json()["value"] in (5.0, 7.5)
        assert answer.json()["cacheable"] is False
        (row,) = shop.decisions()
        assert row.baseline == 1
        assert '"device":"phone"' in bytes(row.context).decode()
        assert '{"id":"7.5","size":2}' in bytes(row.context).decode()
        assert "o2pl" not in bytes(row.context).decode()


def test_numbers_are_values_too(tmp_path: Path) -> None:
    with inside(tmp_path, "continuous", Settings(bounds=(5.0, 20.0))) as shop:
        context = {"targetingKey": "user-7", "age": 31, "visits": 2.5}
        answer = shop.client.post(f"{FLAGS}/shop", json={"context": context}).json()
        assert 5 <= answer["value"] <= 20
        assert answer["variant"] == str(answer["value"])
        assert stored(shop) == [{"age": 31, "visits": 2.5}]


def test_the_baseline_is_a_default(tmp_path: Path) -> None:
    with Store.open(tmp_path / "o2pl.sqlite") as store:
        made = store.add_application("shop", "fixed", COLOURS)
        store.put_settings(made.id, msgspec.structs.replace(COLOURS, learning_mode="Apprentice"))
        with listening(make_app(Service(store))) as address:
            import httpx

            answer = httpx.post(f"{address}{FLAGS}/shop", json={}, headers=key(made.write_key)).json()
    assert (answer["value"], answer["reason"]) == ("red", "DEFAULT")


def test_values_have_the_type_of_all_names() -> None:
    assert flag_values(("true", "false")) == {"true": True, "false": False}
    assert flag_values(("1", "2")) == {"1": 1, "2": 2}
    assert flag_values(("1", "2.5")) == {"1": 1.0, "2.5": 2.5}
    assert type(flag_values(("1", "2.5"))["1"]) is float
    assert flag_values(('{"a": 1}', "{}")) == {'{"a": 1}': {"a": 1}, "{}": {}}
    for names in (("1", "true"), ("red", "1"), ("007", "1"), ("null",), ('"a"', '"b"'), ("[" * 2000,)):
        assert flag_values(names) == {name: name for name in names}
