"""How long an application's calls take while another application of the same server calls as fast as it can."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from benchmarks.load import drive
from benchmarks.measure import Row, of_pairs
from benchmarks.serving import OURS, bodies, prepared, server

BUSY = 64  # connections of the other application


def slowed(seconds: float = 6.0, repeats: int = 5, learned: int = 300) -> Row:
    """Milliseconds that 99 of 100 calls over one connection take at most: beside a busy neighbour, and alone."""
    from o2pl.serving.store import Store

    calls, pairs = [("/personalizer/v1.0/rank", body) for body in bodies()], []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        keys = [prepared(folder, learned)]
        with Store.open(folder / "o2pl.sqlite") as store:
            other = store.add_application("neighbour")
            store.add_model(other.id, (folder / "model").read_bytes(), 0, learned)
            keys.append(other.write_key)
        running = stack.enter_context(server(OURS, folder))
        pool = stack.enter_context(ThreadPoolExecutor(1))

        def p99(key: str, connections: int, length: float) -> float:
            headers = {"Ocp-Apim-Subscription-Key": key}
            return 1e3 * drive([running.address], headers, calls, connections=connections, seconds=length).p99

        for turn in range(repeats + 1):  # the first is not counted
            alone = p99(keys[0], 1, seconds)
            busy = pool.submit(p99, keys[1], BUSY, seconds + 2)
            beside = p99(keys[0], 1, seconds)
            busy.result()
            if turn:
                pairs.append((beside, alone))
    return of_pairs(pairs, "ms")
