"""Spans of OpenTelemetry's own SDK: kept in memory, or sent to a collector."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.serving.clients import RANK, key, listening, server

from o2pl import InvalidInput
from o2pl.serving.api import make_app
from o2pl.serving.service import Service
from o2pl.serving.store import Store
from o2pl.serving.tracing import Traced, traces_to

BODY = {"actions": [{"id": "a"}, {"id": "b"}]}
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[tuple[httpx.Client, InMemorySpanExporter]]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    store = Store.open(tmp_path / "o2pl.sqlite")
    made = store.add_application("shop")
    with (
        listening(make_app(Service(store, traces=Traced(provider)))) as address,
        httpx.Client(base_url=address, headers=key(made.write_key), timeout=30) as client,
    ):
        yield client, exporter


def test_a_call_is_a_span_of_the_caller_s_trace(traced: tuple[httpx.Client, InMemorySpanExporter]) -> None:
    client, exporter = traced
    assert client.post(RANK, json=BODY, headers={"traceparent": PARENT}).status_code == 201
    store, call = exporter.get_finished_spans()  # in the order in which they end
    assert (store.name, call.name) == ("store", f"POST {RANK}")
    assert store.parent is not None
    assert store.parent.span_id == call.context.span_id
    assert call.parent is not None
    assert f"{call.parent.span_id:016x}" == PARENT.split("-")[2]
    assert {f"{each.context.trace_id:032x}" for each in (store, call)} == {PARENT.split("-")[1]}
    assert dict(call.attributes or {}) == {
        "http.request.method": "POST", "http.route": RANK, "http.response.status_code": 201, "o2pl.application": "shop",
    }  # fmt: skip
    assert not {"key", "body", "context"} & set(json.loads(call.to_json())["attributes"])


def test_errors_are_spans_too(traced: tuple[httpx.Client, InMemorySpanExporter]) -> None:
    client, exporter = traced
    assert client.post("/decide", content=b"{").status_code == 400
    assert client.get("/health", headers=key("wrong")).status_code == 200
    assert client.get("/page/events", headers=key("wrong")).status_code == 401
    spans = exporter.get_finished_spans()
    statuses = [(each.name, (each.attributes or {})["http.response.status_code"]) for each in spans]
    assert statuses == [("POST /decide", 400), ("GET other", 200), ("GET other", 401)]
    assert all(each.parent is None for each in spans)


def test_spans_reach_a_collector(tmp_path: Path) -> None:
    came: list[tuple[str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Collector) as collector:
        threading.Thread(target=collector.serve_forever).start()
        try:
            url = f"http://127.0.0.1:{collector.server_port}/v1/traces"
            with server(tmp_path, "--no-trainer", "--traces", url) as real, real.client() as client:
                assert client.post(RANK, json=BODY).status_code == 201
        finally:
            collector.shutdown()
    assert {path for path, _ in came} == {"/v1/traces"}
    whole = b"".join(body for _, body in came)
    assert RANK.encode() in whole
    assert b"store" in whole
    assert real.write_key.encode() not in whole


def test_an_address_that_is_none_is_said() -> None:
    with pytest.raises(InvalidInput, match="expected the address of a collector"):
        traces_to("localhost:4318")
