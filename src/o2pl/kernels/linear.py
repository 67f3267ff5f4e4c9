"""What objectives of policies linear in their features share: cached features, the size of panels, 1/q."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from o2pl.objectives.pessimistic import PessimisticLog
from o2pl.protocols import Floats, Ints

BLOCK = 2**18  # elements of a block: 1 MiB in single precision
PANEL = 8  # blocks of a panel, whose sums are one term
HELD = 32 * 2**20  # bytes of features that are cached between evaluations
LARGEST = {np.dtype(kind): np.finfo(kind).max for kind in (np.float32, np.float64)}  # replaces ∞: ∞ times 0 is NaN

Features = Callable[[slice | Ints], Floats]  # returns features of the log's rows, [m, width]


class HeldFeatures:
    """Features of a log's rows. Those of slices are cached, up to `most` bytes."""

    def __init__(self, make: Features, dtype: Any, most: int = HELD) -> None:
        self._make, self._dtype = make, dtype
        self._held: dict[tuple[int, int], Floats] = {}
        self._left = most

    def __call__(self, rows: slice | Ints) -> Floats:
        if not isinstance(rows, slice):
            return np.asarray(self._make(rows), self._dtype)
        X = self._held.get((rows.start, rows.stop))
        if X is None:
            X = np.asarray(self._make(rows), self._dtype)
            if X.nbytes <= self._left:
                self._held[rows.start, rows.stop] = X
                self._left -= X.nbytes
        return X


def linear_panel_rows(width: int) -> int:
    """Return the number of rows of a panel."""
    return PANEL * max(256, BLOCK // max(width, 1))


def linear_inverse_propensities(log: PessimisticLog, dtype: Any) -> Floats:
    inverse: Floats = np.empty(len(log.propensities), dtype)
    with np.errstate(over="ignore"):
        np.divide(1, log.propensities, out=inverse, casting="same_kind")  # no copy in double precision
    return np.minimum(inverse, LARGEST[np.dtype(dtype)], out=inverse)
