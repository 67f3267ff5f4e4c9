"""What the decision service can take: calls per second, CPU time per call, bytes per event, training per event."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.load import Load, drive
from benchmarks.measure import Row, Skipped, of_pairs
from benchmarks.serving import LEARNED, LINES, bodies, prepared

RANK = "/personalizer/v1.0/rank"
COUNTS = (1, 2, 4)  # of servers


@cache
def model(learned: int = LEARNED) -> bytes:
    """That has learned from calls like these."""
    with tempfile.TemporaryDirectory() as folder:
        prepared(Path(folder), learned)
        return (Path(folder) / "model").read_bytes()


# -- processes


@contextmanager
def database(kind: str) -> Iterator[tuple[str, list[int]]]:
    """Its URL, and the processes of its server that are there; none for SQLite."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield str(Path(folder) / "o2pl.sqlite"), []
        return
    from tests.serving.postgres import Postgres, binaries

    programs = binaries()
    if programs is None:
        raise Skipped("needs a PostgreSQL server: pg_ctl is not found")
    running = Postgres(programs)
    try:
        yield running.url, [int((running.folder / "data" / "postmaster.pid").read_text().split()[0])]
    finally:
        running.remove()


@contextmanager
def server(url: str) -> Iterator[tuple[str, int]]:
    """`o2pl serve` without a trainer: its address and process."""
    command = [sys.executable, "-m", "o2pl.cli", "serve", "--port", "0", "--no-trainer", "--rate-limit", "0"]
    command += ["--database", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if found := re.match(r"ready: (http\S+)", line):
                    yield found[1], process.pid
                    break
            else:
                raise RuntimeError("the server did not start")
        finally:
            process.terminate()


def cpu_seconds(processes: Sequence[int]) -> float:
    """Of these processes and their children, so far, to the nanosecond."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            if int(stat.parent.name) in processes or parent in processes:
                total += sum(int(each.read_text().split()[0]) for each in stat.parent.glob("task/*/schedstat"))
        except (OSError, IndexError):  # it has ended
            continue
    return total / 1e9


# -- calls


class Measured(NamedTuple):
    """A load, and the CPU seconds of servers and database during it."""

    load: Load
    servers: float
    database: float

    @property
    def per_call(self) -> tuple[float, float]:
        """CPU microseconds, of servers and of the database."""
        return 1e6 * self.servers / self.load.calls, 1e6 * self.database / self.load.calls

    @property
    def said(self) -> str:
        shares = dict(zip(("servers", "PostgreSQL"), self.per_call, strict=True))
        shares["client"] = 1e6 * self.load.cpu / self.load.calls
        parts = ", ".join(f"{name} {spent:.0f}" for name, spent in shares.items() if spent)
        return f"p50 {1e3 * self.load.p50:.0f} ms, p99 {1e3 * self.load.p99:.0f} ms; CPU µs per call: {parts}."


class Nodes(NamedTuple):
    """Servers on one database."""

    url: str
    postmaster: list[int]
    addresses: list[str]
    processes: list[int]
    headers: dict[str, str]

    def drive(self, calls: Sequence[tuple[str, str]], count: int = 1, **how: Any) -> Measured:
        """With so many of the servers."""
        processes = self.processes[:count]
        servers, stored = cpu_seconds(processes), cpu_seconds(self.postmaster)
        load = drive(self.addresses[:count], self.headers, calls, connections=LINES, **how)
        if load.others or not load.calls:
            raise RuntimeError(f"calls failed: {load.others}")
        return Measured(load, cpu_seconds(processes) - servers, cpu_seconds(self.postmaster) - stored)

    def rewards(self, events: int) -> list[tuple[str, str]]:
        """Makes so many decisions; the calls of their rewards, 0 or 1."""
        some = bodies(min(events, 2000))
        made = [(RANK, some[k % len(some)]) for k in range(events)]
        answers = self.drive(made, once=True, keep=True).load.answers
        values = np.random.default_rng(0).integers(2, size=len(answers)).tolist()
        return [
            (f"/personalizer/v1.0/events/{json.loads(each)['eventId']}/reward", f'{{"value": {value}}}')
            for each, value in zip(answers, values, strict=True)
        ]


@contextmanager
def nodes(kind: str, count: int, learned: int) -> Iterator[Nodes]:
    from o2pl.serving.store import Store

    with ExitStack() as stack:
        url, postmaster = stack.enter_context(database(kind))
        with Store.open(url) as store:
            made = store.add_application("bench")
            store.add_model(made.id, model(learned), 0, learned)
        running = [stack.enter_context(server(url)) for _ in range(count)]
        headers = {"Ocp-Apim-Subscription-Key": made.write_key}
        yield Nodes(url, postmaster, [at for at, _ in running], [pid for _, pid in running], headers)


class Served(NamedTuple):
    """By turns, one of each for every repeat."""

    sqlite: list[Measured]
    ranked: dict[int, list[Measured]]  # by the number of servers on PostgreSQL
    rewarded: list[Measured]
    bytes_of_event: float  # on PostgreSQL


@cache
def served(
    seconds: float = 8.0, repeats: int = 3, events: int = 6000, most: int = max(COUNTS), learned: int = LEARNED
) -> Served:
    calls = [(RANK, body) for body in bodies()]
    found = Served([], {count: [] for count in COUNTS if count <= most}, [], 0.0)
    with nodes("postgresql", most, learned) as shared, nodes("sqlite", 1, learned) as alone:
        shared.drive(calls, most, seconds=1.0)  # connections, caches
        alone.drive(calls, seconds=1.0)
        for _ in range(repeats):
            found.sqlite.append(alone.drive(calls, seconds=seconds))
            for count, into in found.ranked.items():
                into.append(shared.drive(calls, count, seconds=seconds))
            found.rewarded.append(shared.drive(shared.rewards(events), once=True))
        return found._replace(bytes_of_event=_bytes_of_event(shared.url))


def calls(count: int, **how: Any) -> Row:
    """Rank calls per second with so many server processes on one PostgreSQL, beside one; for one, beside SQLite."""
    found = served(**how)
    count = min(count, max(found.ranked))
    ours, peers = found.ranked[count], found.sqlite if count == 1 else found.ranked[1]
    middle = sorted(ours, key=lambda each: each.load.rate)[len(ours) // 2]
    pairs = [(one.load.rate, two.load.rate) for one, two in zip(ours, peers, strict=True)]
    return of_pairs(pairs, "calls/s")._replace(note=middle.said)


def cpu(what: str, **how: Any) -> Row:
    """CPU time of a server for one call, beside PostgreSQL's."""
    found = served(**how)
    return of_pairs([each.per_call for each in (found.ranked[1] if what == "rank" else found.rewarded)], "µs")


# -- bytes


def sent() -> float:
    """Bytes of the bodies of a rank and its reward."""
    some = bodies()
    return sum(len(body.encode()) for body in some) / len(some) + len('{"value": 1}')


def _bytes_of_event(url: str) -> float:
    """Of a decision, a reward and an outcome, with indexes. Outcomes are made here, as a trainer does."""
    import psycopg

    from o2pl.serving.reward_join import join
    from o2pl.serving.store import Store

    with Store.open(url) as store:
        join(store, store.application("bench"), time.time())
    size = 0.0
    with psycopg.connect(url) as connection:
        for table in ("decisions", "rewards", "outcomes"):
            query = f"SELECT pg_total_relation_size('{table}'), (SELECT count(*) FROM {table})"
            total, rows = connection.execute(query).fetchone() or (0, 1)
            size += total / rows
    return size


def postgres_bytes(**how: Any) -> Row:
    return of_pairs([(served(**how).bytes_of_event, sent())], "bytes")


# -- training


class Trained(NamedTuple):
    seconds: list[tuple[float, float]]  # CPU for 1e6 events, from a log and from one half as long
    bytes_of_event: float  # on SQLite


@cache
def trained(events: int = 8000, repeats: int = 2, learned: int = LEARNED) -> Trained:
    pairs, size = [], 0.0
    _trained(min(events, 200), learned)  # compiles
    for _ in range(repeats):
        half, _none = _trained(events // 2, learned)
        whole, size = _trained(events, learned)
        pairs.append((whole, half))
    return Trained(pairs, size)


def _trained(events: int, learned: int) -> tuple[float, float]:
    """Joining, learning, sums and publishing, at once: CPU seconds for 1e6 events, and bytes on disk for one."""
    from o2pl.serving.store import Store
    from o2pl.serving.trainer import Trainer

    with ExitStack() as stack:
        running = stack.enter_context(nodes("sqlite", 1, learned))
        running.drive(running.rewards(events), once=True)
        store = stack.enter_context(Store.open(running.url))
        trainer, began = Trainer(store), time.process_time()
        trainer.step(last=True)
        seconds = time.process_time() - began
        with store.engine.connect() as connection:
            connection.exec_driver_sql("COMMIT")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.exec_driver_sql("BEGIN")
        models = sum(len(store.model_body(1, row.version)) for row in store.model_versions(1))
        return 1e6 * seconds / events, (Path(running.url).stat().st_size - models) / events


def training(**how: Any) -> Row:
    """CPU seconds of the trainer for a million events, beside those from half as long a log."""
    return of_pairs(trained(**how).seconds, "s")


def sqlite_bytes(**how: Any) -> Row:
    return of_pairs([(trained(**how).bytes_of_event, sent())], "bytes")
