"""The linear softmax in `LinearValue`."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.compiled import compiled_for_threads
from o2pl.compiled.exponential import exp
from o2pl.kernels.linear import Features, LinearValue, block_bounds, inverse_propensities, pessimistic_combine
from o2pl.objectives.pessimistic import MODELLED, RISK, VARIANCE, PessimisticLog
from o2pl.objectives.weights import clipped_sums, split_cotangent
from o2pl.protocols import Floats, Ints

_NO_CONTROL = np.empty((0, 0), np.float32)


def softmax_value(log: PessimisticLog, features: Features, width: int, n_actions: int) -> LinearValue:
    """Return `PolicyValue` of `Softmax`."""
    bounds, shape = block_bounds(len(log.actions), width), (n_actions, width)
    combine = pessimistic_combine(log, n_actions * width)
    return LinearValue(bounds, features, softmax_rows(log), shape, combine, parts=2, sums=3)


def softmax_rows(log: PessimisticLog) -> Any:
    """Return the kernel for this log, in the form that `LinearValue` calls."""
    actions, residuals = log.actions.astype(np.int32), np.empty(len(log.actions), np.float32)
    np.subtract(log.losses, log.subtracted, out=residuals, casting="same_kind")  # no copy in double precision
    inverse, alpha = inverse_propensities(log, np.float32), np.float32(log.alpha)
    control = _NO_CONTROL if log.control is None else log.control.by_action
    baseline = np.float32(0 if log.control is None else log.baseline)

    def partial(scores: Floats, rows: slice, params: Floats, cotangents: Floats, sums: Floats) -> None:
        softmax_partial(
            scores,
            actions[rows],
            residuals[rows],
            inverse[rows],
            alpha,
            control,
            rows.start,
            baseline,
            cotangents,
            sums,
        )

    return partial


@compiled_for_threads
def softmax_partial(
    P: Floats, actions: Ints, residuals: Floats, inverse: Floats, alpha: Any, control: Floats, start: int,
    baseline: Any, D: Floats, sums: Floats,
) -> None:  # fmt: skip
    """Compute cotangents D [2K, n] from scores P [K, n], which are overwritten; loops run over the rows.

    ∂/∂scores of c_s log π(a_s|x_s) is c_s (1{a = a_s} - π); of the control's part Σ_a π (m - b) it is
    π (m - b - Σ_a π (m - b)). control [K, ≥ n], with these rows from `start` on, or
    empty. A comparison with the action vectorises, an indexed load does not.
    """
    K, n = P.shape
    weights, mean = np.empty(n, P.dtype), np.zeros(n, P.dtype)
    of_risk, of_variance = np.empty(n, P.dtype), np.empty(n, P.dtype)
    softmax_weights(P, actions, inverse, weights)
    risk, variance = clipped_sums(weights, residuals, alpha)
    sums[RISK] += risk
    sums[VARIANCE] += variance
    split_cotangent(weights, residuals, alpha, 1, of_risk, of_variance)
    if control.size:  # mean of the control under the policy
        for k in range(K):
            for r in range(n):
                mean[r] += P[k, r] * (control[k, start + r] - baseline)
        modelled = 0.0
        for r in range(n):
            modelled += mean[r]
        sums[MODELLED] += modelled
    for k in range(K):
        for r in range(n):
            hit = of_risk[r] if actions[r] == k else np.float32(0)
            D[k, r] = hit - P[k, r] * (of_risk[r] + mean[r])
            hit = of_variance[r] if actions[r] == k else np.float32(0)
            D[K + k, r] = hit - P[k, r] * of_variance[r]
        if control.size:
            for r in range(n):
                D[k, r] += P[k, r] * (control[k, start + r] - baseline)


@compiled_for_threads
def softmax_weights(P: Floats, actions: Ints, inverse: Any, weights: Floats) -> None:
    """Replace scores P [K, n] by probabilities; weights = π(a_s|x_s) / q_s. Loops run over the rows."""
    K, n = P.shape
    top, scale = np.empty(n, P.dtype), np.zeros(n, P.dtype)
    for r in range(n):
        top[r], weights[r] = P[0, r], 0
    for k in range(1, K):
        for r in range(n):
            top[r] = max(top[r], P[k, r])
    for k in range(K):
        for r in range(n):
            P[k, r] = exp(P[k, r] - top[r])
            scale[r] += P[k, r]
    for r in range(n):
        scale[r] = 1 / scale[r]
    for k in range(K):
        for r in range(n):
            P[k, r] *= scale[r]
            weights[r] += P[k, r] if actions[r] == k else np.float32(0)  # a comparison vectorises, an indexed load not
    for r in range(n):
        weights[r] *= inverse[r]
