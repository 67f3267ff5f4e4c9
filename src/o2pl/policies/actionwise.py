"""Softmax over varying action sets, with weights shared by all actions: π(a|x) ∝ exp(θ · φ(x, a))."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl import _core
from o2pl.data.contexts import ActionSets, are_sparse_contexts
from o2pl.policies.sparse import sparse_scores, sparse_sums
from o2pl.protocols import Array, Floats, Pullback
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class ActionWise:
    """Softmax over action sets. Parameters: θ [d]. Features: `ActionSets` of dense or sparse rows; flat scores."""

    continuous = False
    sets = True

    def n_params(self, n_features: int) -> int:
        return n_features

    def init(self, n_features: int, generator: np.random.Generator | None = None) -> Floats:
        return np.zeros(n_features)

    def forward(self, params: Floats, features: ActionSets, actions: Array) -> tuple[Floats, Pullback]:
        values, sparse = features.values, are_sparse_contexts(features.values)

        def pullback(cotangent: Floats) -> Floats:
            if sparse:
                return sparse_sums(values, cotangent[:, None], len(params))[:, 0]
            return np.asarray(cotangent @ values, np.float64)

        return self.scores(params, features) if sparse else values @ params, pullback

    def scores(self, params: Floats, features: ActionSets) -> Floats:
        if are_sparse_contexts(features.values):
            return sparse_scores(features.values, params[:, None])[:, 0]
        return _core.project(features.values, params[None])[:, 0].astype(np.float64)
