"""The lock of an engine."""

from __future__ import annotations

import threading

from o2pl import _core


class Turn:
    """The lock of an engine. Rewards that arrive in one call wait for it, too: the rounds are busy meanwhile."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._rounds: _core.Rounds | None = None
        self._depth = 0

    def guard(self, rounds: _core.Rounds) -> None:
        """Let these rounds wait, from now on."""
        rounds.busy = self._depth
        self._rounds = rounds

    def __enter__(self) -> None:
        self._lock.acquire()
        self._wait(1)

    def __exit__(self, *error: object) -> None:
        self._wait(-1)
        self._lock.release()

    def _wait(self, more: int) -> None:
        self._depth += more
        if self._rounds is not None:
            self._rounds.busy = self._depth
