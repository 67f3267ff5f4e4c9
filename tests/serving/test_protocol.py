"""Heads of requests that are too long, too slow or never come end their connection, and no other."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.serving.clients import RANK, key, listening, server

from o2pl.serving.api import make_app
from o2pl.serving.protocol import BoundedHttp
from o2pl.serving.service import Service
from o2pl.serving.store import Store


class Hasty(BoundedHttp):
    head_bytes, head_seconds = 4096, 1.0


@pytest.fixture
def address(tmp_path: Path) -> Iterator[tuple[str, int]]:
    with listening(make_app(Service(Store.open(tmp_path / "o2pl.sqlite"))), Hasty) as found:
        yield "127.0.0.1", int(found.rpartition(":")[2])


def answered(place: tuple[str, int], *parts: bytes, pause: float = 0.0) -> bytes:
    """All that comes until the server closes the connection."""
    with socket.create_connection(place, timeout=60) as connection:
        try:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            found = b""
            while data := connection.recv(65536):
                found += data
        except ConnectionError:
            return found if "found" in locals() else b""
        return found


FINE = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        [], [b"G"], [b"GET /health HTTP/1.1\r\n"], [b"GET /health HTTP/1.1\r\nhost: x\r\na: "],
        [b"GET /health HTTP/1.1\r\n"] + [b"a: b\r\n"] * 40,  # each line in time, all of them too late
        [FINE, b"GET /hea"],
    ],
)  # fmt: skip
def test_a_head_that_does_not_end_is_closed(address: tuple[str, int], sent: list[bytes]) -> None:
    before = time.monotonic()
    found = answered(address, *sent, pause=0.05)
    assert b"HTTP/1.1 408 Request Timeout" in found or len(sent) > 10  # a connection that is still written to is reset
    assert (b"200 OK" in found) == (FINE in sent)
    assert time.monotonic() - before >= 0.9
    assert httpx.get(f"http://{address[0]}:{address[1]}/health").status_code == 200


def test_connections_that_are_kept_alive_may_rest(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=60) as connection:
        for _ in range(2):
            connection.sendall(FINE)
            assert b"200 OK" in connection.recv(65536)
            time.sleep(1.5)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /health HTTP/1.1\r\nhost: x\r\na: " + b"x" * 5000 + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * 1000 + b"\r\n",
        b"GET /" + b"x" * 5000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nhost: x\r\na: " + b"x" * 5000,  # it has no end
        b"POST /reward HTTP/1.1\r\ncontent-length: 3\r\na: " + b"x" * 5000 + b"\r\n\r\n{}\n",
    ],
)
@pytest.mark.parametrize("pieces", [1, 2])
def test_a_head_that_is_too_long_is_refused(address: tuple[str, int], head: bytes, pieces: int) -> None:
    size = -(-len(head) // pieces)
    found = answered(address, *(head[k : k + size] for k in range(0, len(head), size)), pause=0.01)
    assert found.startswith(b"HTTP/1.1 431 ")
    assert json.loads(found.partition(b"\r\n\r\n")[2])["error"]["message"] == "headers: found more than 4096 bytes"


def test_large_bodies_are_not_heads(address: tuple[str, int]) -> None:
    body = json.dumps({"eventId": "x" * 200, "value": 1, "more": "y" * 50_000}).encode()
    head = b"POST /reward HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
    assert answered(address, head, body, pause=0.01).startswith(b"HTTP/1.1 401 ")
    assert answered(address, head + body).startswith(b"HTTP/1.1 401 ")


def test_five_hundred_slow_connections_delay_nobody(tmp_path: Path) -> None:
    """Against the real server."""
    with server(tmp_path, "--no-trainer") as real:
        place = ("127.0.0.1", int(real.address.rpartition(":")[2]))
        slow = [socket.create_connection(place, timeout=60) for _ in range(500)]
        try:
            for connection in slow:
                connection.sendall(b"POST /decide HTTP/1.1\r\nhost: x\r\nauthorization: ")
            body = {"actions": [{"id": "a"}, {"id": "b"}]}
            assert httpx.post(real.address + RANK, json=body, headers=key(real.write_key)).status_code == 201
            end = time.monotonic() + 120
            for connection in slow:  # all of them are closed
                connection.settimeout(max(1.0, end - time.monotonic()))
                assert b" 408 " in connection.recv(4096)
        finally:
            for connection in slow:
                connection.close()
