"""Adam steps of a linear softmax on a window of rows, in one call: the paper's replay."""

from __future__ import annotations

import numpy as np

from o2pl.compiled import compiled
from o2pl.features.plan import FeaturePlan, planned_features
from o2pl.interactions import Interactions
from o2pl.kernels.softmax import softmax_weights
from o2pl.objectives.penalty import phi
from o2pl.objectives.pessimistic import Pessimistic
from o2pl.objectives.terms import L2, baseline_at, clip_at, penalty_at
from o2pl.objectives.weights import clipped_sums, weight_cotangent
from o2pl.oracles.adam import Adam, adam_step
from o2pl.policies.softmax import Softmax
from o2pl.protocols import Array, Floats, Ints, Policy, State


def adam_on_a_window(
    policy: Policy, objective: Pessimistic, plan: FeaturePlan | None, oracle: Adam, rows: Interactions, params: Floats,
    kept: State,
) -> tuple[Floats, State] | None:  # fmt: skip
    """Return new parameters and moments, like `oracle.step`; None if the parts are not supported."""
    if type(policy) is not Softmax or plan is None:
        return None
    new: dict[str, Array] = {name: array.copy() for name, array in kept.items()}
    params = params.copy()
    adam_steps(
        planned_features(plan, rows.contexts), rows.actions, rows.losses, rows.propensities, policy.n_actions,
        objective.numbers, params, new["first"], new["second"], new["steps"], oracle.steps, oracle.step_size,
    )  # fmt: skip
    return params, new


@compiled
def adam_steps(
    X: Floats, actions: Ints, losses: Floats, propensities: Floats, K: int, numbers: Floats,
    params: Floats, first: Floats, second: Floats, count: Ints, steps: int, step_size: float,
) -> None:  # fmt: skip
    """Update params and both moments [K d] in place. X [n, d]"""
    n, d = X.shape
    total = 0.0
    for r in range(n):
        total += losses[r]
    baseline = baseline_at(numbers, total, float(n))
    residuals, inverse = np.empty(n, np.float32), np.empty(n, np.float32)
    for r in range(n):
        residuals[r], inverse[r] = losses[r] - baseline, min(1 / propensities[r], 3e38)
    alpha, penalty, shrink = np.float32(clip_at(numbers, float(n))), penalty_at(numbers, float(n)), numbers[L2] / n
    W, G = np.empty((K, d), np.float32), np.empty((K, d), np.float32)
    P, gradient, weights = np.empty((K, n), np.float32), np.empty(K * d), np.empty(n, np.float32)
    for _ in range(steps):
        for k in range(K):
            for i in range(d):
                W[k, i] = params[k * d + i]
        np.dot(W, X.T, P)
        softmax_weights(P, actions, inverse, weights)
        variance = clipped_sums(weights, residuals, alpha)[1] / n
        weight_cotangent(weights, residuals, alpha, phi(variance, penalty)[1], n)
        for k in range(K):  # ∂/∂scores of c_s log π(a_s|x_s): c_s (1{a = a_s} - π)
            for r in range(n):
                P[k, r] = (weights[r] if actions[r] == k else np.float32(0)) - weights[r] * P[k, r]
        np.dot(P, X, G)
        for k in range(K):
            for i in range(d):
                gradient[k * d + i] = G[k, i] + shrink * params[k * d + i]
        count[0] += 1
        adam_step(params, gradient, first, second, count[0], step_size)
