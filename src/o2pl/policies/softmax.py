"""Linear softmax, one weight vector per action: π(a|x) ∝ exp(w_a · φ(x))."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl import _core
from o2pl.protocols import Array, Floats, Pullback
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class Softmax:
    """Linear softmax policy. Parameters: W [K, d], flattened."""

    n_actions: int
    continuous = False

    def n_params(self, n_features: int) -> int:
        return self.n_actions * n_features

    def init(self, n_features: int, generator: np.random.Generator | None = None) -> Floats:
        return np.zeros(self.n_params(n_features))

    def forward(self, params: Floats, features: Floats, actions: Array) -> tuple[Floats, Pullback]:
        W = params.reshape(self.n_actions, -1).astype(features.dtype)

        def pullback(cotangent: Floats) -> Floats:
            return np.asarray(cotangent.T @ features, np.float64).reshape(-1)

        return features @ W.T, pullback

    def scores(self, params: Floats, features: Floats) -> Floats:
        W = params.reshape(self.n_actions, -1).astype(features.dtype)
        return _core.project(features, W).astype(np.float64)
