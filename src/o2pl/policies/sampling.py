"""Drawing actions: the only place where chance enters."""

from __future__ import annotations

import math

import numpy as np

from o2pl.compiled import compiled
from o2pl.protocols import Floats, Ints


@compiled
def draw_one(probabilities: Floats, uniform: float) -> int:
    """One action, by inversion. [K]"""
    below = 0.0
    chosen = 0
    for k in range(len(probabilities)):
        if probabilities[k] > 0:
            chosen = k  # rounding may leave the sum a hair below 1: the last possible action takes the rest
            below += probabilities[k]
            if uniform < below:
                break
    return chosen


@compiled
def draw(probabilities: Floats, offsets: Ints, uniforms: Floats) -> tuple[Ints, Floats]:
    """From each set `probabilities[offsets[s]:offsets[s + 1]]` one action and its probability."""
    n = len(uniforms)
    actions, propensities = np.empty(n, np.int64), np.empty(n)
    for s in range(n):
        actions[s] = draw_one(probabilities[offsets[s] : offsets[s + 1]], uniforms[s])
        propensities[s] = probabilities[offsets[s] + actions[s]]
    return actions, propensities


def draw_rows(probabilities: Floats, uniforms: Floats) -> tuple[Ints, Floats]:
    """`draw` for a matrix [n, K]."""
    n, k = probabilities.shape
    return draw(np.ascontiguousarray(probabilities).reshape(-1), np.arange(0, n * k + 1, k), uniforms)


@compiled
def normalise(logits: Floats, offsets: Ints, sharpness: float) -> Floats:
    """Softmax of sharpness * logits within each set, in double precision. [total]"""
    out = np.empty(len(logits))
    for s in range(len(offsets) - 1):
        first, last = offsets[s], offsets[s + 1]
        top = -math.inf
        for k in range(first, last):
            top = max(top, sharpness * logits[k])
        total = 0.0
        for k in range(first, last):
            out[k] = math.exp(sharpness * logits[k] - top)
            total += out[k]
        for k in range(first, last):
            out[k] /= total
    return out


def sharpen(probabilities: Floats, sharpness: float) -> Floats:
    """π^s, normalised: the policy whose logits are s times those of π. [n, K]"""
    if sharpness == 1:
        return probabilities
    n, k = probabilities.shape
    with np.errstate(divide="ignore"):  # log 0 = -∞ is an action that is never taken
        logits = np.log(probabilities).reshape(-1)
    return normalise(logits, np.arange(0, n * k + 1, k), sharpness).reshape(n, k)
