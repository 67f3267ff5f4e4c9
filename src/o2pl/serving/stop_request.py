"""A stop request that a signal handler can make."""

from __future__ import annotations

import contextlib
import select
import signal
import socket
from types import FrameType


class StopRequest:
    """Set by a signal, waited for by a loop. It takes no lock: a handler runs between any two steps of the thread that
    waits, also while that thread holds the lock of a `threading.Event`, which would then never be free again.
    """

    def __init__(self) -> None:
        self._set = False
        self._reads, self._writes = socket.socketpair()
        self._writes.setblocking(False)

    def __enter__(self) -> StopRequest:
        return self

    def __exit__(self, *_: object) -> None:
        self._reads.close()
        self._writes.close()

    def set(self) -> None:
        if not self._set:
            self._set = True
            with contextlib.suppress(OSError):  # it is closed: nobody waits
                self._writes.send(b"x")  # ends `wait`

    def is_set(self) -> bool:
        return self._set

    def wait(self, seconds: float) -> bool:
        """Wait until it is set, at most this long. Returns whether it is."""
        if not self._set:
            select.select([self._reads], [], [], seconds)
        return self._set

    def on(self, *signals: int) -> None:
        """Set it when one of these signals comes."""

        def handler(number: int, frame: FrameType | None) -> None:
            self.set()

        for number in signals:
            signal.signal(number, handler)
