"""The objective O2PL minimises: clipped centred risk, plus the penalty for what the log does not support."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from o2pl.objectives.control import RidgeControl
from o2pl.objectives.weights import clipped_moments, importance_weights, weight_cotangent
from o2pl.protocols import Array, Floats, Penalty, Policy, ValueAndGradient


class Moments(NamedTuple):
    risk: float
    variance: float


@dataclass(frozen=True)
class Pessimistic:
    """V = R̂ + Φ(σ̂²) of the log-probabilities that a policy gives to a log's actions.

    `baseline` is b of (min(w, α) - 1)(y - b), 0 in the paper; it may differ from row to row, [n], as long as it depends
    neither on the row's action nor on its loss, since E[w - 1 | x] = 0. With a `control` variate m(x, a) in its place,
    V gains mean Σ_a π(a|x) (m(x, a) - b), wants all K log-probabilities of a row, and returns a cotangent [n, K].
    """

    actions: Array
    losses: Floats
    propensities: Floats
    alpha: float
    penalty: Penalty
    baseline: float | Floats = 0.0
    control: RidgeControl | None = None

    @property
    def residuals(self) -> Floats:
        return self.losses - (self.baseline if self.control is None else self.control.played)

    def moments(self, log_prob: Floats) -> Moments:
        """R̂ (without the control's own part) and σ̂²."""
        return Moments(*clipped_moments(self._weights(log_prob), self.residuals, self.alpha))

    def _weights(self, log_prob: Floats) -> Floats:
        played = log_prob if self.control is None else log_prob[np.arange(len(self.actions)), self.actions]
        return importance_weights(played.astype(np.float64), self.propensities)

    def __call__(self, log_prob: Floats) -> tuple[float, Floats]:
        """V and ∂V/∂ log π, in one pass over the weights."""
        weights, residuals = self._weights(log_prob), self.residuals
        risk, variance = clipped_moments(weights, residuals, self.alpha)
        pessimism, slope = self.penalty(variance)
        cotangent = weights
        weight_cotangent(cotangent, residuals, self.alpha, slope, len(weights))
        if self.control is None:
            return risk + pessimism, cotangent
        n = len(weights)
        pulled = np.exp(log_prob.astype(np.float64)) * (self.control.all_actions - self.baseline) / n  # [n, K]
        value = risk + float(pulled.sum()) + pessimism
        pulled[np.arange(n), self.actions] += cotangent
        return value, pulled

    def with_penalty(self, penalty: Penalty) -> Pessimistic:
        return replace(self, penalty=penalty)


def policy_value(policy: Policy, features: Any, objective: Pessimistic, l2: float = 0.0) -> ValueAndGradient:
    """θ -> V(π_θ) + l2 |θ|² / (2n) and its gradient: the policy's pullback of the objective's cotangent."""
    actions = objective.actions if objective.control is None else None
    shrink = l2 / len(objective.actions)

    def value_and_gradient(params: Floats) -> tuple[float, Floats]:
        log_prob, pullback = policy.forward(params, features, actions)
        if objective.control is not None and actions is None and log_prob.ndim == 1:
            raise TypeError("a control variate needs a policy with the same actions in every row")
        value, cotangent = objective(log_prob)
        return value + 0.5 * shrink * float(params @ params), pullback(cotangent) + shrink * params

    return value_and_gradient
