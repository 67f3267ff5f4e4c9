"""Standardised features and their products, row by row.

Sums keep their order, so a row's features are the same alone and in a batch.
"""

from __future__ import annotations

import math

import numpy as np

from o2pl import _core
from o2pl.protocols import Floats

_NONE = np.empty(0, np.float32)


def standardised_rowwise(rows: Floats, shift: Floats, scale: Floats, clip: float) -> Floats:
    """Return clip((rows - shift) scale), [n, d], computed in single precision."""
    single = rows.astype(np.float32, copy=False)
    made = _core.feature_rows(single, shift, scale, clip, _undirected_rowwise(rows), _NONE, _NONE, False)
    return made.astype(rows.dtype, copy=False)


def products_rowwise(factors: Floats, shift: Floats, scale: Floats) -> Floats:
    """Return the factors and (x_i x_j - shift) scale, i ≤ j. factors [n, m] -> [n, m + m (m + 1) / 2]"""
    m = factors.shape[1]
    as_is = np.zeros(m, np.float32), np.ones(m, np.float32), math.inf
    return _core.feature_rows(factors, *as_is, _undirected_rowwise(factors), shift, scale, False)


def _undirected_rowwise(rows: Floats) -> Floats:
    return np.empty((rows.shape[1], 0), np.float32)
