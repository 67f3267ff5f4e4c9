"""Linear softmax on sparse rows: π(a|x) ∝ exp(Σ_j x_j w_ja), summed over the row's features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl import _core
from o2pl.data.contexts import SparseRows
from o2pl.protocols import Array, Floats, Pullback
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class SparseSoftmax:
    """Linear softmax on sparse rows. Parameters: W [d, K], flattened, so that features can be appended."""

    n_actions: int
    continuous = False

    def n_params(self, n_features: int) -> int:
        return self.n_actions * n_features

    def init(self, n_features: int, generator: np.random.Generator | None = None) -> Floats:
        return np.zeros(self.n_params(n_features))

    def forward(self, params: Floats, features: SparseRows, actions: Array) -> tuple[Floats, Pullback]:
        def pullback(cotangent: Floats) -> Floats:
            return sparse_sums(features, cotangent, len(params) // self.n_actions).reshape(-1)

        return self.scores(params, features), pullback

    def scores(self, params: Floats, features: SparseRows) -> Floats:
        return sparse_scores(features, params.reshape(-1, self.n_actions))


def sparse_scores(rows: SparseRows, W: Floats) -> Floats:
    """Return rows · W; features beyond W are ignored. W [d, K] -> [n, K]"""
    return _core.sparse_scores(rows.indices, rows.values, rows.offsets, W.astype(np.float64, copy=False))


def sparse_sums(rows: SparseRows, cotangent: Floats, width: int) -> Floats:
    """Return rowsᵀ · cotangent, the pullback of `sparse_scores`. cotangent [n, K] -> [width, K]"""
    out = np.zeros((width, cotangent.shape[1]))
    _core.sparse_sums(rows.indices, rows.values, rows.offsets, cotangent.astype(np.float64, copy=False), out)
    return out
