"""Uniform numbers, one at a time or many, always the same sequence; its position can be saved."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.protocols import Floats

_BLOCK = 1024  # numbers drawn ahead: asking numpy for one costs fifty times as much as for one of many


class UniformStream:
    def __init__(self, seed: Any) -> None:
        self._bits = np.random.default_rng(seed).bit_generator  # a Generator is taken over as it stands
        self._block: Floats = np.empty(0)
        self._at = 0
        self._before = self._bits.state

    def next(self) -> float:
        if self._at == len(self._block):
            self._before = self._bits.state
            self._block = np.random.Generator(self._bits).random(_BLOCK)
            self._at = 0
        self._at += 1
        return float(self._block[self._at - 1])

    def take(self, n: int) -> Floats:
        """The next n numbers: the same as n times `next`."""
        out = np.empty(n)
        filled = 0
        while filled < n:
            if self._at == len(self._block):
                out[filled] = self.next()
                filled += 1
                continue
            some = min(n - filled, len(self._block) - self._at)
            out[filled : filled + some] = self._block[self._at : self._at + some]
            self._at += some
            filled += some
        return out

    def state(self) -> dict[str, Any]:
        return {"before": self._before, "at": self._at, "size": len(self._block)}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> UniformStream:
        stream = cls(np.random.Generator(getattr(np.random, state["before"]["bit_generator"])()))
        stream._bits.state = stream._before = state["before"]
        if state["size"]:
            stream._block = np.random.Generator(stream._bits).random(_BLOCK)
        stream._at = state["at"]
        return stream
