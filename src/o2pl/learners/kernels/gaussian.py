"""The Gaussian policy's objective and gradient as one compiled call, in one pass over the log.

In double precision: with a small scale, what single precision loses of a mean is much of a log-density.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from o2pl.compiled import compiled, exp_any
from o2pl.learners.kernels.one_pass import block_bounds, combine, gather, largest, packed, put_together
from o2pl.learners.kernels.softmax import phi_numbers
from o2pl.objectives.penalty import Phi
from o2pl.objectives.pessimistic import Pessimistic
from o2pl.objectives.weights import clipped_sums, split_cotangent
from o2pl.policies.gaussian import LOG_SQRT_2PI, Gaussian
from o2pl.protocols import Floats, Ints


@compiled
def gaussian_objective(
    params: Floats,
    scale: float,
    features: Floats,
    places: Ints,
    bounds: Ints,
    centred: Floats,
    residuals: Floats,
    log_propensities: Floats,
    alpha: float,
    penalty: tuple[float, float, float, float, float],
    shrink: float,
    room: Floats,
    sums: Floats,
    gradient: Floats,
) -> float:
    """V(π_θ) + shrink |θ|²/2; the gradient goes to `gradient`. params, gradient [D]; features, places as `packed`.

    scale: that of the policy; 0 where it is the exponential of the last parameter. centred: actions less the policy's
    centre, [n]. room [4, rows of the largest block] and sums [2, D] are to work in.
    """
    D, n = len(params), len(centred)
    d = D if scale > 0 else D - 1
    deviation = scale if scale > 0 else math.exp(params[d])
    inverse, constant = 1 / deviation, math.log(deviation) + LOG_SQRT_2PI
    for i in range(D):
        sums[0, i], sums[1, i] = 0.0, 0.0
    risk, variance = 0.0, 0.0
    for b in range(len(places) - 1):
        first, last = bounds[b], bounds[b + 1]
        m, width = last - first, places[b + 1] - places[b]
        block = features[d * places[b] : d * places[b + 1]].reshape(d, width)
        z, weights, of_losses, of_weights = room[0, :width], room[1, :m], room[2, :width], room[3, :width]
        combine(params[:d], block, z)
        for r in range(m):
            z[r] = (centred[first + r] - z[r]) * inverse
            weights[r] = exp_any(-0.5 * z[r] * z[r] - constant - log_propensities[first + r])
        more = clipped_sums(weights, residuals[first:last], alpha)
        risk += more[0]
        variance += more[1]
        split_cotangent(weights, residuals[first:last], alpha, 1, of_losses[:m], of_weights[:m])
        if scale <= 0:  # ∂ log π / ∂ log scale = z² - 1
            a, c = 0.0, 0.0
            for r in range(m):
                a += of_losses[r] * (z[r] * z[r] - 1)
                c += of_weights[r] * (z[r] * z[r] - 1)
            sums[0, d] += a
            sums[1, d] += c
        for r in range(m):  # ∂ log π / ∂ mean = z / scale
            of_losses[r] *= z[r] * inverse
            of_weights[r] *= z[r] * inverse
        for r in range(m, width):
            of_losses[r], of_weights[r] = 0.0, 0.0
        gather(block, of_losses, of_weights, sums)
    return put_together(params, risk, variance, n, penalty, shrink, sums, gradient)


class GaussianValue:
    """`policy_value` for `Gaussian`, compiled: a function of the flat parameters for an oracle."""

    def __init__(self, policy: Gaussian, features: Floats, objective: Pessimistic, l2: float) -> None:
        n, d = features.shape
        bounds = block_bounds(n)
        blocks, places = packed(features, bounds, features.dtype)
        penalty: Any = objective.penalty
        assert isinstance(penalty, Phi)
        self._fixed = (
            0.0 if policy.learn_scale else float(policy.scale),
            blocks,
            places,
            bounds,
            objective.actions - policy.centre,
            objective.residuals,
            np.log(objective.propensities),
            float(objective.alpha),
            phi_numbers(penalty),
            l2 / n,
            np.zeros((4, largest(places))),
            np.empty((2, policy.n_params(d))),
        )

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        gradient = np.empty_like(params)
        return gaussian_objective(params, *self._fixed, gradient), gradient
