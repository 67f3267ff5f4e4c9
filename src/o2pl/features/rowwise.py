"""Standardised features and their products, row by row.

Sums keep their order, so a row's features are the same alone and in a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.compiled import compiled_in_order
from o2pl.compiled.comparing import larger, smaller
from o2pl.protocols import Floats


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
    projected = np.empty(m, np.float32)
    for r in range(len(contexts)):
        row, x = out[r], contexts[r]
        if intercept:
            row[0] = 1
        factors, first, place = row[intercept : intercept + d], np.uint64(intercept + d), np.uint64(0)
        for i in range(d):
            factors[i] = smaller(larger((x[i] - shift[i]) * scale[i], -clip), clip)
        if len(product_shift) == 0:
            continue
        if m:
            for j in range(m):
                projected[j] = 0
            for i in range(d):
                for j in range(m):
                    projected[j] += factors[i] * directions[i, j]
            factors = projected
        for i in range(len(factors)):
            for j in range(np.uint64(i), np.uint64(len(factors))):  # unsigned: signed ones do not vectorise
                row[first + place] = (factors[i] * factors[j] - product_shift[place]) * product_scale[place]
                place += np.uint64(1)


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
