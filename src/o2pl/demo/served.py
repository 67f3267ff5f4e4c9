"""Step 4: `o2pl serve` as a separate process, and simulated readers that call it over HTTP."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.protocols import Floats
from o2pl.serving.simulate import News, Played, ServiceClient, rank, visits

_PATIENCE = 120.0  # seconds until it is ready
_RATE = 250.0  # readers per second


@dataclass(frozen=True)
class Running:
    """A starting service."""

    process: subprocess.Popen[str]
    lines: queue.Queue[str]

    def wait(self) -> tuple[str, str]:
        """Wait until the service answers. Returns its address and its write key."""
        key, until = "", time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            try:
                line = self.lines.get(timeout=0.5)
            except queue.Empty:
                if self.process.poll() is not None:
                    break
                continue
            name, _, rest = line.partition(":")
            if name == "write key":
                key = rest.strip()
            elif name == "ready":
                return rest.strip(), key
        raise InvalidInput("the decision service did not start; try it by itself: o2pl serve")


@contextmanager
def served_demo() -> Iterator[Running]:
    """Start a service with a temporary database on a free port; stop it at the end."""
    with tempfile.TemporaryDirectory(prefix="o2pl-demo-", ignore_cleanup_errors=True) as folder:
        command = [sys.executable, "-m", "o2pl.cli", "serve", "--port", "0"]
        command += ["--database", str(Path(folder) / "demo.sqlite")]
        own_group = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)  # on Windows, so that it can be stopped
        with open(Path(folder) / "service.log", "w") as log:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, creationflags=own_group,
                env={**os.environ, "PYTHONUNBUFFERED": "1", "OPENBLAS_NUM_THREADS": "1"},
            )  # fmt: skip
            lines: queue.Queue[str] = queue.Queue()
            reader = threading.Thread(target=_read_served, args=(process, lines), daemon=True)
            reader.start()
            try:
                yield Running(process, lines)
            finally:
                process.send_signal(getattr(signal, "CTRL_BREAK_EVENT", signal.SIGTERM))
                try:
                    process.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                reader.join()


def _read_served(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            lines.put(line)


@dataclass(frozen=True, eq=False)
class ServedCalls:
    calls: list[Played]
    seconds: float
    milliseconds: float  # median time of sequential rank calls
    asked: dict[str, Any]  # one call and its answer
    answered: dict[str, Any]

    def clicks(self, who: str, first: int, last: int) -> float:
        """Return the expected clicks per call of the service ("chosen"), "best", "editor" or "uniform"."""
        return float(np.mean([getattr(call, who) for call in self.calls[first:last]]))

    def course(self, who: str, parts: int) -> Floats:
        """Return the expected clicks in each of `parts` parts of the calls, [parts]."""
        every = np.array([getattr(call, who) for call in self.calls])
        return np.array([part.mean() for part in np.array_split(every, parts)])


def serve_readers(running: Running, calls: int, say: Callable[[str], None], seed: int = 0) -> ServedCalls:
    say("the decision service starts")
    address, key = running.wait()
    say(f"{calls:,} readers call it over HTTP")
    began = time.monotonic()
    played = list(visits(address, key, calls, rate=_RATE, seed=seed))
    seconds = time.monotonic() - began
    say("calls are timed")
    taken = []
    with closing(ServiceClient(address, key)) as client:
        generator, world = np.random.default_rng(seed), News()
        for number in range(50):
            visit = world.visit(generator)
            start = time.perf_counter()
            rank(client, f"timed-{number}", visit)
            taken.append(time.perf_counter() - start)
        visit = world.visit(generator)
        asked = {
            "eventId": "example",
            "contextFeatures": [visit.reader],
            "actions": [
                {"id": one["id"], "features": [{"topic": one["topic"], "length": one["length"]}]}
                for one in visit.articles[:3]
            ],
        }
        answered = client.post("/personalizer/v1.0/rank", asked)
    return ServedCalls(played, seconds, 1000 * float(np.median(taken)), asked, answered)
