"""A reproducible sequence of uniform random numbers, one at a time or many; its position can be saved."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl import _core

_OWN = (np.random.Generator, np.random.BitGenerator, np.random.SeedSequence, np.random.RandomState)
_DOMAIN, _WORKERS = 2, 3  # arbitrary, but must not change
AHEAD = 1024  # numbers drawn ahead: drawing one at a time is ten times slower


class UniformStream(_core.Uniforms):
    """`next()` and `take(n)` read one sequence, that of the seed's generator. Thread-safe."""

    def __init__(self, seed: Any) -> None:
        if seed is not None and not isinstance(seed, _OWN):
            # Users often give the world and the learner the same seed. Plain seeds therefore get a separate sequence:
            # otherwise the learner would draw with the same numbers as the contexts and rewards.
            seed = np.random.SeedSequence(seed, spawn_key=(_DOMAIN,))
        super().__init__(np.random.default_rng(seed))  # a Generator is used as it is

    def state(self) -> dict[str, Any]:
        """Return the position in the sequence. It does not depend on numbers drawn ahead."""
        return {"before": self.before if self.left else self.position, "used": -self.left % AHEAD}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> UniformStream:
        bits = getattr(np.random, state["before"]["bit_generator"])()
        bits.state = state["before"]
        stream = cls(np.random.Generator(bits))
        if state["used"]:
            stream.refill()
            stream.skip(state["used"])
        return stream

    def of_worker(self, worker: int) -> UniformStream:
        """Return the sequence of a copy with this number: another one for every number, fixed by this sequence."""
        state = self.state()
        entropy = [*_stream_integers(state["before"]), state["used"]]
        return UniformStream(np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(_WORKERS, worker))))

    def __reduce__(self) -> Any:
        return UniformStream.restore, (self.state(),)


def _stream_integers(state: object) -> list[int]:
    """Return all non-negative integers of a generator's state, in order."""
    if isinstance(state, dict):
        return [number for value in state.values() for number in _stream_integers(value)]
    if isinstance(state, np.ndarray):
        return [int(number) for number in state.reshape(-1)]
    return [int(state)] if isinstance(state, int | np.integer) else []
