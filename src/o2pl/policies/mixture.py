"""Permanent exploration as part of the policy class: a discrete policy mixed with the uniform policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from o2pl.data.contexts import as_contexts
from o2pl.policies.sampling import log_softmax, mix_uniform, pull_to_scores
from o2pl.protocols import Array, DiscretePolicy, Floats, Pullback
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class UniformMixture:
    """The policy (1 - ε) π(a|x) + ε/K, with exact propensities; every action has probability at least ε/K."""

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
        log_pi, mixed = self._mixed(inner, features)
        own = (1 - self.epsilon) * np.exp(log_pi)

        def pullback(cotangent: Floats) -> Floats:
            # ∂ log mixed / ∂ log π = own / mixed
            return inner_pullback(pull_to_scores(log_pi, cotangent * own / mixed, as_contexts(features).offsets))

        return _mixture_log(mixed), pullback

    def scores(self, params: Floats, features: Any) -> Floats:
        return _mixture_log(self._mixed(self.policy.scores(params, features), features)[1])

    def _mixed(self, inner: Floats, features: object) -> tuple[Floats, Floats]:
        """Return the inner policy's log probabilities, and the mixed probabilities."""
        sets = as_contexts(features)
        log_pi = log_softmax(inner, sets.offsets)
        choices = inner.shape[1] if sets.items is None else np.repeat(sets.sizes, sets.sizes)
        return log_pi, mix_uniform(np.exp(log_pi), self.epsilon, 1 / choices)


def _mixture_log(probabilities: Floats) -> Floats:
    with np.errstate(divide="ignore"):  # with ε = 0 an action may have probability 0
        return np.log(probabilities)
