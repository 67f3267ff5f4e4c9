"""Features whose state is updated only occasionally."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from o2pl.protocols import FeatureMap, State
from o2pl.storage import storable

_ROWS = "settled"


@storable
@dataclass(frozen=True)
class Settled:
    """A feature map that is updated only when the rows have grown by the factor `growth` since the last update.

    What was learned incrementally stays valid as long as the features of earlier rows do not change.
    """

    features: FeatureMap
    growth: float = 2.0

    def due(self, state: State, rows: int) -> bool:
        """Return whether an update is due with this number of rows."""
        return bool(rows >= self.growth * state[_ROWS][0])

    def width(self, n_inputs: int, state: State | None = None) -> int:
        return self.features.width(n_inputs)

    def init(self, n_inputs: int) -> State:
        return {_ROWS: np.zeros(1), **self.features.init(n_inputs)}

    def observe(self, state: State, rows: Any) -> State:
        return {**self.counted(state[_ROWS][0] + len(rows)), **self.features.observe(self.inner(state), rows)}

    def transform(self, state: State, rows: object) -> Any:
        return self.features.transform(self.inner(state), rows)

    def counted(self, rows: float) -> State:
        """Return the part of the state that counts observed rows."""
        return {_ROWS: np.array([float(rows)])}

    def inner(self, state: State) -> State:
        """Return the state of the inner map."""
        return {name: array for name, array in state.items() if name != _ROWS}
