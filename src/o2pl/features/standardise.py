"""Running standardisation: mean 0 and standard deviation 1 over the rows so far."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from o2pl.compiled import compiled, compiled_inlined
from o2pl.features.rowwise import standardised
from o2pl.protocols import Array, Floats, State
from o2pl.storage import storable

_ROUNDING = 1e-6  # smaller standard deviations, relative to the mean, are rounding errors of float32


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
        new = {name: array.copy() for name, array in state.items()}
        absorb(rows, new["count"], new["mean"], new["squares"], new["binary"], new["shift"], new["scale"])
        return new

    def transform(self, state: State, rows: Floats) -> Floats:
        return standardised(rows, state["shift"], state["scale"], self.clip)


@compiled
def absorb(
    rows: Floats, count: Floats, mean: Floats, squares: Floats, binary: Array, shift: Floats, scale: Floats
) -> None:
    """Apply Welford's update row by row, in place: the result does not depend on batching. [n, d]

    Then set shift and scale from the rows so far. A constant column gets scale 0.
    """
    n, d = rows.shape
    for r in range(n):
        count[0] += 1
        share = 1 / count[0]
        for i in range(d):
            x = np.float64(rows[r, i])
            mean[i], squares[i] = welford(x, share, mean[i], squares[i])
            binary[i] = binary[i] and (x == 0.0 or x == 1.0)
    for i in range(len(mean)):
        shift[i], scale[i] = 0.0, 1.0
        if not binary[i] and count[0] > 0:
            shift[i], scale[i] = mean[i], inverse_deviation(count[0], mean[i], squares[i])


@compiled_inlined
def welford(x: float, share: float, mean: float, squares: float) -> tuple[float, float]:
    """Return mean and Σ (x - mean)² with one more value, whose fraction of all values is `share`."""
    off = x - mean
    mean += off * share
    return mean, squares + off * (x - mean)


@compiled_inlined
def inverse_deviation(count: float, mean: float, squares: float) -> float:
    """Return 1 / deviation; 0 for constant values."""
    deviation = math.sqrt(squares / count)
    return 1 / deviation if deviation > _ROUNDING * abs(mean) else 0.0
