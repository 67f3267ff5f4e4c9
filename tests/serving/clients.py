"""Clients of the service for tests: in this process, or of a real server in another."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from o2pl.serving.access_control import Limits
from o2pl.serving.api import make_app
from o2pl.serving.applications import NewApplication
from o2pl.serving.protocol import BoundedHttp
from o2pl.serving.service import Service
from o2pl.serving.settings import Settings
from o2pl.serving.store import Store

RANK = "/personalizer/v1.0/rank"


def key(value: str) -> dict[str, str]:
    return {"Ocp-Apim-Subscription-Key": value}


@dataclass
class Inside:
    """A service in this process, and a client with the write key."""

    client: httpx.Client
    service: Service
    made: NewApplication

    @property
    def store(self) -> Store:
        return self.service.store

    def decisions(self) -> Any:
        return self.store.decisions_after(self.made.id)

    def rewards(self) -> Any:
        return self.store.rewards_after(self.made.id)


@contextmanager
def inside(
    folder: Path, kind: str = "ranked", settings: Settings | None = None, limits: Limits | None = None
) -> Iterator[Inside]:
    store = Store.open(folder / "o2pl.sqlite")
    made = store.add_application("shop", kind, settings)
    service = Service(store, limits)
    with (
        listening(make_app(service)) as address,
        httpx.Client(base_url=address, headers=key(made.write_key), timeout=30) as client,
    ):
        yield Inside(client, service, made)


@contextmanager
def listening(app: Any, http: Any = BoundedHttp) -> Iterator[str]:
    """In a thread, at a free port: its address."""
    place = socket.create_server(("127.0.0.1", 0))
    running = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none", http=http))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [place]})
    thread.start()
    try:
        while not running.started and thread.is_alive():
            time.sleep(0.01)
        yield f"http://127.0.0.1:{place.getsockname()[1]}"
    finally:
        running.should_exit = True
        thread.join(20)
        place.close()


@dataclass
class Server:
    """A real one, in a process of its own."""

    address: str
    write_key: str
    read_key: str
    process: subprocess.Popen[bytes]
    output: Path
    errors: Path

    def client(self, which: str | None = None) -> httpx.Client:
        return httpx.Client(base_url=self.address, headers=key(which or self.write_key), timeout=30)


def start(folder: Path, *arguments: str, database: str = "") -> tuple[subprocess.Popen[bytes], Path, Path]:
    """`o2pl serve` at a free port. database: a file in the folder, unless it is given."""
    output, errors = folder / "output.txt", folder / "errors.txt"
    command = [sys.executable, "-m", "o2pl.cli", "serve", "--port", "0"]
    command += ["--database", database or str(folder / "o2pl.sqlite")]
    with output.open("wb") as out, errors.open("wb") as err:
        process = subprocess.Popen([*command, *arguments], stdout=out, stderr=err, env={**os.environ, "O2PL_KEY": ""})
    return process, output, errors


@contextmanager
def server(folder: Path, *arguments: str, database: str = "") -> Iterator[Server]:
    process, output, errors = start(folder, *arguments, database=database)
    try:
        said = _ready(process, output, errors)
        yield Server(said["ready"], said.get("write key", ""), said.get("read key", ""), process, output, errors)
    finally:
        process.terminate()
        process.wait(20)


def _ready(process: subprocess.Popen[bytes], output: Path, errors: Path) -> dict[str, str]:
    until = time.monotonic() + 300  # a busy machine starts it slowly
    while time.monotonic() < until:
        said = dict(line.split(": ", 1) for line in output.read_text().splitlines() if ": " in line)
        if "ready" in said:
            return {name: value.strip() for name, value in said.items()}
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise AssertionError(f"not ready: {errors.read_text()}")
