"""Softmax over action sets that vary from row to row, with weights shared by all actions: π(a|x) ∝ exp(θ · φ(x, a))."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl.features.basic import project
from o2pl.policies.sampling import draw, normalise
from o2pl.protocols import Array, Floats, Ints, Pullback
from o2pl.rows import ActionSets
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class ActionWise:
    """Parameters: θ [d]. Features are `ActionSets`; what is [n, K] elsewhere is flat here, [total]."""

    def n_params(self, n_features: int) -> int:
        return n_features

    def init(self, n_features: int) -> Floats:
        return np.zeros(n_features)

    def choices(self, features: ActionSets, actions: Array | None = None) -> Floats:
        sizes = features.sizes.astype(np.float64)
        return sizes if actions is not None else sizes[features.owner]

    def forward(self, params: Floats, features: ActionSets, actions: Array | None = None) -> tuple[Floats, Pullback]:
        pi = normalise(features.values @ params, features.offsets, 1.0)
        played = None if actions is None else features.offsets[:-1] + actions

        def pullback(cotangent: Floats) -> Floats:
            C = cotangent
            if played is not None:
                C = np.zeros_like(pi)
                C[played] = cotangent
            totals = np.add.reduceat(C, features.offsets[:-1])
            return features.values.T @ (C - pi * totals[features.owner])

        return np.log(pi if played is None else pi[played]), pullback

    def probabilities(self, params: Floats, features: ActionSets, sharpness: float = 1.0) -> Floats:
        return normalise(project(features.values, params[None], np.zeros(1))[:, 0], features.offsets, sharpness)

    def sample(self, params: Floats, features: ActionSets, uniforms: Floats) -> tuple[Ints, Floats]:
        return draw(self.probabilities(params, features), features.offsets, uniforms)
