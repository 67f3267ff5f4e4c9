"""Rows in blocks that stay in the first-level cache, feature-major: what the fused objectives walk over.

The penalty's slope is known only after the last row. ∂V/∂log π is affine in it, c⁰ + Φ'(σ̂²) c¹, so one pass gathers
Σ c⁰ ∇log π and Σ c¹ ∇log π, and the end puts them together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.compiled import compiled
from o2pl.objectives.penalty import phi
from o2pl.protocols import Array, Floats, Ints

ROWS = 256  # of a block: with 20 features in single precision 20 KiB
STEP = 64  # blocks are filled up with zeros to a multiple of it: loops leave no remainder that does not vectorise


def block_bounds(n: int) -> Ints:
    """The bounds of blocks of `ROWS` rows, the last one shorter."""
    return np.minimum(np.arange(0, n + ROWS, ROWS), n)


def packed(rows: Floats, bounds: Ints, dtype: Any) -> tuple[Floats, Ints]:
    """Rows between the bounds as blocks, flat, each feature-major and filled up; and where they begin.

    Block b is `flat[d * places[b] : d * places[b + 1]]`, a [d, places[b + 1] - places[b]].
    """
    places = _places(bounds)
    out = np.empty(rows.shape[1] * int(places[-1]), dtype)
    _pack(rows, bounds, places, out)
    return out, places


@compiled
def _places(bounds: Ints) -> Ints:
    places = np.zeros(len(bounds), np.int64)
    for b in range(1, len(bounds)):
        places[b] = places[b - 1] + (bounds[b] - bounds[b - 1] + STEP - 1) // STEP * STEP
    return places


@compiled
def largest(bounds: Ints) -> int:
    """Of the blocks between bounds."""
    most = 0
    for b in range(1, len(bounds)):
        most = max(most, bounds[b] - bounds[b - 1])
    return most


@compiled
def _pack(rows: Floats, bounds: Ints, places: Ints, out: Floats) -> None:
    d = rows.shape[1]
    for b in range(len(places) - 1):
        first, last = bounds[b], bounds[b + 1]
        block = out[d * places[b] : d * places[b + 1]].reshape(d, places[b + 1] - places[b])
        for i in range(d):
            for r in range(last - first):
                block[i, r] = rows[first + r, i]
            for r in range(last - first, block.shape[1]):
                block[i, r] = 0


@compiled
def combine(theta: Floats, block: Floats, out: Floats) -> None:
    """out = θ block, four features at a time. theta [d], block [d, m], out [m]"""
    d, m = block.shape
    for r in range(m):
        out[r] = 0
    i = 0
    while i + 4 <= d:
        a, b, c, e = theta[i], theta[i + 1], theta[i + 2], theta[i + 3]
        for r in range(m):
            out[r] += a * block[i, r] + b * block[i + 1, r] + c * block[i + 2, r] + e * block[i + 3, r]
        i += 4
    while i < d:
        a = theta[i]
        for r in range(m):
            out[r] += a * block[i, r]
        i += 1


@compiled
def gather(block: Floats, of_losses: Floats, of_weights: Floats, sums: Floats) -> None:
    """sums += (block of_losses, block of_weights), two features at a time. block [d, m], of_… [m], sums [2, ≥ d]"""
    d, m = block.shape
    i = 0
    while i + 2 <= d:
        a, b, c, e = 0.0, 0.0, 0.0, 0.0
        for r in range(m):
            x, y, p, q = block[i, r], block[i + 1, r], of_losses[r], of_weights[r]
            a += p * x
            b += q * x
            c += p * y
            e += q * y
        sums[0, i] += a
        sums[1, i] += b
        sums[0, i + 1] += c
        sums[1, i + 1] += e
        i += 2
    if i < d:
        a, b = 0.0, 0.0
        for r in range(m):
            a += of_losses[r] * block[i, r]
            b += of_weights[r] * block[i, r]
        sums[0, i] += a
        sums[1, i] += b


@compiled
def put_together(
    params: Array,
    risk: float,
    variance: float,
    n: int,
    penalty: tuple[float, float, float, float, float],
    shrink: float,
    sums: Floats,
    gradient: Floats,
) -> float:
    """V + shrink |θ|²/2 and its gradient from sums over n rows. params, gradient [D]; sums [2, D]"""
    pessimism, slope = phi(variance / n, penalty[0], penalty[1], penalty[2], penalty[3], penalty[4])
    size = 0.0
    for i in range(len(params)):
        gradient[i] = (sums[0, i] + slope * sums[1, i]) / n + shrink * params[i]
        size += params[i] * params[i]
    return float(risk / n + pessimism + 0.5 * shrink * size)
