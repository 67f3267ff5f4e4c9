"""The Gaussian policy in `LinearValue`.

In double precision: with a small scale, rounding a mean to single precision changes the log density a lot.
"""

from __future__ import annotations

import math

import numpy as np

from o2pl.compiled import compiled
from o2pl.compiled.exponential import exp_any
from o2pl.kernels.linear import Features, LinearValue, block_bounds, pessimistic_combine
from o2pl.objectives.pessimistic import RISK, VARIANCE, PessimisticLog
from o2pl.objectives.weights import clipped_sums, split_cotangent
from o2pl.policies.gaussian import LOG_SQRT_2PI, Gaussian
from o2pl.protocols import Floats


def gaussian_value(log: PessimisticLog, features: Features, width: int, policy: Gaussian) -> LinearValue:
    """Return `PolicyValue` of `Gaussian`."""
    centred, log_propensities, residuals = log.actions - policy.centre, np.log(log.propensities), log.residuals

    def partial(scores: Floats, rows: slice, params: Floats, cotangents: Floats, sums: Floats) -> None:
        _, scale = policy.split(params)
        gaussian_partial(
            scores[0], centred[rows], residuals[rows], log_propensities[rows], log.alpha, scale, cotangents, sums
        )

    bounds, sums = block_bounds(len(log.actions), width), 3 + 2 * policy.learn_scale
    combine = pessimistic_combine(log, width)
    return LinearValue(bounds, features, partial, (1, width), combine, parts=2, sums=sums, dtype=np.float64)


@compiled
def gaussian_partial(
    means: Floats, centred: Floats, residuals: Floats, log_propensities: Floats, alpha: float, scale: float, D: Floats,
    sums: Floats,
) -> None:  # fmt: skip
    """Compute cotangents D [2, n] from means minus centre, which are overwritten. Learned scale: two more sums."""
    n, constant = len(means), math.log(scale) + LOG_SQRT_2PI
    z, weights = means, np.empty(n)
    for r in range(n):
        z[r] = (centred[r] - means[r]) / scale
        weights[r] = exp_any(-0.5 * z[r] * z[r] - constant - log_propensities[r])
    risk, variance = clipped_sums(weights, residuals, alpha)
    sums[RISK] += risk
    sums[VARIANCE] += variance
    split_cotangent(weights, residuals, alpha, 1, D[0], D[1])
    if len(sums) > 3:  # ∂ log π / ∂ log scale = z² - 1
        for part in range(2):
            total = 0.0
            for r in range(n):
                total += D[part, r] * (z[r] * z[r] - 1)
            sums[3 + part] += total
    for part in range(2):
        for r in range(n):  # ∂ log π / ∂ mean = z / scale
            D[part, r] *= z[r] / scale
