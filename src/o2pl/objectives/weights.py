"""Importance weights w = π(a|x) / q and their clipping at α. This is the only definition.

Only the logged propensity q enters, never the logging policy: a log of many loggers is one log.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from o2pl.compiled import compiled, within_kernels
from o2pl.protocols import Floats

_AT_A_TIME = 2**13  # weights per block; their squares stay in the cache


def weight_of(likelihood: Any, propensity: Any) -> Any:
    """Return w = π(a|x) / q, for one row or for arrays."""
    return likelihood / propensity


def clip_weights(weights: Any, alpha: float) -> Any:
    """Return min(w, α), for one weight or an array; in kernels, for one weight at a time."""
    return np.minimum(weights, alpha)


def _clip_one(weights: Any, alpha: Any) -> Any:
    return min(weights, alpha)


@within_kernels(weight_of)
def _weight_in_kernels(likelihood: Any, propensity: Any) -> Any:
    return weight_of


@within_kernels(clip_weights)
def _clip_in_kernels(weights: Any, alpha: Any) -> Any:
    return _clip_one


def importance_weights(log_prob: Floats, propensities: Floats) -> Floats:
    """Return exp(log π - log q); an overflowed weight is ∞, which clipping handles."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(log_prob - np.log(propensities)))


def policy_weights(likelihoods: Floats, propensities: Floats) -> Floats:
    """Return the importance weights of a policy with these probabilities (densities) of the logged actions. [n]"""
    with np.errstate(divide="ignore"):  # log 0 = -∞: a weight of 0
        return importance_weights(np.log(likelihoods), propensities)


@compiled
def clipped_moments(weights: Floats, residuals: Floats, alpha: float) -> tuple[float, float]:
    """Return R̂ = mean (min(w, α) - 1) e and σ̂² = mean (min(w, α) - 1)², in one pass. e = y - b, [n]"""
    risk, variance = clipped_sums(weights, residuals, alpha)
    return risk / len(weights), variance / len(weights)


@compiled
def clipped_sums(weights: Floats, residuals: Floats, alpha: Any) -> tuple[float, float]:
    """Return n R̂ and n σ̂²."""
    risk, variance = 0.0, 0.0
    for s in range(len(weights)):
        centred = clip_weights(weights[s], alpha) - 1.0
        risk += centred * residuals[s]
        variance += centred * centred
    return risk, variance


@compiled
def weight_cotangent(weights: Floats, residuals: Floats, alpha: Any, slope: float, n: int) -> None:
    """Replace w in place by ∂(R̂ + Φ)/∂ log π_s = 1{w < α} w (e + 2 Φ'(σ̂²) (w - 1)) / n: no gradient where clipped.

    n is the length of the log; these rows may be a part of it.
    """
    one, share, steepness = weights.dtype.type(1), weights.dtype.type(1 / n), weights.dtype.type(slope)
    for s in range(len(weights)):
        of_loss, of_weight = _parts(weights[s], residuals[s], alpha, one)
        weights[s] = (of_loss + steepness * of_weight) * share


@compiled
def split_cotangent(
    weights: Floats, residuals: Floats, alpha: float, n: int, of_losses: Floats, of_weights: Floats
) -> None:
    """Like `weight_cotangent`, before Φ'(σ̂²) is known: the cotangent is of_losses + Φ' of_weights."""
    one, share = weights.dtype.type(1), weights.dtype.type(1 / n)
    for s in range(len(weights)):
        of_loss, of_weight = _parts(weights[s], residuals[s], alpha, one)
        of_losses[s], of_weights[s] = of_loss * share, of_weight * share


@compiled
def _parts(w: Any, residual: Any, alpha: Any, one: Any) -> tuple[Any, Any]:
    """Return 1{w < α} w e and 2 · 1{w < α} w (w - 1), in the precision of the arguments; w may be ∞."""
    live = w if w < alpha else one - one
    away = live * (w - one) if w < alpha else one - one
    return live * residual, away + away


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
