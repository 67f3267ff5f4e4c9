"""A script: write entries to a store from several threads, and say of each that it was acknowledged.

    python writing_process.py DATABASE [BYTES]

A line for each: `decision EVENT PROPENSITY`, `reward EVENT KEY VALUE`, or `refused`. BYTES: files may not grow beyond.
It does what the lines of its standard input say:

    run NAME   start a process that writes; its first line is `pid N`. NAME is part of the event ids
    room       the process may write as much as it likes from now on
    stop       the process stops writing, and all is over
    wait       say `dead` once it is

Processes are forked here, since starting Python takes longer than killing it.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import threading

from o2pl.serving.batch_writes import Answer, DecisionRow, RewardRow
from o2pl.serving.database import StoreUnavailable
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


def run(database: str, name: str, commands: int, limit: list[str]) -> None:
    say(f"pid {os.getpid()}")
    store = Store.open(database)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit[0]), resource.RLIM_INFINITY))
    writer, stop = Writer(store), threading.Event()
    threading.excepthook = lambda failed: (sys.excepthook(*failed[:3]), os._exit(1))  # type: ignore[func-returns-value]
    threads = [threading.Thread(target=write, args=(writer, name, str(k), stop)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    while os.read(commands, 1) == b"r":
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    stop.set()
    for thread in threads:
        thread.join()
    writer.stop()
    store.close()


def main(database: str, *limit: str) -> None:
    told, pid = -1, 0
    while command := sys.stdin.readline().split():
        if command[0] == "run":
            commands, told = os.pipe()
            pid = os.fork()
            if pid == 0:
                run(database, command[1], commands, list(limit))
                sys.stdout.flush()
                os._exit(0)
        elif command[0] in ("room", "stop"):
            os.write(told, command[0][:1].encode())
        if command[0] == "stop":
            break
        if command[0] == "wait":
            os.waitpid(pid, 0)
            say("dead")
    if command and command[0] == "stop":
        _, status = os.waitpid(pid, 0)
        sys.exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
