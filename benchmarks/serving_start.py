"""How soon the decision service is ready: `o2pl serve` on a store with many events, trainer included."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import numpy as np

from benchmarks.freshness import contexts
from benchmarks.measure import Row, of_pairs
from benchmarks.serving import bodies, prepared
from o2pl.serving.batch_writes import DecisionRow, RewardRow
from o2pl.serving.store import Store

_BATCH = 2000  # entries in a transaction


class Started(NamedTuple):
    """Seconds from the command on."""

    ready: float
    first_rank: float


def ready(events: int = 1_000_000, repeats: int = 3) -> Row:
    """Seconds until the service says that it is ready, beside an empty store."""
    found = _started(events, repeats)
    return of_pairs([(full.ready, empty.ready) for full, empty in found], "s")


def first_rank(events: int = 1_000_000, repeats: int = 3) -> Row:
    """Seconds until the first rank call is answered, beside an empty store."""
    found = _started(events, repeats)
    return of_pairs([(full.first_rank, empty.first_rank) for full, empty in found], "s")


_measured: dict[tuple[int, int], list[tuple[Started, Started]]] = {}


def _started(events: int, repeats: int) -> list[tuple[Started, Started]]:
    if (events, repeats) not in _measured:
        with tempfile.TemporaryDirectory() as folder:
            full, empty = Path(folder) / "full", Path(folder) / "empty"
            full.mkdir()
            empty.mkdir()
            keys = prepared(full), prepared(empty)
            _fill(full, events)
            _measured[events, repeats] = [(_start(full, keys[0]), _start(empty, keys[1])) for _ in range(repeats)]
    return _measured[events, repeats]


def _fill(folder: Path, events: int) -> None:
    """Uniform decisions over the last week, each with its reward."""
    texts, generator = contexts(2000), np.random.default_rng(0)
    began = time.time() - 7 * 86400
    with Store.open(folder / "o2pl.sqlite") as store:
        rows: list[Any] = []
        for k in range(events):
            text, names = texts[k % len(texts)]
            at = began + 6.5 * 86400 * k / events
            rows.append(
                DecisionRow(1, f"e{k}", "", at, text, names, int(generator.integers(10)), None, 0.1, None, 0.5, 0.0, 0)
            )
            rows.append(RewardRow(1, f"e{k}", "", float(generator.random() < 0.3), at + 1))
            if len(rows) >= _BATCH or k == events - 1:
                store.add(rows)
                rows = []


def _start(folder: Path, key: str) -> Started:
    """One start, and one call of rank."""
    arguments = ["serve", "--port", "0", "--rate-limit", "0", "--database", str(folder / "o2pl.sqlite")]
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "o2pl.cli", *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            address = next(found[1] for line in process.stdout if (found := re.match(r"ready: (http\S+)", line)))
            until_ready = time.monotonic() - began
            headers = {"Content-Type": "application/json", "Ocp-Apim-Subscription-Key": key}
            call = Request(f"{address}/personalizer/v1.0/rank", bodies(1)[0].encode(), headers)
            with urlopen(call, timeout=120) as answer:
                json.load(answer)["eventId"]
            return Started(until_ready, time.monotonic() - began)
        finally:
            process.terminate()
            process.wait(60)
