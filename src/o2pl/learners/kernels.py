"""The linear softmax's objective and gradient as one compiled call, put together from the parts that define them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from o2pl.compiled import compiled
from o2pl.objectives.penalty import Phi, phi
from o2pl.objectives.pessimistic import Pessimistic
from o2pl.objectives.weights import clipped_moments, weight_cotangent
from o2pl.oracles.lbfgs import LBFGS
from o2pl.oracles.quasi_newton import (
    PATIENCE,
    ROUNDING,
    STANDSTILL,
    TRIALS,
    Curvature,
    downhill,
    low_enough,
    remember,
    shrinkage,
    straight_down,
)
from o2pl.policies.softmax import played_softmax, pull_played_to_logits
from o2pl.protocols import Floats, Ints, Solution

# What of the objective's arguments stays as it is while one log is solved: features to `room`.
Fixed = tuple[
    Floats, Ints, Floats, Floats, Floats, Any, tuple[float, float, float, float, float], float, Floats, Floats
]


@compiled
def softmax_objective(
    W: Floats,
    features: Floats,
    actions: Ints,
    residuals: Floats,
    inverse_propensities: Floats,
    control: Floats,
    alpha: Any,
    penalty: tuple[float, float, float, float, float],
    shrink: float,
    P: Floats,
    room: Floats,
    gradient: Floats,
) -> float:
    """V(π_W) + shrink |W|²/2; the gradient goes to `gradient`. W [K, d], features [d, n], control [K, n] or empty.

    penalty: (α or 0, t, log 1/δ, p, scale). actions are int32, as wide as the floats they are compared beside.
    P [K, n] and room [3, n] are to work in.
    """
    K, n = P.shape
    weights = room[2]
    played_softmax(W, features, actions, P, weights, room)
    for r in range(n):
        weights[r] *= inverse_propensities[r]
    risk, variance = clipped_moments(weights, residuals, alpha)
    pessimism, slope = phi(variance, penalty[0], penalty[1], penalty[2], penalty[3], penalty[4])
    weight_cotangent(weights, residuals, alpha, slope)
    modelled = 0.0
    if control.size:
        modelled = _pull_with_control(P, actions, weights, control, room[0])
    else:
        pull_played_to_logits(P, actions, weights)
    np.dot(P, features.T, gradient)
    size = 0.0
    for k in range(K):
        for i in range(W.shape[1]):
            gradient[k, i] += shrink * W[k, i]
            size += W[k, i] * W[k, i]
    return float(risk + pessimism + modelled + 0.5 * shrink * size)


@compiled
def _pull_with_control(P: Floats, actions: Ints, cotangent: Floats, control: Floats, mean: Floats) -> float:
    """mean_s Σ_a π m; P, which holds π, becomes c_s (1{a = a_s} - π) + π (m - Σ_a π m) / n: ∂/∂logits. [K, n]"""
    K, n = P.shape
    for r in range(n):
        mean[r] = 0
    for k in range(K):
        for r in range(n):
            mean[r] += P[k, r] * control[k, r]
    share = np.float32(1 / n)
    for k in range(K):
        for r in range(n):
            hit = cotangent[r] if actions[r] == k else np.float32(0)
            P[k, r] = hit + P[k, r] * ((control[k, r] - mean[r]) * share - cotangent[r])
    total = 0.0
    for r in range(n):
        total += mean[r]
    return float(total / n)


@compiled
def descend_softmax(
    params: Floats,
    shape: tuple[int, int],
    fixed: Fixed,
    iterations: int,
    tolerance: float,
    steps: Floats,
    changes: Floats,
    inner: Floats,
    at: Ints,
) -> tuple[float, bool, int]:
    """L-BFGS on `softmax_objective`, in place on params [K d]; value, converged, evaluations."""
    W, gradient_of_W = np.empty(shape, np.float32), np.empty(shape, np.float32)
    gradient, new_gradient, direction = np.empty_like(params), np.empty_like(params), np.empty_like(params)
    value = _evaluate(params, W, fixed, gradient_of_W, gradient)
    evaluations, idle = 1, 0
    for _ in range(iterations):
        if np.abs(gradient).max() <= tolerance or idle == STANDSTILL:
            break
        length, slope = downhill(gradient, steps, changes, inner, at, direction)
        there, found = params, value
        for trial in range(TRIALS):
            there = params + length * direction
            found = _evaluate(there, W, fixed, gradient_of_W, new_gradient)
            evaluations += 1
            if low_enough(found, value, length * slope):
                break
            length *= shrinkage(found, value, length * slope)
            if trial == PATIENCE and at[1]:
                length, slope = straight_down(gradient, at, direction)
        if not low_enough(found, value, length * slope):
            return value, False, evaluations
        remember(params, there, gradient, new_gradient, steps, changes, inner, at)
        idle = idle + 1 if value - found <= ROUNDING * abs(value) else 0
        params[:] = there
        gradient, new_gradient = new_gradient, gradient
        value = found
    return value, bool(np.abs(gradient).max() <= tolerance), evaluations


@compiled
def _evaluate(params: Floats, W: Floats, fixed: Fixed, gradient_of_W: Floats, gradient: Floats) -> float:
    K, d = W.shape
    for k in range(K):
        for i in range(d):
            W[k, i] = params[k * d + i]
    value = softmax_objective(W, *fixed, gradient_of_W)
    for k in range(K):
        for i in range(d):
            gradient[k * d + i] = gradient_of_W[k, i]
    return value


class SoftmaxValue:
    """`policy_value` for a linear softmax, compiled: a function of the flat parameters for an oracle."""

    def __init__(self, features: Floats, n_actions: int, objective: Pessimistic, l2: float) -> None:
        n, d = features.shape
        penalty: Any = objective.penalty
        assert isinstance(penalty, Phi)
        control = np.empty((0, 0), np.float32)
        if objective.control is not None:
            control = np.ascontiguousarray((objective.control.all_actions - objective.baseline).T, np.float32)
        self._fixed = (
            np.ascontiguousarray(features.T, np.float32),
            objective.actions.astype(np.int32),
            objective.residuals.astype(np.float32),
            (1 / objective.propensities).astype(np.float32),
            control,
            np.float32(objective.alpha),
            phi_numbers(penalty),
            l2 / n,
            np.empty((n_actions, n), np.float32),
            np.empty((3, n), np.float32),
        )
        self._shape = (n_actions, d)

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        gradient = np.empty(self._shape, np.float32)
        value = softmax_objective(params.reshape(self._shape).astype(np.float32), *self._fixed, gradient)
        return value, gradient.reshape(-1).astype(np.float64)

    def descend(self, start: Floats, oracle: LBFGS, curvature: Curvature) -> Solution:
        """Minimise, within the oracle's iterations and tolerance."""
        params = start.copy()
        pairs = (curvature.steps, curvature.changes, curvature.inner, curvature.at)
        value, converged, evaluations = descend_softmax(
            params, self._shape, self._fixed, oracle.iterations, oracle.tolerance, *pairs
        )
        return Solution(params, value, converged, evaluations)


def phi_numbers(penalty: Phi) -> tuple[float, float, float, float, float]:
    alpha = penalty.alpha if math.isfinite(penalty.alpha) else 0.0
    return alpha, float(penalty.t), penalty.log_inv_delta, float(penalty.p), float(penalty.scale)
