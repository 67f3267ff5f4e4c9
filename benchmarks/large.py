"""Logs larger than memory: what a fit holds, how fast its passes are, on Ray too, and beside OBP's learner."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.internals import (
    LINEAR,
    BadRows,
    BlockPasses,
    Log,
    MemberProblem,
    Outcome,
    RayPasses,
    Softmax,
    begin_with_large_log,
    connected_cluster,
    copy_large_log,
    find_value,
    scan_large_log,
)
from benchmarks.measure import Row, of_pairs, rates
from benchmarks.peers import Child
from o2pl import Bandit, load
from o2pl.data.interactions import Interactions
from o2pl.extras import missing_extra
from o2pl.protocols import Array, Floats

WIDTH, ACTIONS, FRESH = 20, 5, 20_000
CANDIDATES = "bandit linear"
_AT_A_TIME = 125_000  # rows


def _means(contexts: Floats) -> Floats:
    """The exact expected reward of every action, [n, K]."""
    generator = np.random.default_rng(7)
    W = generator.normal(size=(WIDTH, ACTIONS)) / np.sqrt(WIDTH)
    return np.asarray(1 / (1 + np.exp(0.5 - contexts @ W - 0.3 * generator.normal(size=ACTIONS))))


def _rows(n: int, generator: np.random.Generator) -> dict[str, Array]:
    """Of a logger that knows a little."""
    contexts = generator.normal(size=(n, WIDTH)).astype(np.float32)
    means = _means(contexts)
    likely = np.exp(2 * means)
    likely = 0.8 * likely / likely.sum(axis=1, keepdims=True) + 0.2 / ACTIONS
    actions = (generator.random((n, 1)) > np.cumsum(likely, axis=1)[:, :-1]).sum(axis=1)
    played = np.arange(n), actions
    rewards = (generator.random(n) < means[played]).astype(np.float32)
    return {"contexts": contexts, "actions": actions, "rewards": rewards, "propensities": likely[played]}


@cache
def parquet(rows: int, files: int = 4) -> Path:
    """A folder that goes away with the process."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    folder = Path(tempfile.mkdtemp(prefix="o2pl-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    generator = np.random.default_rng(0)
    for file in range(files):
        writer, left = None, rows * (file + 1) // files - rows * file // files
        while left:
            some = _rows(min(left, _AT_A_TIME), generator)
            left -= len(some["actions"])
            columns = {f"x{k}": some["contexts"][:, k] for k in range(WIDTH)}
            columns |= {"action": some["actions"], "reward": some["rewards"], "propensity": some["propensities"]}
            table = pa.table(columns)
            writer = writer or pq.ParquetWriter(folder / f"part-{file}.parquet", table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()
    return folder


# -- a whole fit


class Fitted(NamedTuple):
    seconds: float
    gibibytes: float  # of anonymous memory, at the peak
    value: float  # exact, of the policy


@cache
def fitted(rows: int, way: str = "--out-of-core") -> Fitted:
    """`o2pl fit` in a process of its own, from Parquet to a policy."""
    log = parquet(rows)
    with tempfile.TemporaryDirectory(prefix="o2pl-bench-") as folder:
        out = Path(folder) / "model.o2pl"
        command = [sys.executable, "-m", "o2pl.cli", "fit", str(log), "--out", str(out), way]
        start, most = time.perf_counter(), 0
        process = subprocess.Popen(
            [*command, "--candidates", CANDIDATES], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            lines = status.read_text() if status.exists() else ""
            if "RssAnon:" in lines:
                most = max(most, int(lines.split("RssAnon:")[1].split()[0]))
            time.sleep(0.02)
        took = time.perf_counter() - start
        policy = load(out)
    fresh = _rows(FRESH, np.random.default_rng(1))["contexts"]
    named = [dict(zip((f"x{k}" for k in range(WIDTH)), row, strict=True)) for row in fresh.tolist()]
    return Fitted(took, most / 2**20, float((policy.predict_proba(named) * _means(fresh)).sum(axis=1).mean()))


def memory(rows: int = 10**7, beside: str = "columns") -> Row:
    """GiB of anonymous memory at the peak of a whole fit, beside the log's own columns or a fit in memory."""
    theirs = rows * (4 * WIDTH + 3 * 8) / 2**30 if beside == "columns" else fitted(rows, "--in-memory").gibibytes
    return of_pairs([(fitted(rows).gibibytes, theirs)], "GiB")


def against_obp(name: str, rows: int = 10**7, peer_rows: int = 10**5, repeats: int = 3) -> Row:
    """Rows a second from the file to a policy, beside a learner of OBP's on arrays in memory."""
    some = _rows(peer_rows, np.random.default_rng(2))
    fresh = _rows(FRESH, np.random.default_rng(1))["contexts"]
    pairs, value = [], 0.0
    with Child("obp", **some, fresh=fresh, means=_means(fresh)) as child:
        mine = fitted(rows)
        for _ in range(repeats):
            said = child.play("fit", learner=name)
            value = said.mean
            pairs.append((rows / mine.seconds, peer_rows / said.seconds))
    return of_pairs(pairs, "rows/s")._replace(rewards=(mine.value, value))


# -- passes


@contextmanager
def _mapped(rows: int) -> Iterator[tuple[Log, Interactions]]:
    """A copy on the disk, as a fit makes it; and the same rows in memory."""
    found, learner = scan_large_log(parquet(rows), None, BadRows("log"), 0), Bandit(ACTIONS)
    with tempfile.TemporaryDirectory(prefix="o2pl-bench-") as folder:
        engine = begin_with_large_log(learner, found.sample)
        copy_large_log(found, learner, engine, Path(folder) / "log", BadRows("log"))
        log = engine.log.empty(Path(folder) / "log", rows=found.rows)
        columns = log.columns
        contexts, actions, rewards, likely = (np.array(column) for column in columns)
        inside = Interactions.trusted(contexts, actions, rewards, likely, columns.reward_range, ACTIONS)
        yield log, inside


def _problem(rows: Interactions) -> tuple[MemberProblem, Floats]:
    """The likelihood of `Bandit`'s linear member, and parameters."""
    seen = LINEAR.observe(LINEAR.init(WIDTH), rows.contexts[:_AT_A_TIME])
    problem = MemberProblem(Softmax(ACTIONS), Outcome(), LINEAR, seen, rows, 0, None, None, {})
    return problem, 0.1 * np.random.default_rng(0).normal(size=ACTIONS * problem.width + 1)


def _once(name: str, compute: Any) -> Any:
    return compute()


def passes(rows: int = 10**7, repeats: int = 5) -> Row:
    """Rows a second of one evaluation, of the copy on the disk and of the rows in memory, both from the second on."""
    with _mapped(rows) as (log, inside):
        problem, params = _problem(inside)
        whole: Any = find_value(problem._replace(log=problem.objective.prepare(inside)))
        mapped = problem._replace(rows=log.columns)
        _, function = BlockPasses(Path(), _once).prepared(mapped, None)
        return rates(lambda: function(params), lambda: whole(params), rows, "rows/s", repeats)


def on_ray(rows: int = 2 * 10**6, repeats: int = 5) -> Row:
    """Rows a second of one evaluation by two workers of a local Ray, beside one."""
    if missing_extra("ray"):
        raise ModuleNotFoundError("ray is not installed")

    with (
        _mapped(rows) as (log, _),
        connected_cluster(workers=3) as cluster,
    ):  # three workers in all, never at work together
        problem, params = _problem(log.columns)
        made = [RayPasses(log, Path(), _once, None, cluster, workers, print) for workers in (2, 1)]
        two, one = (each.prepared(problem, None)[1] for each in made)
        row = rates(lambda: two(params), lambda: one(params), rows, "rows/s", repeats)
        (busier, alone) = (max(_worked(cluster[0], each)) for each in made)
        share = f"the busier of the two workers used {busier / alone:.2f} of the CPU time of the one"
        return row._replace(note=f"In all passes {share}: where two cores are free, that is what is left of the time.")


def _worked(ray: Any, passes: Any) -> list[float]:
    """CPU seconds of each worker so far, less what it took to start."""
    return [ray.get(worker.seconds.remote()) for worker in passes.workers]
