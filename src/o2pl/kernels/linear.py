"""An objective and its gradient in one pass over the rows, for policies linear in their features.

Rows are processed in blocks: BLAS computes the scores of a block and pulls their cotangents back; a kernel does the
rest. Some objectives need the gradient in parts: Φ' is known only after all rows, see `PessimisticLog.partial`. The
sums of a panel of blocks are one term, so the result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from o2pl import _core
from o2pl.objectives.pessimistic import PessimisticLog
from o2pl.protocols import Floats, Ints
from o2pl.threads import side_by_side

BLOCK = 2**18  # elements of a block: 1 MiB in single precision
PANEL = 8  # blocks whose sums are one term
HELD = 32 * 2**20  # bytes of features that are cached between evaluations
LARGEST = {np.dtype(kind): np.finfo(kind).max for kind in (np.float32, np.float64)}  # replaces ∞: ∞ times 0 is NaN

Features = Callable[[slice | Ints], Floats]  # returns features of the log's rows, [m, width]
# (scores [K, m], rows of the log, parameters, cotangents [parts K, m], sums): writes cotangents, adds to the sums
Partial = Callable[[Floats, slice, Floats, Floats, Floats], None]
# (parameters, sums [panels, ·], gradients [panels, ≥ parts K width]) -> value and gradient
Combine = Callable[[Floats, Floats, Floats], tuple[float, Floats]]


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


class LinearValue:
    """The function θ -> V(π_θ) with its gradient. θ: a flat matrix [K, width], then parameters of the objective."""

    incremental = False

    def __init__(
        self, bounds: Sequence[int], features: Features, partial: Any, shape: tuple[int, int], combine: Combine,
        parts: int, sums: int, dtype: Any = np.float32,
    ) -> None:  # fmt: skip
        self._features, self._partial, self._shape, self._combine = features, partial, shape, combine
        self._used, self._dtype = parts * shape[0], dtype
        self._blocks = [slice(first, last) for first, last in pairwise(bounds)]
        K, width = shape
        panels = -(-len(self._blocks) // PANEL)
        self._W: Floats = np.zeros((_in_fours(K), width), dtype)
        self._sums = np.zeros((panels, sums))
        self._gradients: Floats = np.zeros((panels, _in_fours(parts * K), width))
        self._flat = self._gradients.reshape(panels, -1)
        self._weights = self._W[:K]
        self._only: tuple[Floats, Floats, Floats] | None = None  # of a log of one block: its features, and work arrays

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        self._pass(params)
        return self._combine(params, self._sums, self._flat)

    def sums(self, params: Floats) -> tuple[Floats, list[Floats]]:
        """Return the sums over all rows and the parts of the gradient, like `PolicyValue.sums`."""
        self._pass(params)
        gradients, K = self._gradients.sum(axis=0), self._shape[0]
        return self._sums.sum(axis=0), [gradients[k : k + K].reshape(-1) for k in range(0, self._used, K)]

    def _pass(self, params: Floats) -> None:
        """Compute sums and gradients of each panel."""
        panels = len(self._sums)
        self._weights[...] = params[: self._weights.size].reshape(self._shape)
        self._sums.fill(0)
        if len(self._blocks) == 1:
            if self._only is None:
                self._only = self._with_room(self._blocks[0])
            X, cotangents, gradients = self._only
            self._block(X, self._blocks[0], params, cotangents, self._sums[0], gradients)
            self._gradients[0] = gradients
        elif panels == 1:
            self._panel(0, params)
        else:
            side_by_side(lambda panel: self._panel(panel, params), panels)

    def _with_room(self, rows: slice) -> tuple[Floats, Floats, Floats]:
        """Return the features of a block, and work arrays for its cotangents and gradients."""
        X, (used, width) = self._features(rows), self._gradients.shape[1:]
        return X, np.zeros((used, len(X)), self._dtype), np.empty((used, width), self._dtype)

    def _panel(self, panel: int, params: Floats) -> None:
        sums, total = self._sums[panel], self._gradients[panel]
        total.fill(0)
        for rows in self._blocks[panel * PANEL : (panel + 1) * PANEL]:
            X, cotangents, gradients = self._with_room(rows)
            self._block(X, rows, params, cotangents, sums, gradients)
            total += gradients

    def _block(
        self, X: Floats, rows: slice, params: Floats, cotangents: Floats, sums: Floats, gradients: Floats
    ) -> None:
        """Process a block: add to the sums, write the gradients. X [m, width], cotangents [≥ parts K, m]"""
        self._partial(np.dot(self._W, X.T)[: self._shape[0]], rows, params, cotangents[: self._used], sums)
        np.dot(cotangents, X, out=gradients)


def _in_fours(rows: int) -> int:
    """Round up to a multiple of four: BLAS processes rows of the smaller matrix in fours."""
    return -(-rows // 4) * 4 if rows > 1 else rows


def block_bounds(n: int, width: int) -> list[int]:
    """Return the bounds of the blocks of n rows."""
    return [*range(0, n, _block_rows(width)), n]


def _block_rows(width: int) -> int:
    return max(256, BLOCK // max(width, 1))


def panel_rows(width: int) -> int:
    """Return the number of rows of a panel."""
    return PANEL * _block_rows(width)


def inverse_propensities(log: PessimisticLog, dtype: Any) -> Floats:
    inverse: Floats = np.empty(len(log.propensities), dtype)
    with np.errstate(over="ignore"):
        np.divide(1, log.propensities, out=inverse, casting="same_kind")  # no copy in double precision
    return np.minimum(inverse, LARGEST[np.dtype(dtype)], out=inverse)


def pessimistic_combine(log: PessimisticLog, size: int) -> Combine:
    """Return `PessimisticLog.combine`, compiled. size: of the weight matrix. Other parameters have separate sums."""
    penalty: Any = tuple(map(float, log.penalty))  # type: ignore[call-overload]  # a Phi in every fused objective

    def put_together(params: Floats, sums: Floats, gradients: Floats) -> tuple[float, Floats]:
        own = np.asarray(gradients, np.float64)
        return _core.pessimistic_combine(params, sums, own, size, log.size, penalty, log.l2)

    return put_together
