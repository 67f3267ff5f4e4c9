"""Features of a few rows at a time, made where they are used: no log-sized matrix of features needs to exist.

A block is feature-major, [width, rows]: loops run along the rows, and its matrix products are those BLAS is fastest at.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from o2pl.compiled import compiled
from o2pl.features.basic import Chain, Intercept
from o2pl.features.quadratic import Quadratic, product_scale
from o2pl.features.standardise import Standardise
from o2pl.protocols import FeatureMap, Floats, Ints, State

_NONE, _ANY = np.empty(0, np.float32), np.float32(math.inf)
# Rows of a block: what is made of them stays in the first caches. Not a power of 2: a block's features, one below the
# other, would compete for the same places there.
BLOCK = 480


class Recipe(NamedTuple):
    """How the features of a row are made: (x - shift) scale cut to [-clip, clip], their products, a constant."""

    contexts: Floats  # [n, d], single precision
    shift: Floats  # [d]
    scale: Floats  # [d]
    clip: Any
    directions: Floats  # [m, d] of what is multiplied; [0, d] if it is the d features themselves
    product_shift: Floats  # [p]; p = 0: no products
    product_scale: Floats  # [p]
    intercept: int  # 1: a constant 1 before the others

    @property
    def width(self) -> int:
        return int(self.intercept + self.contexts.shape[1] + len(self.product_shift))


def recipe(features: FeatureMap, seen: State, contexts: Floats) -> Recipe:
    """Of a feature map that has seen what it has seen; a map that is not of the shipped kinds is applied right away."""
    maps = features.maps if isinstance(features, Chain) else (features,)
    if tuple(type(each) for each in maps) not in _KNOWN:
        return as_they_are(features.transform(seen, contexts))
    parts = features.parts(seen) if isinstance(features, Chain) else [seen]
    d, made = contexts.shape[1], dict[str, Any]()
    for each, own in zip(maps, parts, strict=True):
        if isinstance(each, Standardise):
            made |= {"shift": own["shift"], "scale": own["scale"], "clip": np.float32(each.clip)}
        elif isinstance(each, Quadratic):
            made |= {"product_shift": own["shift"], "product_scale": product_scale(own, d)}
            if len(own["directions"]) < d:
                made["directions"] = own["directions"]
        else:
            made["intercept"] = 1
    return as_they_are(contexts, **made)


_KNOWN = {
    (*first, *second, *third)
    for first in ((), (Standardise,))
    for second in ((), (Quadratic,))
    for third in ((), (Intercept,))
}


def as_they_are(rows: Floats, **unless: Any) -> Recipe:
    """The rows themselves as features, unless something else is said of them."""
    d = rows.shape[1]
    return Recipe(
        np.ascontiguousarray(rows, np.float32),
        unless["shift"] if "shift" in unless else np.zeros(d, np.float32),
        unless["scale"] if "scale" in unless else np.ones(d, np.float32),
        unless.get("clip", _ANY),
        unless["directions"] if "directions" in unless else np.empty((0, d), np.float32),
        unless.get("product_shift", _NONE),
        unless.get("product_scale", _NONE),
        unless.get("intercept", 0),
    )


@compiled
def fill(made: Recipe, start: int, rows: int, block: Floats) -> None:
    """The features of `rows` rows from `start` on; what is beyond them in the block becomes 0. [width, ≥ rows]"""
    contexts, first = made.contexts, made.intercept
    d = contexts.shape[1]
    across, down = d // 4 * 4, rows // 4 * 4
    for r in range(0, down, 4):  # in squares of 4 by 4, which the compiler turns in registers
        x0, x1, x2, x3 = contexts[start + r], contexts[start + r + 1], contexts[start + r + 2], contexts[start + r + 3]
        for i in range(0, across, 4):
            y = block[first + i : first + i + 4]
            a0, a1, a2, a3 = x0[i], x0[i + 1], x0[i + 2], x0[i + 3]
            b0, b1, b2, b3 = x1[i], x1[i + 1], x1[i + 2], x1[i + 3]
            c0, c1, c2, c3 = x2[i], x2[i + 1], x2[i + 2], x2[i + 3]
            d0, d1, d2, d3 = x3[i], x3[i + 1], x3[i + 2], x3[i + 3]
            y[0, r], y[0, r + 1], y[0, r + 2], y[0, r + 3] = a0, b0, c0, d0
            y[1, r], y[1, r + 1], y[1, r + 2], y[1, r + 3] = a1, b1, c1, d1
            y[2, r], y[2, r + 1], y[2, r + 2], y[2, r + 3] = a2, b2, c2, d2
            y[3, r], y[3, r + 1], y[3, r + 2], y[3, r + 3] = a3, b3, c3, d3
        for i in range(across, d):
            y0 = block[first + i]
            y0[r], y0[r + 1], y0[r + 2], y0[r + 3] = x0[i], x1[i], x2[i], x3[i]
    for r in range(down, rows):
        for i in range(d):
            block[first + i, r] = contexts[start + r, i]
    _finish(made, rows, block)


@compiled
def pick(made: Recipe, places: Ints, block: Floats) -> None:
    """The features of the rows at `places`. [width, rows]"""
    contexts, first = made.contexts, made.intercept
    for r in range(len(places)):
        for i in range(contexts.shape[1]):
            block[first + i, r] = contexts[places[r], i]
    _finish(made, len(places), block)


@compiled
def _finish(made: Recipe, rows: int, block: Floats) -> None:
    first, d = made.intercept, made.contexts.shape[1]
    if first:
        block[0, :rows] = 1
    for i in range(d):
        shift, scale, x = made.shift[i], made.scale[i], block[first + i]
        for r in range(rows):
            x[r] = min(max((x[r] - shift) * scale, -made.clip), made.clip)
    if len(made.product_shift):
        factors = block[first : first + d]
        if len(made.directions):
            factors = np.dot(made.directions, np.ascontiguousarray(factors))
        at = 0
        for i in range(len(factors)):
            for j in range(i, len(factors)):
                shift, scale = made.product_shift[at], made.product_scale[at]
                one, other, product = factors[i], factors[j], block[first + d + at]
                for r in range(rows):
                    product[r] = (one[r] * other[r] - shift) * scale
                at += 1
    for i in range(len(block)):
        for r in range(rows, block.shape[1]):
            block[i, r] = 0
