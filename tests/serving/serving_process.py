"""A script: `o2pl serve` that is killed and started again, without loading Python anew each time.

    python serving_process.py DATABASE PORT

A line `run` of its standard input starts a server, and is answered with `pid N`; `wait`, once it is dead, with `dead`.
"""

from __future__ import annotations

import os
import sys

import o2pl.serving.api
import o2pl.serving.service  # noqa: F401
from o2pl.cli.serve import serve


def main(database: str, port: str) -> None:
    pid = 0
    while command := sys.stdin.readline().strip():
        if command == "run":
            pid = os.fork()
            if pid == 0:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                serve("127.0.0.1", int(port), database, trainer=False, rate_limit=0.0)
                os._exit(0)
            print(f"pid {pid}", flush=True)
        else:
            os.waitpid(pid, 0)
            print("dead", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
