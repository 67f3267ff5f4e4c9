"""A script: write entries to a store from several threads, and say of each that it was acknowledged.

    python writing_process.py DATABASE NAME SEED [BYTES]

A line for each: `decision EVENT PROPENSITY`, `reward EVENT KEY VALUE`, or `refused`. NAME is part of the event ids.
BYTES: files may not grow beyond; `room` on the standard input takes the limit away. It writes until it is killed, or
told `stop`.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import threading

from o2pl.serving.database import StoreUnavailable
from o2pl.serving.entries import Answer, DecisionRow, RewardRow
from o2pl.serving.store import Store
from o2pl.serving.writer import Writer

THREADS = 6


def write(writer: Writer, name: str, seed: str, stop: threading.Event) -> None:
    generator, k = random.Random(seed), 0
    while not stop.is_set():
        event, chance, k = f"{name}-{seed}-{k}", generator.uniform(0.1, 1), k + 1
        context = b'{"user":"%b"}' % (b"x" * generator.randrange(10, 4000))
        row = DecisionRow(1, event, "", 1.0, context, b'["a"]', 0, None, chance, None, 0.5, 0.0, 0)
        if not told(writer, row, f"decision {event} {chance!r}"):
            continue
        for reward in range(generator.randrange(3)):
            value = generator.random()
            told(writer, RewardRow(1, event, "", value, 2.0, f"key{reward}"), f"reward {event} key{reward} {value!r}")


def told(writer: Writer, row: DecisionRow | RewardRow, line: str) -> bool:
    try:
        (answer,) = writer.submit([row]).result()
    except StoreUnavailable:
        say("refused")
        stop_a_moment.wait(0.02)
        return False
    assert answer is Answer.STORED, (answer, line)
    say(line)
    return True


def say(line: str) -> None:
    with one_at_a_time:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


one_at_a_time, stop_a_moment = threading.Lock(), threading.Event()

if __name__ == "__main__":
    database, name, seed, *limit = sys.argv[1:]
    store = Store.open(database)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit[0]), resource.RLIM_INFINITY))
    writer, stop = Writer(store), threading.Event()
    threading.excepthook = lambda failed: (sys.excepthook(*failed[:3]), os._exit(1))  # type: ignore[func-returns-value]
    threads = [threading.Thread(target=write, args=(writer, name, f"{seed}{k}", stop)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for command in sys.stdin:
        if command.strip() == "room":
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        else:
            break
    stop.set()
    for thread in threads:
        thread.join()
    writer.stop()
    store.close()
