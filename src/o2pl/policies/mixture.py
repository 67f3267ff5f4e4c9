"""Exploration that never stops, as part of the policy class: any discrete policy mixed with the uniform one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from o2pl.policies.sampling import log_softmax, mix_uniform
from o2pl.protocols import Array, DiscretePolicy, Floats, Pullback
from o2pl.rows import ActionSets
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class UniformMixture:
    """(1 - ε) π(a|x) + ε/K, with exact propensities; every action keeps at least ε/K."""

    policy: DiscretePolicy
    epsilon: float = 0.05
    continuous = False

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise ValueError(f"epsilon: found {self.epsilon}, expected a probability in [0, 1]")

    @property
    def n_actions(self) -> int:
        return int(self.policy.n_actions)  # type: ignore[attr-defined]  # of policies with a fixed number of actions

    def n_params(self, n_features: int) -> int:
        return self.policy.n_params(n_features)

    def init(self, n_features: int, generator: np.random.Generator | None = None) -> Floats:
        return self.policy.init(n_features, generator)

    def forward(self, params: Floats, features: Any, actions: Array) -> tuple[Floats, Pullback]:
        inner, inner_pullback = self.policy.forward(params, features, actions)
        mixed, own, pi, totals = self._mixed(inner, features)

        def pullback(cotangent: Floats) -> Floats:
            c = cotangent * own / mixed  # ∂ log mixed / ∂ log π = own / mixed; ∂ log π / ∂ scores = 1{a = b} - π_b
            return inner_pullback(c - pi * totals(c))

        return _log(mixed), pullback

    def scores(self, params: Floats, features: Any) -> Floats:
        return _log(self._mixed(self.policy.scores(params, features), features)[0])

    def _mixed(self, inner: Floats, features: Any) -> tuple[Floats, Floats, Floats, Any]:
        """Mixed probabilities, the policy's part of them, its own probabilities, and sums over the actions of a row."""
        if not isinstance(features, ActionSets):
            pi, choices = np.exp(log_softmax(inner)), inner.shape[1]
            return self._of(pi, choices, lambda c: c.sum(axis=1, keepdims=True))
        offsets, sizes = features.offsets, features.sizes
        pi = np.exp(log_softmax(inner, offsets))
        return self._of(pi, np.repeat(sizes, sizes), lambda c: np.repeat(np.add.reduceat(c, offsets[:-1]), sizes))

    def _of(self, pi: Floats, choices: Any, totals: Any) -> tuple[Floats, Floats, Floats, Any]:
        return mix_uniform(pi, self.epsilon, 1 / choices), (1 - self.epsilon) * pi, pi, totals


def _log(probabilities: Floats) -> Floats:
    with np.errstate(divide="ignore"):  # with ε = 0 an action may be impossible
        return np.log(probabilities)
