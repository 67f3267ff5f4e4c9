"""A stop request that comes at any moment ends the wait."""

from __future__ import annotations

import subprocess
import sys
import time

from o2pl.serving.stop_request import StopRequest

_WAITS = """
import os, signal, threading, time
from o2pl.serving.stop_request import StopRequest
for k in range(300):
    stop = StopRequest()
    stop.on(signal.SIGTERM)
    threading.Timer(k * 1e-5, os.kill, (os.getpid(), signal.SIGTERM)).start()
    while not stop.is_set():
        stop.wait(0.0)
print("done")
"""


def test_a_signal_at_any_moment_stops_and_never_blocks() -> None:
    """With a `threading.Event`, its handler waits for a lock that the interrupted thread holds, within a few turns."""
    done = subprocess.run([sys.executable, "-c", _WAITS], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "done\n", done.stderr


def test_a_request_ends_a_wait() -> None:
    stop = StopRequest()
    began = time.monotonic()
    with stop:
        assert not stop.wait(0.05)
        stop.set()
        stop.set()
        assert stop.wait(60.0)
    assert time.monotonic() - began < 30
