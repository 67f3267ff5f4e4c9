"""Standardised features and their products, row by row.

Sums keep their order, so a row's features are the same alone and in a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.compiled import compiled_in_order, compiled_within
from o2pl.compiled.comparing import larger, smaller
from o2pl.protocols import Floats

LANES = 8  # products computed at a time
_1, _2, _3, _4, _5, _6, _7, _8 = (np.uint64(lane) for lane in range(1, LANES + 1))


@compiled_in_order
def feature_rows(
    contexts: Floats, shift: Floats, scale: Floats, clip: Any, directions: Floats, product_shift: Floats,
    product_scale: Floats, intercept: int, out: Floats,
) -> None:  # fmt: skip
    """Write a constant 1 if there is an intercept, (x - shift) scale clipped to [-clip, clip], and their products.

    contexts [n, d], directions [d, m], product_shift and product_scale [p], out [n, width]; see `FeaturePlan`. The
    products are of `directions` of the features, or of the features themselves if m = 0.
    """
    d, m = directions.shape
    p, n_factors = len(product_shift), m if m else d
    padded, made = np.empty(n_factors + LANES, np.float32), np.empty(p + LANES, np.float32)
    less, times = np.empty(p + LANES, np.float32), np.empty(p + LANES, np.float32)
    for j in range(LANES):
        padded[n_factors + j], less[p + j], times[p + j] = 0, 0, 0
    for j in range(p):  # not in slices, which take seconds to compile
        less[j], times[j] = product_shift[j], product_scale[j]
    for r in range(len(contexts)):
        row, x = out[r], contexts[r]
        if intercept:
            row[0] = 1
        own = row[intercept : intercept + d]  # indexed from 0 on: an index that might be negative does not vectorise
        for i in range(d):
            own[i] = smaller(larger((x[i] - shift[i]) * scale[i], -clip), clip)
        if p == 0:
            continue
        for j in range(n_factors):
            padded[j] = 0 if m else own[j]
        for i in range(d if m else 0):
            for j in range(m):
                padded[j] += own[i] * directions[i, j]
        _write_products(padded, n_factors, less, times, made)
        products = row[intercept + d :]
        for j in range(p):
            products[j] = made[j]


@compiled_within
def _write_products(factors: Floats, m: int, less: Floats, times: Floats, out: Floats) -> None:
    """Write (factors_i factors_j - less) times for i ≤ j < m, LANES at a time.

    What is written beyond the end of one i is overwritten by the next i. All arrays have room for it.
    """
    place = np.uint64(0)
    for i in range(m):
        x, at, f = factors[i], place, np.uint64(i)
        for _ in range((m - i + LANES - 1) // LANES):
            a = (x * factors[f] - less[at]) * times[at]
            b = (x * factors[f + _1] - less[at + _1]) * times[at + _1]
            c = (x * factors[f + _2] - less[at + _2]) * times[at + _2]
            e = (x * factors[f + _3] - less[at + _3]) * times[at + _3]
            g = (x * factors[f + _4] - less[at + _4]) * times[at + _4]
            h = (x * factors[f + _5] - less[at + _5]) * times[at + _5]
            k = (x * factors[f + _6] - less[at + _6]) * times[at + _6]
            o = (x * factors[f + _7] - less[at + _7]) * times[at + _7]
            out[at], out[at + _1], out[at + _2], out[at + _3] = a, b, c, e
            out[at + _4], out[at + _5], out[at + _6], out[at + _7] = g, h, k, o
            at += _8
            f += _8
        place += np.uint64(m - i)


def standardised(rows: Floats, shift: Floats, scale: Floats, clip: float) -> Floats:
    """Return clip((rows - shift) scale), [n, d]."""
    out, none = np.empty_like(rows), np.empty(0, np.float32)
    feature_rows(
        rows.astype(np.float32, copy=False), shift, scale, np.float32(clip), _undirected(rows), none, none, 0, out
    )
    return out


def with_products(factors: Floats, shift: Floats, scale: Floats) -> Floats:
    """Return the factors and (x_i x_j - shift) scale, i ≤ j. factors [n, m] -> [n, m + m (m + 1) / 2]"""
    n, m = factors.shape
    out = np.empty((n, m + len(shift)), factors.dtype)
    as_is = np.zeros(m, np.float32), np.ones(m, np.float32), np.float32(np.inf)
    feature_rows(factors, *as_is, _undirected(factors), shift, scale, 0, out)
    return out


def _undirected(rows: Floats) -> Floats:
    return np.empty((rows.shape[1], 0), np.float32)
