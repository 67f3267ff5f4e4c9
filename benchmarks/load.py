"""A client that calls a service over loopback as fast as it is answered, in a process of its own.

    python -m benchmarks.load < asked.json      what `drive` was asked for

Each connection sends a call, waits for its answer and sends the next: so many calls are under way as there are
connections.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np


class Load(NamedTuple):
    """What came back."""

    calls: int  # that were answered with 2xx
    seconds: float
    p50: float  # seconds
    p99: float
    cpu: float  # seconds of the client
    others: dict[str, int]  # answers of other statuses
    answers: list[str]  # bodies, where they are kept

    @property
    def rate(self) -> float:
        return self.calls / self.seconds


def drive(
    addresses: Sequence[str], headers: Mapping[str, str], calls: Sequence[tuple[str, str]], *, connections: int = 32,
    seconds: float = 5.0, once: bool = False, keep: bool = False,
) -> Load:  # fmt: skip
    """Connections are shared out over the addresses. once: every call once, however long it takes. keep: the bodies."""
    asked = {
        "addresses": list(addresses), "headers": dict(headers), "calls": list(calls), "connections": connections,
        "seconds": seconds, "once": once, "keep": keep,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.load"], input=json.dumps(asked).encode(), stdout=subprocess.PIPE, check=True
    )
    return Load(*json.loads(done.stdout))


class _Run:
    """What the connections share."""

    def __init__(self, asked: dict[str, Any]) -> None:
        head = "".join(f"{name}: {value}\r\n" for name, value in asked["headers"].items())
        self.calls = [
            f"POST {path} HTTP/1.1\r\nHost: bench\r\n{head}Content-Type: application/json\r\n"
            f"Content-Length: {len(body.encode())}\r\n\r\n{body}".encode()
            for path, body in asked["calls"]
        ]
        self.once, self.keep, self.seconds = asked["once"], asked["keep"], asked["seconds"]
        self.turn = count()
        self.until = time.perf_counter() + self.seconds
        self.times: list[float] = []
        self.statuses: Counter[bytes] = Counter()
        self.answers: list[str] = []

    def next(self) -> bytes | None:
        turn = next(self.turn)
        over = turn >= len(self.calls) if self.once else time.perf_counter() >= self.until
        return None if over else self.calls[turn % len(self.calls)]


class _Connection(asyncio.Protocol):
    def __init__(self, run: _Run) -> None:
        self.run, self.buffer, self.sent = run, b"", 0.0
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.send()

    def send(self) -> None:
        call = self.run.next()
        if call is None:
            self.transport.close()
            self.finish()
            return
        self.sent = time.perf_counter()
        self.transport.write(call)

    def finish(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.buffer[:end].lower()
        at = head.find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(self.buffer) < end + 4 + length:
            return
        self.run.times.append(time.perf_counter() - self.sent)
        self.run.statuses[head[9:12]] += 1
        if self.run.keep:
            self.run.answers.append(self.buffer[end + 4 : end + 4 + length].decode())
        self.buffer = self.buffer[end + 4 + length :]
        self.send()

    def connection_lost(self, error: Exception | None) -> None:
        self.finish()


async def _driven(asked: dict[str, Any]) -> Load:
    loop = asyncio.get_running_loop()
    places = [urlsplit(address) for address in asked["addresses"]]
    run, began, cpu = _Run(asked), time.perf_counter(), time.process_time()
    made = []
    for k in range(asked["connections"]):
        place = places[k % len(places)]
        made.append((await loop.create_connection(lambda: _Connection(run), place.hostname, place.port))[1])
    await asyncio.gather(*(each.done for each in made))
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    fine = sum(n for status, n in run.statuses.items() if status.startswith(b"2"))
    others = {status.decode(): n for status, n in run.statuses.items() if not status.startswith(b"2")}
    p50, p99 = np.quantile(run.times or [np.nan], [0.5, 0.99]).tolist()
    return Load(fine, seconds, p50, p99, cpu, others, run.answers)


def main() -> None:
    asked = json.load(sys.stdin)
    try:
        import uvloop

        found = uvloop.run(_driven(asked))
    except ModuleNotFoundError:
        found = asyncio.run(_driven(asked))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
