"""Fair turns: while several applications call a server, each has only a few calls under way, and its others wait.

So the calls of one wait for a few calls of another, however many connections that has. An application that calls alone
is not held back.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

AT_ONCE = 4  # calls of an application that are under way, while others call too
_RECENT = 1.0  # seconds for which an application counts as calling


class FairTurns:
    """Use it as `await turns.begin(application)`, then `turns.end(application)`."""

    def __init__(self, at_once: int = AT_ONCE, clock: Callable[[], float] = time.monotonic) -> None:
        self._at_once, self._clock = at_once, clock
        self._called: dict[int, float] = {}  # when an application called last
        self._under_way: dict[int, int] = {}
        self._waiting: dict[int, deque[asyncio.Future[None]]] = {}

    async def begin(self, application: int) -> None:
        """Wait until it is this call's turn."""
        self._called[application] = self._clock()
        running = self._under_way.get(application, 0)
        if running < self._at_once or self._alone(application):
            self._under_way[application] = running + 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(application, deque()).append(turn)
        try:
            await turn  # who ends hands over the turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.end(application)
            raise

    def end(self, application: int) -> None:
        """Hand the turn over to the next call; to all that wait, if no other application calls any more."""
        left = self._under_way[application] - 1
        waiting = self._waiting.get(application)
        most = self._at_once if waiting and not self._alone(application) else left + len(waiting or ()) + 1
        while waiting and left < most:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                left += 1
        self._under_way[application] = left

    def _alone(self, application: int) -> bool:
        if len(self._called) == 1:
            return True
        since = self._clock() - _RECENT
        return all(at < since for other, at in self._called.items() if other != application)
