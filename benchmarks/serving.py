"""The decision service under load, beside a minimal FastAPI app that parses the same calls and stores one row for each.

Both run in processes of their own with a store in SQLite, durable to the disk, and the same group commit. `wrk` calls
them by turns from this machine, so servers and client share its cores.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.request import Request, urlopen

import numpy as np

from benchmarks.measure import Row, Skipped, of_pairs

ACTIONS, FEATURES, BODIES = 10, 20, 200
LINES = 16  # connections: a call waits for those before it
CONNECTIONS = (1, 8, 64, 256)
LEARNED = 300  # decisions that the model has learned from
_UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}


class Load(NamedTuple):
    """What wrk found."""

    rate: float  # calls per second
    p99: float  # milliseconds
    failed: int  # answers that were not 2xx or 3xx, and errors of sockets
    cpu: float  # microseconds of the server for a call


def bodies(count: int = BODIES, actions: int = ACTIONS, features: int = FEATURES) -> list[str]:
    """Calls of rank: a user with a few features, actions with so many, half words and half numbers."""
    generator = np.random.default_rng(0)

    def action(k: int) -> dict[str, object]:
        words = {f"word{j}": f"w{generator.integers(20)}" for j in range(features // 2)}
        numbers = {f"number{j}": round(float(generator.normal()), 3) for j in range(features - len(words))}
        return {"id": f"item{k}", "features": [{**words, **numbers}]}

    def body() -> str:
        user = {"age": int(generator.integers(18, 90)), "country": f"c{generator.integers(30)}", "device": "phone"}
        return json.dumps({"contextFeatures": [user], "actions": [action(k) for k in range(actions)]})

    return [body() for _ in range(count)]


# -- the two servers


class Running(NamedTuple):
    address: str
    process: int


@contextmanager
def server(code: str, folder: Path) -> Iterator[Running]:
    """A Python that runs `code`, which prints `ready: ADDRESS`."""
    said = folder / "output.txt"
    with said.open("wb") as output, (folder / "errors.txt").open("wb") as errors:
        process = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=output, stderr=errors)
    try:
        until = time.monotonic() + 300
        while "ready: " not in said.read_text():
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((folder / "errors.txt").read_text()[-2000:])
            time.sleep(0.1)
        yield Running(said.read_text().partition("ready: ")[2].split()[0], process.pid)
    finally:
        process.terminate()
        process.wait(30)


OURS = """
import sys
store = sys.argv[1] + "/o2pl.sqlite"
sys.argv = ["o2pl", "serve", "--port", "0", "--no-trainer", "--rate-limit", "0", "--database", store]
from o2pl.cli import main
main()
"""
MINIMAL = "import sys; from benchmarks.serving_minimal import main; main(sys.argv[1])"


def prepared(folder: Path, learned: int = LEARNED) -> str:
    """A store with an application whose model has learned; the write key."""
    from o2pl import Bandit
    from o2pl.serving.store import Store

    generator = np.random.default_rng(1)
    learner = Bandit(policy="hashed actionwise", random_state=0)
    calls = [json.loads(body) for body in bodies(learned)]
    for call in calls:
        items = [{"id": each["id"], **each["features"][0]} for each in call["actions"]]
        context = {**call["contextFeatures"][0], "_multi": items}
        learner.update(learner.act(context), float(generator.random() < 0.3))
    learner.snapshot().save(folder / "model")
    with Store.open(folder / "o2pl.sqlite") as store:
        made = store.add_application("bench")
        store.add_model(made.id, (folder / "model").read_bytes(), 0, learned)
        return made.write_key


# -- the load

_SCRIPT = """
local lines = {}
for line in io.lines("%s") do lines[#lines + 1] = line end
local at, per = 0, #lines
local headers = { ["Content-Type"] = "application/json", ["Ocp-Apim-Subscription-Key"] = "%s" }
request = function()
  at = at %% per + 1
  local path, body = lines[at]:match("^(%%S+) (.*)$")
  return wrk.format("POST", path, headers, body)
end
"""


def cpu_of(process: int) -> float:
    """CPU seconds of a process so far, to the nanosecond; 0 where the system does not say."""
    tasks = Path("/proc", str(process)).glob("task/*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in tasks) / 1e9


def load(to: Running, calls: list[str], key: str, seconds: float, folder: Path, lines: int) -> Load:
    """calls: `PATH BODY`, sent again and again over so many connections."""
    (folder / "calls.txt").write_text("\n".join(calls) + "\n")
    (folder / "script.lua").write_text(_SCRIPT % (folder / "calls.txt", key))
    command = [
        "wrk",
        "-t1",
        f"-c{lines}",
        f"-d{max(round(seconds), 1)}s",
        "--latency",
        "-s",
        str(folder / "script.lua"),
    ]
    before = cpu_of(to.process)
    found = subprocess.run([*command, to.address], check=True, capture_output=True, text=True).stdout
    spent = cpu_of(to.process) - before
    rate, calls_made = re.search(r"Requests/sec:\s+([\d.]+)", found), re.search(r"(\d+) requests in", found)
    slow = re.search(r"99%\s+([\d.]+)(us|ms|s|m)", found)
    if rate is None or slow is None or calls_made is None:
        raise RuntimeError(found)
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", found)
    sockets = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", found)
    lost = sum(map(int, sockets.groups())) if sockets else 0
    p99, wrong = float(slow[1]) * _UNITS[slow[2]], lost + (int(failed[1]) if failed else 0)
    return Load(float(rate[1]), p99, wrong, 1e6 * spent / max(int(calls_made[1]), 1))


class Measured(NamedTuple):
    """By turns: (ours, the minimal app's) of each repeat."""

    rank: list[tuple[Load, Load]]
    reward: list[tuple[Load, Load]]


@cache
def measured(seconds: float, repeats: int, learned: int, lines: int = LINES) -> Measured:
    if shutil.which("wrk") is None:
        raise Skipped("needs wrk")
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2)]
        key = prepared(folders[0], learned)
        servers = [stack.enter_context(server(code, at)) for code, at in zip((OURS, MINIMAL), folders, strict=True)]
        ranks = [f"/personalizer/v1.0/rank {body}" for body in bodies()]
        found = Measured([], [])
        for calls, into in ((ranks, found.rank), (None, found.reward)):
            own = [calls or _rewards(each.address, ranks, key) for each in servers]
            for turn in range(repeats + 1):  # the first is not counted
                long = seconds if turn else 1.0
                pair = [load(servers[k], own[k], key, long, folders[k], lines) for k in range(2)]
                if turn:
                    into.append((pair[0], pair[1]))
        return found


