"""Processes are killed, disks are full, files go away: what was acknowledged is there, once, as it was written.

`make faults` kills fifty times; without, a few times.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serving.faults import times
from tests.serving.postgres import Postgres
from tests.serving.rows import decision

from o2pl.serving.batch_writes import Answer
from o2pl.serving.database import StoreUnavailable
from o2pl.serving.store import Store
from o2pl.serving.writer import Writer

KILLS = times(6)  # of writers
FULL_DISKS = times(1)
SLOW_KILLS = times(2)  # of PostgreSQL and of servers


class Script:
    """One of the scripts beside this file: it starts processes that are killed. What it has said so far."""

    def __init__(self, script: str, *arguments: str) -> None:
        command = [sys.executable, str(Path(__file__).with_name(script)), *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.lines: list[str] = []

    def run(self, name: str = "") -> None:
        self.say(f"run {name}")
        self.until(1, "pid")

    def until(self, n: int, word: str = "") -> None:
        """It has said so many lines more with this word."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.strip())
            n -= word in line
            if n <= 0:
                return
        raise AssertionError(f"it has ended: {self.lines[-5:]}")

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")

    def kill(self) -> None:
        """The one that writes."""
        last = [line for line in self.lines if line.startswith("pid")][-1]
        os.kill(int(last.split()[1]), signal.SIGKILL)
        self.say("wait")
        self.until(1, "dead")

    def stop(self) -> None:
        """It writes what waits, and ends."""
        self.say("stop")
        assert self.process.stdout is not None
        self.lines += [line.strip() for line in self.process.stdout]
        assert self.process.wait() == 0

    def close(self) -> None:
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()
        self.process.wait()


@contextlib.contextmanager
def started(script: str, *arguments: str) -> Iterator[Script]:
    made = Script(script, *arguments)
    try:
        yield made
    finally:
        made.close()


