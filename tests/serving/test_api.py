"""The whole service, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.serving.clients import RANK, Server, inside, key, server
from tests.serving.postgres import Postgres

from o2pl.serving.access_control import OPEN
from o2pl.serving.deciding import Acting, redecided
from o2pl.serving.front import ROUTES
from o2pl.serving.models import decider_of
from o2pl.serving.settings import Settings
from o2pl.serving.store import Store
from o2pl.serving.trainer import Trainer

FINE = {"actions": [{"id": "a"}, {"id": "b"}]}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server(tmp_path_factory.mktemp("server"), "--no-trainer", "--log-calls", "--rate-limit", "0") as found:
        yield found


def test_nothing_is_read_or_written_without_a_key(tmp_path: Path) -> None:
    assert {"/", "/health", "/ready", "/openapi.json"} == OPEN
    with inside(tmp_path) as shop:
        event = shop.client.post(RANK, json=FINE).json()["eventId"]
        documented = httpx.get(f"{shop.client.base_url}/openapi.json").json()["paths"]
        known = {(route.method, route.path) for route in ROUTES}
        known |= {(method.upper(), path) for path, own in documented.items() for method in own}
        before = shop.store.settings(shop.made.id)
        with httpx.Client(base_url=shop.client.base_url) as nobody:
            for method, path in sorted(known):
                where = path.replace("{eventId}", event)
                for headers in ({}, key("wrong"), {"Authorization": "Bearer wrong"}, key(shop.made.write_key[:-1])):
                    found = nobody.request(method, where, json={"value": 1.0, **FINE}, headers=headers)
                    if path in OPEN:
                        assert found.status_code < 500
                    else:
                        assert (found.status_code, path) == (401, path)
                        assert found.json()["error"]["code"] == "Unauthorized"
            reader = key(shop.made.read_key)
            for route in ROUTES:
                if route.role == "write":
                    where = route.path.replace("{eventId}", event)
                    assert nobody.request(route.method, where, json=FINE, headers=reader).status_code == 403
            assert nobody.get("/page/summary").status_code == 401  # also what is not ours
        assert len(shop.decisions()) == 1
        assert not shop.rewards()
        assert not shop.store.activations_after(shop.made.id)
        assert not shop.store.model_versions(shop.made.id)
        assert shop.store.settings(shop.made.id) == before


@pytest.mark.parametrize(
    ("kind", "settings", "body"),
    [
        ("ranked", Settings(), {"context": {"user": "u"}, "actions": [{"id": "a"}, {"id": "b"}]}),
        ("fixed", Settings(actions=("a", "b", "c")), {"context": {"user": "u", "age": 3}}),
        ("continuous", Settings(bounds=(5.0, 20.0)), {"context": [0.5, 1.0]}),
        ("continuous", Settings(bounds=(5.0, 20.0)), {"context": {"age": 3, "size": 0.5}}),
    ],
)
def test_every_kind_learns_and_is_decided_again(tmp_path: Path, kind: str, settings: Settings, body: Any) -> None:
    with inside(tmp_path, kind, settings) as shop:
        for turn in range(2):
            decided = shop.client.post("/decide/batch", json={"decisions": [body] * 60}).json()["decisions"]
            found = [each["decision"] for each in decided]
            rewards = [{"eventId": each["eventId"], "value": float(each["action"] in ("a", 9))} for each in found]
            assert {each["modelVersion"] > 0 for each in found} == {turn == 1}
            shop.client.post("/reward/batch", json={"rewards": rewards})
            Trainer(shop.store, tmp_path / "state").step(last=True)
            shop.service.models.refresh()
        (application,) = shop.store.applications()
        for row in shop.decisions()[60:]:
            body_of_model = shop.store.model_body(application.id, row.model_version)
            acting = Acting(application.kind, application.settings, row.model_version, decider_of(body_of_model))
            again = redecided(acting, row)
            assert (again.action, again.value, again.propensity) == (row.action, row.value, row.propensity)


def test_health_and_readiness(tmp_path: Path) -> None:
    with inside(tmp_path) as shop:
        assert shop.client.get("/health", headers=key("")).json() == {"status": "alive"}
        assert shop.client.get("/ready").status_code == 200
        shop.service.ready = False
        assert shop.client.get("/ready").status_code == 503
        missing = shop.client.get("/nothing")
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "ResourceNotFound")


def test_a_store_that_is_gone_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with inside(tmp_path) as shop:
        shop.service.writer.stop()
        with caplog.at_level("ERROR", "o2pl"):
            found = [shop.client.post(RANK, json=FINE) for _ in range(5)][-1]
        assert caplog.text.count("store unavailable") <= 2  # once a second, whatever the load
        assert (found.status_code, found.headers["retry-after"]) == (503, "1")
        assert shop.client.get("/health").status_code == 200


def test_a_fault_is_answered_and_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with inside(tmp_path) as shop:
        monkeypatch.setattr(shop.service, "store_decision", None)
        found = shop.client.post(RANK, json=FINE)
        assert (found.status_code, found.json()["error"]["code"]) == (500, "InternalServerError")
        assert "NoneType" not in found.text


def test_many_callers_at_once(real: Server) -> None:
    with real.client() as client, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.post(RANK, json=FINE).json(), range(200)))
        rewards = pool.map(lambda each: client.post("/reward", json={"eventId": each["eventId"], "value": 1}), answers)
        assert {each.status_code for each in rewards} == {204}
    assert len({each["eventId"] for each in answers}) == 200


def test_the_document_holds_under_fuzzing(real: Server, tmp_path: Path) -> None:
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "run", f"{real.address}/openapi.json",
        "--header", f"Ocp-Apim-Subscription-Key: {real.write_key}", "--max-examples", "6", "--seed", "1",
        "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
        "--exclude-path", "/ready", "--phases", "examples,coverage,fuzzing", "--generation-database", "none",
        "--no-color",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_keys_are_in_no_log(real: Server) -> None:
    with real.client("a-wrong-key-of-nobody") as client:
        client.post(RANK, json=FINE)
    with real.client() as client:
        client.post(RANK, content=b"{")
        client.post(RANK, json=FINE)
    said = real.errors.read_text()
    assert '"status":401' in said  # calls are logged
    for secret in (real.write_key, real.read_key, "a-wrong-key-of-nobody"):
        assert secret not in said
    assert real.output.read_text().count(real.read_key) == 1


def test_what_was_acknowledged_before_a_stop_is_there(tmp_path: Path) -> None:
    with server(tmp_path, "--no-trainer") as real, real.client() as client, ThreadPoolExecutor(8) as pool:

        def rank(k: int) -> str | None:
            if k == 60:
                real.process.terminate()
            try:
                found = client.post(RANK, json={**FINE, "eventId": f"e{k}"})
            except httpx.HTTPError:
                return None
            return f"e{k}" if found.status_code == 201 else None

        known = {each for each in pool.map(rank, range(200)) if each}
        assert real.process.wait(20) in (0, -15)  # the signal, raised again after a clean stop
    assert len(known) >= 50
    with Store.open(tmp_path / "o2pl.sqlite") as store:
        assert known <= {row.event_id for row in store.decisions_after(1, limit=1000)}


def _in_time(call: Callable[[], httpx.Response]) -> int:
    """The status once it is no longer 503, which tells clients to try again."""
    until = time.monotonic() + 30
    while (status := call().status_code) == 503:
        assert time.monotonic() < until
        time.sleep(0.2)
    return status


def test_servers_share_a_database_and_outlive_it(postgres: Postgres, tmp_path: Path) -> None:
    postgres.empty()
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    with (
        server(folders[0], "--no-trainer", database=postgres.url) as first,
        server(folders[1], "--no-trainer", database=postgres.url) as second,
        first.client() as one,
        second.client(first.write_key) as other,
    ):
        event = one.post(RANK, json=FINE).json()["eventId"]
        assert other.post("/reward", json={"eventId": event, "value": 1}).status_code == 204
        assert other.post(RANK, json={**FINE, "eventId": event}).status_code == 201  # the same request: as before
        assert other.post(RANK, json={"actions": [{"id": "c"}], "eventId": event}).status_code == 409
        postgres.kill()
        refused = one.post(RANK, json={**FINE, "eventId": "later"})
        assert refused.status_code == 503
        assert one.get("/health").status_code == 200
        postgres.start()
        assert _in_time(lambda: one.post(RANK, json={**FINE, "eventId": "later"})) == 201
        assert _in_time(lambda: other.post("/reward", json={"eventId": "later", "value": 1})) == 204
