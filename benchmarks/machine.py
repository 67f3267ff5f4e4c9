"""What the machine can do, and one objective with its gradient over a large log on two threads."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import Row, rates, times
from benchmarks.reference import both_objectives, library

THREADS = 2
STATISTICS = Path("/proc/stat")  # "cpu user nice system idle iowait …"


def busy_cores(seconds: float = 2.0) -> float:
    """How many cores other processes keep busy; where the system does not say, its load."""
    if not STATISTICS.exists():
        return os.getloadavg()[0]
    before = _idle()
    time.sleep(seconds)
    return max((os.cpu_count() or 1) - (_idle() - before) / seconds, 0.0)


def _idle() -> float:
    """Seconds that all cores have been idle, or waited for disks."""
    idle, waiting = STATISTICS.read_text().split()[4:6]
    return (int(idle) + int(waiting)) / os.sysconf("SC_CLK_TCK")


def batch(n: int, d: int, n_actions: int, repeats: int = 9) -> Row:
    """Milliseconds of ours and of the C++ reference."""
    library()
    ours, reference, params = both_objectives(n, d, n_actions, THREADS)
    return times(lambda: ours(params), lambda: reference(params), "ms", repeats)


def sgemm(size: int = 2048, repeats: int = 5) -> Row:
    """Single-precision matrix product, GFLOP/s: two threads beside one."""
    a = np.random.default_rng(0).standard_normal((size, size), np.float32)
    out = np.empty_like(a)

    def product(threads: int) -> None:
        with threadpool_limits(threads, user_api="blas"):
            np.dot(a, a, out)

    row = rates(lambda: product(THREADS), lambda: product(1), 2 * size**3, "GFLOP/s", repeats)
    return row._replace(ours=row.ours / 1e9, peer=row.peer / 1e9)


def copy(mebibytes: int = 256, repeats: int = 5) -> Row:
    """Memory read and written, GB/s: two threads beside one."""
    source = np.ones(mebibytes * 2**20 // 8)
    target = np.zeros_like(source)
    half = len(source) // THREADS
    parts = [slice(j * half, (j + 1) * half) for j in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:

        def on_threads() -> None:
            list(pool.map(lambda part: np.copyto(target[part], source[part]), parts))

        row = rates(on_threads, lambda: np.copyto(target, source), 2 * source.nbytes, "GB/s", repeats)
    return row._replace(ours=row.ours / 1e9, peer=row.peer / 1e9)
