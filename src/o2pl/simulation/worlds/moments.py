"""Means of simple functions of a Gaussian, in closed form or by quadrature."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from o2pl.protocols import Array, Floats
from o2pl.special import ndtr

_CHUNK = 4096  # rows per quadrature block: bounds the memory


def moment_normal_density(z: Any) -> Any:
    return np.exp(-0.5 * np.square(z)) / math.sqrt(2 * math.pi)


def moment_normal_probability(z: Any) -> Any:
    return ndtr(z)


def moment_of_excess(mean: Any, scale: float, over: Any) -> Any:
    """Return E (Z - over)₊ for Z ~ N(mean, scale²); scale 0 is a fixed Z."""
    if scale == 0:
        return np.maximum(mean - over, 0.0)
    z = (mean - over) / scale
    return scale * (z * moment_normal_probability(z) + moment_normal_density(z))


def moment_of_clipped(mean: object, scale: float, low: float, high: float) -> Any:
    """Return E clip(Z, low, high) = low + E (Z - low)₊ - E (Z - high)₊ for Z ~ N(mean, scale²); high may be ∞."""
    above = 0.0 if math.isinf(high) else moment_of_excess(mean, scale, high)
    return low + moment_of_excess(mean, scale, low) - above


def moment_of_capped_square(mean: Any, scale: float, cap: float) -> Any:
    """Return E min(Z², cap) for Z ~ N(mean, scale²); the cap may be infinite, the scale positive."""
    if math.isinf(cap):
        return np.square(mean) + scale**2
    c = math.sqrt(cap)
    lower, upper = (-c - mean) / scale, (c - mean) / scale
    inside = moment_normal_probability(upper) - moment_normal_probability(lower)
    below, above = moment_normal_density(lower), moment_normal_density(upper)
    square_inside = (
        (np.square(mean) + scale**2) * inside
        + 2 * mean * scale * (below - above)
        + scale**2 * (lower * below - upper * above)
    )
    return square_inside + cap * (1 - inside)


def moment_of_function(
    function: Callable[[Array, Floats], Floats], index: Array, means: Floats, scale: float
) -> Floats:
    """Return E function(index, A) for A ~ N(means, scale²), row by row, [n]; the function takes [m, 1] and [m, nodes].

    Trapezoid rule on ±8.5 standard deviations: for smooth functions the error decreases faster than any power.
    """
    if scale == 0:
        return function(index, means)
    nodes = np.linspace(-8.5, 8.5, 257)
    weights = moment_normal_density(nodes) * (nodes[1] - nodes[0])
    averages = np.empty(len(means))
    for first in range(0, len(means), _CHUNK):
        rows = slice(first, first + _CHUNK)
        averages[rows] = function(index[rows, None], means[rows, None] + scale * nodes) @ weights
    return averages
