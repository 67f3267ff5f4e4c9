"""Exact minimisation over a finite class by evaluating every member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from o2pl.protocols import Floats, Solution, State
from o2pl.storage import storable


class Enumerable(Protocol):
    """A function whose values at all candidates are available."""

    def values(self) -> Floats: ...  # [J]


@storable
@dataclass(frozen=True)
class Exhaustive:
    """Selects the member with the lowest objective. Parameters are the log weights of the members: 0 and -∞."""

    plain = False

    def init(self, n_params: int) -> State:
        return {}

    def step(
        self, function: Enumerable, params: Floats, state: State, negligible: float = 0.0
    ) -> tuple[Solution, State]:
        return self(function), state

    def __call__(self, function: Enumerable) -> Solution:
        values = function.values()
        best = int(np.argmin(values))
        vertex = np.full(len(values), -np.inf)
        vertex[best] = 0
        return Solution(vertex, float(values[best]), True, len(values))
