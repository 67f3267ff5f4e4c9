"""Importance weights w = π(a|x) / q and their clipping at α. This is the only definition.

Only the logged propensity q enters, never the logging policy: a log of many loggers is one log.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from o2pl.protocols import Floats

_AT_A_TIME = 2**13  # weights per block; their squares stay in the cache


def weight_of(likelihood: Any, propensity: Any) -> Any:
    """Return w = π(a|x) / q, for one row or for arrays."""
    return likelihood / propensity


def clip_weights(weights: Any, alpha: float) -> Any:
    """Return min(w, α), for one weight or an array."""
    return np.minimum(weights, alpha)


def importance_weights(log_prob: Floats, propensities: Floats) -> Floats:
    """Return exp(log π - log q); an overflowed weight is ∞, which clipping handles."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(log_prob - np.log(propensities)))


def policy_weights(likelihoods: Floats, propensities: Floats) -> Floats:
    """Return the importance weights of a policy with these probabilities (densities) of the logged actions. [n]"""
    with np.errstate(divide="ignore"):  # log 0 = -∞: a weight of 0
        return importance_weights(np.log(likelihoods), propensities)


def clipped_moments(weights: Floats, residuals: Floats, alpha: float) -> tuple[float, float]:
    """Return R̂ = mean (min(w, α) - 1) e and σ̂² = mean (min(w, α) - 1)². e = y - b, [n]"""
    risk, variance = clipped_sums(weights, residuals, alpha)
    return risk / len(weights), variance / len(weights)


def clipped_sums(weights: Floats, residuals: Floats, alpha: float) -> tuple[float, float]:
    """Return n R̂ and n σ̂²."""
    centred = clip_weights(weights, alpha) - 1
    return float(centred @ residuals), float(centred @ centred)


def split_cotangent(weights: Floats, residuals: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return c and c' such that c + Φ'(σ̂²) c' is n ∂(R̂ + Φ)/∂ log π_s: no gradient where w is clipped. [n], [n]

    c = 1{w < α} w e and c' = 2 · 1{w < α} w (w - 1); w may be infinite.
    """
    live = np.where(weights < alpha, weights, 0)
    return live * residuals, 2 * live * (live - 1)


def weight_cotangent(weights: Floats, residuals: Floats, alpha: float, slope: float, n: float) -> Floats:
    """Return ∂(R̂ + Φ)/∂ log π_s = 1{w < α} w (e + 2 Φ'(σ̂²) (w - 1)) / n for Φ'(σ̂²) = slope. [n]

    n is the length of the log; these rows may be a part of it.
    """
    of_losses, of_weights = split_cotangent(weights, residuals, alpha)
    return np.asarray((of_losses + slope * of_weights) / n)


def effective_sample_size(weights: Floats) -> float:
    """Return the effective sample size (Σ w)² / Σ w²; 0 if all weights are 0."""
    top = float(weights.max()) if len(weights) else 0.0
    if top == 0:
        return 0.0
    if math.isinf(top):
        return 1.0  # one infinite weight dominates
    total, squares = 0.0, 0.0
    for start in range(0, len(weights), _AT_A_TIME):
        scaled = weights[start : start + _AT_A_TIME] / top  # w² would overflow
        total, squares = total + float(scaled.sum()), squares + float(scaled @ scaled)
    return total**2 / squares
