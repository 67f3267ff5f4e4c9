"""Uniform numbers, one at a time or many, always the same sequence; its position can be saved."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.protocols import Floats

_OWN = (np.random.Generator, np.random.BitGenerator, np.random.SeedSequence, np.random.RandomState)
_DOMAIN = 2  # any number will do, as long as it stays
AHEAD = 1024  # numbers drawn ahead: one at a time would cost ten times as much


class UniformStream:
    """`next()` and `take(n)` walk along one sequence, that of the seed's generator.

    A kernel may read `numbers` itself, from `place[0]` on, and raise that by one each time; at AHEAD it must `refill`.
    """

    def __init__(self, seed: Any) -> None:
        if seed is not None and not isinstance(seed, _OWN):
            # People seed the world and the learner alike. Plain seeds therefore get a sequence of their own: else the
            # learner would draw with the very numbers that contexts and rewards were made of.
            seed = np.random.SeedSequence(seed, spawn_key=(_DOMAIN,))
        self._generator = np.random.default_rng(seed)  # a Generator is taken over as it stands
        self._before = self._generator.bit_generator.state  # as it was when the numbers were drawn
        self._drawn = False
        self.numbers: Floats = np.empty(AHEAD)
        self.place = np.array([AHEAD])

    def refill(self) -> None:
        self._before, self._drawn = self._generator.bit_generator.state, True
        self._generator.random(out=self.numbers)
        self.place[0] = 0

    def next(self) -> float:
        at = int(self.place[0])
        if at == AHEAD:
            self.refill()
            at = 0
        self.place[0] = at + 1
        return float(self.numbers[at])

    def take(self, n: int) -> Floats:
        """The next n numbers: the same as n times `next`."""
        out, done = np.empty(n), 0
        while done < n:
            if self.place[0] == AHEAD:
                self.refill()
            at = self.place[0]
            part = self.numbers[at : at + n - done]
            out[done : done + len(part)] = part
            self.place[0] += len(part)
            done += len(part)
        return out

    def state(self) -> dict[str, Any]:
        return {"before": self._before, "at": int(self.place[0]), "drawn": self._drawn}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> UniformStream:
        bits = getattr(np.random, state["before"]["bit_generator"])()
        bits.state = state["before"]
        stream = cls(np.random.Generator(bits))
        if state["drawn"]:
            stream.refill()
            stream.place[0] = state["at"]
        return stream
