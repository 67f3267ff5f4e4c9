"""Exploration that never stops: any discrete policy mixed with the uniform one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from o2pl.policies.sampling import draw, draw_rows
from o2pl.protocols import Array, Floats, Ints, Pullback
from o2pl.rows import ActionSets
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class UniformMixture:
    """(1 - ε) π(a|x) + ε/K, with exact propensities; every action keeps at least ε/K."""

    policy: Any  # a discrete policy
    epsilon: float = 0.05

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise ValueError(f"epsilon: found {self.epsilon}, expected a probability in [0, 1]")

    @property
    def n_actions(self) -> int:
        return int(self.policy.n_actions)

    def n_params(self, n_features: int) -> int:
        return int(self.policy.n_params(n_features))

    def init(self, n_features: int) -> Floats:
        return np.asarray(self.policy.init(n_features))

    def choices(self, features: Any, actions: Array | None = None) -> Any:
        return self.policy.choices(features, actions)

    def forward(self, params: Floats, features: Any, actions: Array | None = None) -> tuple[Floats, Pullback]:
        inner, inner_pullback = self.policy.forward(params, features, actions)
        own = (1 - self.epsilon) * np.exp(inner)
        mixed = own + self.epsilon / self.policy.choices(features, actions)

        def pullback(cotangent: Floats) -> Floats:
            return np.asarray(inner_pullback(cotangent * own / mixed))  # ∂ log mixed / ∂ log π = own / mixed

        return np.log(mixed), pullback

    def probabilities(self, params: Floats, features: Any, sharpness: float = 1.0) -> Floats:
        own = self.policy.probabilities(params, features, sharpness)
        return np.asarray(np.minimum((1 - self.epsilon) * own + self.epsilon / self.policy.choices(features), 1.0))

    def sample(self, params: Floats, features: Any, uniforms: Floats) -> tuple[Ints, Floats]:
        probabilities = self.probabilities(params, features)
        if isinstance(features, ActionSets):
            return draw(probabilities, features.offsets, uniforms)
        return draw_rows(probabilities, uniforms)
