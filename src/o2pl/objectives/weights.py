"""Importance weights w = π(a|x) / q and what clipping at α makes of them. Defined here and nowhere else.

Only the logged propensity q enters, never the policy that logged: a log of many loggers is one log.
"""

from __future__ import annotations

import numpy as np

from o2pl.compiled import compiled
from o2pl.protocols import Floats


def importance_weights(log_prob: Floats, propensities: Floats) -> Floats:
    """exp(log π - log q); a weight too large for a number is ∞, which clipping handles."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(log_prob - np.log(propensities)))


def policy_weights(likelihoods: Floats, propensities: Floats) -> Floats:
    """The importance weights of a policy that gives the logged actions these probabilities (densities). [n]"""
    with np.errstate(divide="ignore"):  # log 0 = -∞: a weight of 0
        return importance_weights(np.log(likelihoods), propensities)


@compiled
def clipped_moments(weights: Floats, residuals: Floats, alpha: float) -> tuple[float, float]:
    """R̂ = mean (min(w, α) - 1) e and σ̂² = mean (min(w, α) - 1)², in one pass. e = y - b, [n]"""
    n = len(weights)
    risk, variance = 0.0, 0.0
    for s in range(n):
        centred = min(weights[s], alpha) - 1.0
        risk += centred * residuals[s]
        variance += centred * centred
    return risk / n, variance / n


@compiled
def weight_cotangent(weights: Floats, residuals: Floats, alpha: float, slope: float) -> None:
    """In place, w becomes ∂(R̂ + Φ)/∂ log π_s = 1{w < α} w (e + 2 Φ'(σ̂²) (w - 1)) / n: no gradient where clipped. [n]"""
    n = len(weights)
    for s in range(n):
        w = weights[s]
        weights[s] = w * (residuals[s] + 2.0 * slope * (w - 1.0)) / n if w < alpha else 0.0
