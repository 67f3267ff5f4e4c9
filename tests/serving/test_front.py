"""Which route serves a path, and what large or broken bodies are told."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.serving.clients import RANK, Inside, inside, key

from o2pl.serving.access_control import Limits
from o2pl.serving.fair_turns import FairTurns
from o2pl.serving.front import ROUTES, Table
from o2pl.serving.problems import Problem

FINE = {"actions": [{"id": "a"}, {"id": "b"}]}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Inside]:
    with inside(tmp_path, limits=Limits(body=4096, rate=1e-9, burst=60)) as found:
        yield found


def test_every_route_is_found() -> None:
    table = Table(ROUTES)
    for route in ROUTES:
        found, named = table.find(route.method, re.sub("{.*}", "a/b é", route.path))
        assert found is route
        assert named == ("a/b é" if "{" in route.path else "")
    assert table.find("GET", "/page/summary") == (None, "")
    assert table.find("POST", "/personalizer/v2/rank") == (None, "")
    for path in ("/decide", "/personalizer/v1.0/events/a/reward"):
        with pytest.raises(Problem, match="expected POST") as refused:
            table.find("GET", path)
        assert refused.value.status == 405
    with pytest.raises(Problem, match="GET, PUT, DELETE"):
        table.find("POST", "/personalizer/v1.0/model")


def test_bodies_that_are_too_large_are_refused(shop: Inside) -> None:
    large = json.dumps({**FINE, "contextFeatures": [{"text": "x" * 5000}]}).encode()
    assert shop.client.post(RANK, content=large).status_code == 413
    assert shop.client.post(RANK, content=iter([large[:100], large[100:]])).status_code == 413  # of no stated length
    pieces = json.dumps(FINE).encode()
    assert shop.client.post(RANK, content=iter([pieces[:9], pieces[9:]])).status_code == 201
    assert len(shop.decisions()) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"null", b"[]", b'{"actions": NaN}', b'{"actions":[{"id":"\xff"},{"id":"b"}]}',
        b'{"actions":[{"id":"a","features":[{"x":"\xff\xfe"}]}]}', b'{"actions":[{"id":"a","features":[{"x":1e400}]}]}',
        b'{"actions":' + b"[" * 2000 + b"]" * 2000 + b"}", b'{"contextFeatures":[' + b'{"a":' * 600 + b"1" + b"}" * 600
        + b'],"actions":[{"id":"a"}]}', b'\xef\xbb\xbf{"actions":[{"id":"a"}]}', b'{"actions":[{"id":"\\ud800"}]}',
    ],
)  # fmt: skip
def test_broken_bodies_are_refused(shop: Inside, body: bytes) -> None:
    found = shop.client.post(RANK, content=body)
    assert found.status_code == 400
    assert found.json()["error"]["message"]
    assert not shop.decisions()


def test_long_words_are_words_like_others(tmp_path: Path) -> None:
    with inside(tmp_path) as shop:
        long = "x" * 1_000_000
        body = {"contextFeatures": [{"text": long}], "actions": FINE["actions"]}
        assert shop.client.post(RANK, json=body).status_code == 201
        for wrong in ({"actions": [{"id": long}]}, {**FINE, "eventId": long}, {**FINE, "excludedActions": [long]}):
            found = shop.client.post(RANK, json=wrong)
            assert found.status_code == 400
            assert len(found.content) < 2000


def test_a_key_may_not_call_too_often(shop: Inside) -> None:
    for _ in range(60):
        assert shop.client.post(RANK, json=FINE).status_code == 201
    refused = shop.client.post(RANK, json=FINE)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    own = key(shop.made.read_key)
    assert shop.client.get("/personalizer/v1.0/status", headers=own).status_code == 200
    assert len(shop.decisions()) == 60


def test_a_new_key_is_known_at_once(shop: Inside) -> None:
    new = shop.store.add_key(shop.made.id, "read")
    assert shop.client.get("/personalizer/v1.0/status", headers=key(new)).status_code == 200


def test_a_caller_that_goes_away_leaves_nothing(shop: Inside) -> None:
    address = httpx.URL(shop.client.base_url)
    with socket.create_connection((address.host, address.port or 80)) as line:
        head = f"POST {RANK} HTTP/1.1\r\nHost: a\r\nOcp-Apim-Subscription-Key: {shop.made.write_key}\r\n"
        line.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
    assert shop.client.post(RANK, json=FINE).status_code == 201
    assert len(shop.decisions()) == 1


def test_decisions_take_turns_but_calls_of_the_page_and_of_settings_do_not(
    shop: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = [], []
    begin, end = FairTurns.begin, FairTurns.end

    async def beginning(turns: FairTurns, application: int) -> None:
        begun.append(application)
        await begin(turns, application)

    def ending(turns: FairTurns, application: int) -> None:
        ended.append(application)
        end(turns, application)

    monkeypatch.setattr(FairTurns, "begin", beginning)
    monkeypatch.setattr(FairTurns, "end", ending)
    assert shop.client.post(RANK, json=FINE).status_code == 201
    assert shop.client.post(RANK, json={"actions": []}).status_code == 400  # its turn ends, too
    assert begun == ended == [1, 1]
    assert shop.client.get("/personalizer/v1.0/configurations/service").status_code == 200
    assert begun == [1, 1]