def _rewards(address: str, ranks: list[str], key: str) -> list[str]:
    """Calls of reward for events that are there."""
    calls = []
    for rank in ranks:
        path, _, body = rank.partition(" ")
        request = Request(address + path, body.encode(), {"Ocp-Apim-Subscription-Key": key})
        with urlopen(request, timeout=30) as answer:
            event = json.load(answer)["eventId"]
        calls.append(f'/personalizer/v1.0/events/{event}/reward {{"value": 1.0}}')
    return calls


def rate(
    what: str, lines: int = LINES, seconds: float = 6.0, repeats: int = 5, learned: int = LEARNED
) -> Row:  # fmt: skip
    """Calls per second over so many connections."""
    pairs = getattr(measured(seconds, repeats, learned, lines), what)
    ours, peers = (float(np.median([pair[side].cpu for pair in pairs])) for side in (0, 1))
    note = f"CPU µs per call: ours {ours:.0f}, the minimal app {peers:.0f}. {_failed(pairs)}".rstrip()
    return of_pairs([(one.rate, two.rate) for one, two in pairs], "calls/s")._replace(note=note)


def slowest(what: str, seconds: float = 6.0, repeats: int = 5, learned: int = LEARNED) -> Row:
    """Milliseconds that 99 of 100 calls took at most."""
    pairs = getattr(measured(seconds, repeats, learned), what)
    return of_pairs([(ours.p99, peer.p99) for ours, peer in pairs], "ms")._replace(note=_failed(pairs))


def _failed(pairs: list[tuple[Load, Load]]) -> str:
    failed = [sum(pair[side].failed for pair in pairs) for side in (0, 1)]
    return "" if not any(failed) else f"calls that failed: {failed[0]} of ours, {failed[1]} of the peer's"
