"""How far behind the served parameters are: events at a steady rate into a real store, `o2pl train` in its own process.

Decisions and rewards go straight to SQLite, as servers write them. A few times a second the served version is looked
up as servers do. Its age is that of the newest event that its parameters have learned from; a version whose parameters
are those of the one before counts as the one before.
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import select

from benchmarks.measure import Row, of_pairs
from benchmarks.serving import bodies
from o2pl import load
from o2pl.serving.batch_writes import DecisionRow, RewardRow
from o2pl.serving.schema import decisions, models, outcomes
from o2pl.serving.store import Store

_EVERY = 0.05  # seconds between two writes
_LOOK = 0.25  # seconds between two looks
_START = 120.0  # seconds that the first version may take


def freshness(rate: int = 500, seconds: float = 600.0, texts: int = 3000) -> Row:
    """The age at its worst, beside the time between two versions that the settings ask for."""
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "o2pl.sqlite") as store:
        store.add_application("bench")
        asked = store.settings(1).model_export_frequency.total_seconds()
        code = "from o2pl.cli import main; main()"
        arguments = [sys.executable, "-c", code, "train", "--follow", "--database", f"{folder}/o2pl.sqlite"]
        trainer = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
        stop = threading.Event()
        feeder = threading.Thread(target=_feed, args=(store, rate, contexts(texts), stop))
        feeder.start()
        try:
            ages, versions, size = _ages(store, seconds)
        finally:
            stop.set()
            feeder.join()
            trainer.terminate()
            trainer.wait()
        learned = store.model_versions(1, 1)[0].rows
    note = f"median {np.median(ages):.1f} s; {versions} versions of {size / 1000:.0f} kB at the end, {learned} outcomes"
    return of_pairs([(max(ages), asked)], "s")._replace(note=note)


def contexts(count: int) -> list[tuple[bytes, bytes]]:
    """Texts as servers make them, and the ids of their actions."""
    made = []
    for body in bodies(count):
        call = json.loads(body)
        items = [{"id": action["id"], **action["features"][0]} for action in call["actions"]]
        text = {**call["contextFeatures"][0], "_multi": items}
        made.append((json.dumps(text, separators=(",", ":")).encode(), json.dumps([a["id"] for a in items]).encode()))
    return made


def _feed(store: Store, rate: int, texts: list[tuple[bytes, bytes]], stop: threading.Event) -> None:
    """Uniform decisions whose reward depends on the action and the user."""
    generator, done, began = np.random.default_rng(0), 0, time.monotonic()
    while not stop.wait(_EVERY):
        rows: list[Any] = []
        now = time.time()
        while done < (time.monotonic() - began) * rate:
            text, names = texts[int(generator.integers(len(texts)))]
            action = int(generator.integers(10))
            event, paid = f"e{done}", float(generator.random() < 0.1 + 0.05 * action)
            rows.append(DecisionRow(1, event, "", now, text, names, action, None, 0.1, None, 0.5, 0.0, 0))
            rows.append(RewardRow(1, event, "", paid, now))
            done += 1
        if rows:
            store.add(rows)


def _ages(store: Store, seconds: float) -> tuple[list[float], int, int]:
    """Of the served parameters at every look, the number of versions, and the bytes of the last."""
    served, digest, learned_at, size, ages, versions = 0, b"", 0.0, 0, list[float](), 0
    began = time.monotonic()
    end = began + _START
    while time.monotonic() < end:
        time.sleep(_LOOK)
        version = store.served_version(1)
        if version != served:
            body = store.model_body(1, version)
            members = load(io.BytesIO(body)).members
            found = hashlib.sha256(b"".join(member.params.tobytes() for member in members)).digest()
            if served == 0:
                end = time.monotonic() + seconds
            served, size = version, len(body)
            if found != digest:
                digest, learned_at, versions = found, _decided_at(store, version), versions + 1
        if served:
            ages.append(time.time() - learned_at)
    return ages, versions, size


def _decided_at(store: Store, version: int) -> float:
    """Of the newest event that a version has learned from."""
    query = (
        select(decisions.c.decided_at)
        .join(outcomes, outcomes.c.decision_id == decisions.c.id)
        .join(models, models.c.outcome_id == outcomes.c.id)
        .where(models.c.application_id == 1, models.c.version == version)
    )
    with store.reading() as connection:
        return float(connection.scalar(query) or 0.0)