def check(database: str, lines: list[str]) -> None:
    """Every acknowledged entry is there once, with the numbers that were acknowledged."""
    decided: Counter[str] = Counter()
    rewarded: Counter[str] = Counter()
    with Store.open(database) as store:
        after = 0
        while rows := store.decisions_after(1, after):
            after = rows[-1].id
            decided.update(f"decision {row.event_id} {row.propensity!r}" for row in rows)
        after = 0
        while rows := store.rewards_after(1, after):
            after = rows[-1].id
            rewarded.update(f"reward {row.event_id} {row.idempotency_key} {row.value!r}" for row in rows)
    known = decided + rewarded
    told = [line for line in lines if line.startswith(("decision", "reward"))]
    assert len(told) == len(set(told)) > 0
    assert [line for line in told if known[line] != 1] == []
    assert max(known.values()) == 1
    events = Counter(line.split()[1] for line in decided)
    assert max(events.values()) == 1
    assert {line.split()[1] for line in rewarded} <= set(events)  # no reward without its decision


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_writer_is_killed(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    database = str(tmp_path / "o2pl.sqlite")
    if kind == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        server.empty()
        database = server.url
    generator = random.Random(kind)
    with started("writing_process.py", database) as process:
        for kill in range(KILLS):
            process.run(f"run{kill}")
            process.until(generator.randrange(20, 120), "decision")
            time.sleep(generator.uniform(0, 0.02))
            process.kill()
    check(database, process.lines)


def test_postgresql_is_killed_under_load(postgres: Postgres) -> None:
    postgres.empty()
    generator = random.Random(0)
    with started("writing_process.py", postgres.url) as process:
        process.run("run")
        for _ in range(SLOW_KILLS):
            process.until(generator.randrange(20, 120), "decision")
            time.sleep(generator.uniform(0, 0.02))
            postgres.kill()
            process.until(3, "refused")
            postgres.start()
        process.until(50, "decision")  # it goes on
        process.stop()
    check(postgres.url, process.lines)


class Client(threading.Thread):
    """Ranks and rewards, as fast as it can, until it is told to stop; what it was answered."""

    def __init__(self, port: int, key: str, name: str) -> None:
        super().__init__()
        self.port, self.key, self.lines, self.over = port, key, [name], threading.Event()

    def run(self) -> None:
        k, connection = 0, http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)  # it connects when it must
        while not self.over.is_set():
            k, event = k + 1, f"{self.lines[0]}-{k}"
            rank = {
                "eventId": event,
                "contextFeatures": [{"user": k % 7}],
                "actions": [{"id": each, "features": [{"length": len(each)}]} for each in ("news", "sports", "arts")],
            }
            try:
                answer = self.told(connection, "/rank", rank, 201)
                if answer is None:
                    continue
                chances = {each["id"]: each["probability"] for each in answer["ranking"]}
                self.lines.append(f"decision {event} {chances[answer['rewardActionId']]!r}")
                if k % 2 and self.told(connection, f"/events/{event}/reward", {"value": k % 5 / 5}, 204) is not None:
                    self.lines.append(f"reward {event} None {k % 5 / 5!r}")
            except (OSError, http.client.HTTPException):  # the server has gone: the answer is not known
                connection.close()
                self.over.wait(0.02)
        connection.close()

    def told(self, connection: http.client.HTTPConnection, path: str, body: object, status: int) -> Any:
        """None: the database was gone."""
        headers = {"Ocp-Apim-Subscription-Key": self.key, "Content-Type": "application/json"}
        connection.request("POST", f"/personalizer/v1.0{path}", json.dumps(body), headers)
        found = connection.getresponse()
        text = found.read()
        if found.status == 503:
            self.over.wait(0.02)
            return None
        assert found.status == status, (found.status, text)
        return json.loads(text) if text else {}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_server_is_killed_under_load(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """And PostgreSQL, in turn. Probabilities that were answered are those that are stored."""
    database, server = str(tmp_path / "o2pl.sqlite"), None
    if kind == "postgresql":
        server = request.getfixturevalue("postgres")
        server.empty()
        database = server.url
    with Store.open(database) as store:
        key = store.add_application("shop").write_key
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    generator = random.Random(kind)
    clients = [Client(port, key, f"client{k}") for k in range(4)]

    def served(n: int) -> None:
        goal = sum(len(client.lines) for client in clients) + n
        end = time.monotonic() + 300  # a busy machine starts it slowly
        while sum(len(client.lines) for client in clients) < goal:
            assert all(client.is_alive() for client in clients), "a client was answered what it did not expect"
            assert time.monotonic() < end, "nothing is answered"
            time.sleep(0.002)

    with started("serving_process.py", database, str(port)) as process:
        process.run()
        for client in clients:
            client.start()
        try:
            for kill in range(SLOW_KILLS):
                served(generator.randrange(20, 150))
                if server is not None and kill % 2:
                    server.kill()
                    server.start()
                else:
                    process.kill()
                    process.run()
            served(50)
        finally:
            for client in clients:
                client.over.set()
            for client in clients:
                client.join()
            process.kill()
    check(database, [line for client in clients for line in client.lines])


@pytest.mark.parametrize("round_", range(FULL_DISKS))
def test_the_disk_is_full_and_then_is_not(round_: int, tmp_path: Path) -> None:
    database, room = str(tmp_path / "o2pl.sqlite"), random.Random(round_).randrange(1_000_000, 3_000_000)
    with started("writing_process.py", database, str(room)) as process:
        process.run("run")
        process.until(10, "decision")
        process.until(20, "refused")
        process.say("room")
        process.until(50, "decision")
        process.stop()
    check(database, process.lines)


def test_a_file_that_goes_away_takes_no_entry(tmp_path: Path) -> None:
    database = tmp_path / "o2pl.sqlite"
    with Store.open(database) as store:
        store.add_application("shop")
        writer = Writer(store)
        assert writer.submit([decision("a")]).result() == [Answer.STORED]
        aside = tmp_path / "aside"
        aside.mkdir()
        for path in tmp_path.glob("o2pl.sqlite*"):
            path.rename(aside / path.name)
        for name in "bc":
            with pytest.raises(StoreUnavailable, match="the file is gone"):
                writer.submit([decision(name)]).result()
        assert not database.exists()  # and no new one in its place
        for path in aside.iterdir():
            path.rename(tmp_path / path.name)
        assert writer.submit([decision("b")]).result() == [Answer.STORED]
        writer.stop()
    with Store.open(database) as store:
        assert [row.event_id for row in store.decisions_after(1)] == ["a", "b"]
