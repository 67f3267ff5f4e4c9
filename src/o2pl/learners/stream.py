"""Uniform numbers, one at a time or many, always the same sequence; its position can be saved."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.protocols import Floats

_OWN = (np.random.Generator, np.random.BitGenerator, np.random.SeedSequence, np.random.RandomState)
_DOMAIN = 2  # any number will do, as long as it stays
_BLOCK = 1024  # numbers drawn ahead: one at a time would cost ten times as much


class UniformStream:
    """`next()` and `take(n)` walk along one sequence, that of the seed's generator."""

    def __init__(self, seed: Any) -> None:
        if seed is not None and not isinstance(seed, _OWN):
            # People seed the world and the learner alike. Plain seeds therefore get a sequence of their own: else the
            # learner would draw with the very numbers that contexts and rewards were made of.
            seed = np.random.SeedSequence(seed, spawn_key=(_DOMAIN,))
        self._generator = np.random.default_rng(seed)  # a Generator is taken over as it stands
        self._before = self._generator.bit_generator.state  # as it was when the block was drawn
        self._numbers: Floats = np.empty(0)
        self._block: list[float] = []  # the same: one by one, a list is faster
        self._at = self._size = 0

    def _refill(self) -> None:
        self._before = self._generator.bit_generator.state
        self._numbers = self._generator.random(_BLOCK)
        self._block = self._numbers.tolist()
        self._at, self._size = 0, _BLOCK

    def next(self) -> float:
        at = self._at
        if at == self._size:
            self._refill()
            at = 0
        self._at = at + 1
        return self._block[at]

    def unread(self) -> None:
        """Put back what `next` has just given."""
        self._at -= 1

    def take(self, n: int) -> Floats:
        """The next n numbers: the same as n times `next`."""
        out, done = np.empty(n), 0
        while done < n:
            if self._at == self._size:
                self._refill()
            part = self._numbers[self._at : self._at + n - done]
            out[done : done + len(part)] = part
            self._at += len(part)
            done += len(part)
        return out

    def state(self) -> dict[str, Any]:
        return {"before": self._before, "at": self._at, "drawn": self._at > 0}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> UniformStream:
        bits = getattr(np.random, state["before"]["bit_generator"])()
        bits.state = state["before"]
        stream = cls(np.random.Generator(bits))
        if state["drawn"]:
            stream._refill()
            stream._at = state["at"]
        return stream
