"""Functions of the normal, gamma, binomial and Student's distribution, and Lambert's W: what o2pl needs of them.

Those of arrays are compiled: see `native/core/special.hpp`. They take numbers or arrays of any shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from o2pl import _core

if TYPE_CHECKING:
    from o2pl.protocols import Floats

Doubles = NDArray[np.float64]

_MANY = 300  # degrees of freedom
_STUDENT = (  # polynomials in z², times z, by powers of 1/ν
    ((1, 1), 4),
    ((5, 16, 3), 96),
    ((3, 19, 17, -15), 384),
    ((79, 776, 1482, -1920, -945), 92160),
)


def expit(x: ArrayLike) -> Any:
    """Return 1 / (1 + e^-x)."""
    return _special_of_each(_core.expit, x)


def ndtr(x: ArrayLike) -> Any:
    """Return Φ(x), the distribution function of the normal distribution."""
    return _special_of_each(_core.ndtr, x)


def log_ndtr(x: ArrayLike) -> Any:
    """Return log Φ(x), also far in the left tail."""
    return _special_of_each(_core.log_ndtr, x)


def ndtri(p: ArrayLike) -> Any:
    """Return Φ⁻¹(p)."""
    return _special_of_each(_core.ndtri, p)


def ndtri_exp(y: ArrayLike) -> Any:
    """Return Φ⁻¹(e^y), also where e^y is no number."""
    return _special_of_each(_core.ndtri_exp, y)


def gammainc(a: float, x: ArrayLike) -> Any:
    """Return the regularised lower incomplete gamma function P(a, x): that a gamma variable of shape a is below x."""
    return _special_of_each(partial(_core.gammainc, a), x)


def gammaincc(a: float, x: ArrayLike) -> Any:
    """Return 1 - P(a, x), with a small relative error."""
    return _special_of_each(partial(_core.gammaincc, a), x)


def _special_of_each(function: Callable[[Doubles], Doubles], values: ArrayLike) -> Floats:
    values = np.asarray(values, np.float64)
    return function(values.reshape(-1)).reshape(values.shape)[()]


def binomial_tail(hits: int, trials: int, probability: float) -> float:
    """Return P(B ≥ hits) for B ~ Binomial(trials, probability)."""
    if hits <= 0:
        return 1.0
    if hits > trials or probability == 0:
        return 0.0
    if probability == 1:
        return 1.0
    odds, k = math.log(probability) - math.log1p(-probability), np.arange(hits, trials)
    steps = np.log((trials - k) / (k + 1)) + odds  # log P(B = k + 1) - log P(B = k)
    ways = math.lgamma(trials + 1) - math.lgamma(hits + 1) - math.lgamma(trials - hits + 1)
    first = ways + hits * math.log(probability) + (trials - hits) * math.log1p(-probability)
    return min(1.0, float(np.exp(first + np.append(0.0, np.cumsum(steps))).sum()))


def student_quantile(probability: float, freedom: int) -> float:
    """Return the t with P(T ≤ t) = probability ≥ ½, for an integer number of degrees of freedom ν.

    P(|T| ≤ √ν tan θ) is a finite sum of powers of cos θ; θ is found by bisection. For ν > 300 the expansion in 1/ν
    around the normal quantile has an error below 1e-8.
    """
    if freedom > _MANY:
        z, v = float(ndtri(probability)), float(freedom)
        terms = [z * float(np.polyval(powers, z * z)) / divisor for powers, divisor in _STUDENT]
        return z + sum(term / v ** (k + 1) for k, term in enumerate(terms))
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        theta = (low + high) / 2
        low, high = (theta, high) if _student_within(theta, freedom) < 2 * probability - 1 else (low, theta)
    return math.sqrt(freedom) * math.tan(low)


def _student_within(theta: float, freedom: int) -> float:
    """Return P(|T| ≤ √ν tan θ): sin θ (1 + ½ cos² θ + (1·3)/(2·4) cos⁴ θ + …) for even ν, similar for odd ν."""
    odd, square = freedom % 2, math.cos(theta) ** 2
    term = math.cos(theta) if odd else 1.0
    total = 0.0
    for j in range(1, freedom // 2 + 1):
        total += term
        term *= square * (2 * j if odd else 2 * j - 1) / (2 * j + 1 if odd else 2 * j)
    total *= math.sin(theta)
    return 2 / math.pi * (theta + total) if odd else total


def lambert_w(x: float) -> float:
    """Return the w > 0 with w e^w = x > 0, by Newton's method on log w + w = log x."""
    w = math.log1p(x)
    for _ in range(60):
        step = (w + math.log(w / x)) / (1 + 1 / w)
        w -= step
        if abs(step) <= 1e-15 * w:
            break
    return w
