"""Running standardisation: mean 0 and standard deviation 1 over the rows so far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl import _core
from o2pl.features.rowwise import standardised_rowwise
from o2pl.protocols import Floats, State
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class Standardise:
    """(x - mean) / deviation, clipped to [-clip, clip]. Columns with only 0 and 1 (one-hot) are unchanged."""

    clip: float = 5.0
    keep_binary: bool = True

    def width(self, n_inputs: int, state: State | None = None) -> int:
        return n_inputs

    def init(self, n_inputs: int) -> State:
        return {
            "count": np.zeros(1),
            "mean": np.zeros(n_inputs),
            "squares": np.zeros(n_inputs),  # Σ (x - mean)²
            "binary": np.full(n_inputs, self.keep_binary),
            "shift": np.zeros(n_inputs, np.float32),
            "scale": np.ones(n_inputs, np.float32),
        }

    def observe(self, state: State, rows: Floats) -> State:
        """Update with more rows; the result does not depend on how they are divided into batches."""
        new = {name: array.copy() for name, array in state.items()}
        _core.absorb(rows, new["count"], new["mean"], new["squares"], new["binary"], new["shift"], new["scale"])
        return new

    def transform(self, state: State, rows: Floats) -> Floats:
        return standardised_rowwise(rows, state["shift"], state["scale"], self.clip)
