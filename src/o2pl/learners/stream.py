"""A reproducible sequence of uniform random numbers, one at a time or many; its position can be saved."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from o2pl.protocols import Floats

_OWN = (np.random.Generator, np.random.BitGenerator, np.random.SeedSequence, np.random.RandomState)
_DOMAIN = 2  # arbitrary, but must not change
AHEAD = 1024  # numbers drawn ahead: drawing one at a time is ten times slower


class UniformStream:
    """`next()` and `take(n)` read one sequence, that of the seed's generator. Thread-safe."""

    def __init__(self, seed: Any) -> None:
        if seed is not None and not isinstance(seed, _OWN):
            # Users often give the world and the learner the same seed. Plain seeds therefore get a separate sequence:
            # otherwise the learner would draw with the same numbers as the contexts and rewards.
            seed = np.random.SeedSequence(seed, spawn_key=(_DOMAIN,))
        self._generator = np.random.default_rng(seed)  # a Generator is used as it is
        self._before = self._generator.bit_generator.state  # state before the numbers ahead were drawn
        self._ahead: list[float] = []  # reversed: pop and append are atomic
        self._lock = threading.Lock()

    def next(self) -> float:
        while True:
            try:
                return self._ahead.pop()
            except IndexError:
                with self._lock:
                    if not self._ahead:
                        self._refill()

    def give_back(self, number: float) -> None:
        """Return an unused number to the sequence."""
        self._ahead.append(number)

    def take(self, n: int) -> Floats:
        """Return the next n numbers, the same as n calls of `next`."""
        return np.array([self.next() for _ in range(n)]) if n < AHEAD else self._many(n)

    def _many(self, n: int) -> Floats:
        with self._lock:
            parts, missing = list[Floats](), n
            while missing:
                if not self._ahead:
                    self._refill()
                ahead = self._ahead[-missing:][::-1]
                del self._ahead[-missing:]
                parts.append(np.array(ahead))
                missing -= len(ahead)
            return np.concatenate(parts)

    def _refill(self) -> None:
        self._before = self._generator.bit_generator.state
        self._ahead = self._generator.random(AHEAD)[::-1].tolist()

    def state(self) -> dict[str, Any]:
        """Return the position in the sequence. It does not depend on numbers drawn ahead."""
        left = len(self._ahead)
        return {"before": self._before if left else self._generator.bit_generator.state, "used": -left % AHEAD}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> UniformStream:
        bits = getattr(np.random, state["before"]["bit_generator"])()
        bits.state = state["before"]
        stream = cls(np.random.Generator(bits))
        if state["used"]:
            stream._refill()
            del stream._ahead[AHEAD - state["used"] :]
        return stream

    def __getstate__(self) -> dict[str, Any]:
        return self.state()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(UniformStream.restore(state).__dict__)
