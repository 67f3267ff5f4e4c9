"""Choice of a clip, switch or shrinkage level by SLOPE: the least noisy level that no noisier one contradicts.

Levels are sorted by the half-width c of their estimate θ, from noisy and nearly unbiased to quiet and biased. The last
level is taken for which |θ_i - θ_j| ≤ c_i + (√6 - 1) c_j for all levels j before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from o2pl.evaluation.estimators import EstimatorInput, EstimatorSettings, estimator_rows
from o2pl.protocols import Floats
from o2pl.special import student_quantile

_TUNED = {"switch-dr": "switch", "dr-shrinkage": "shrinkage"}  # estimators, and their settings
_LEVELS, _MOST = 8, 50_000  # levels tried, on at most so many rows


def slope(terms: Sequence[Floats], delta: float = 0.05) -> int:
    """Return the number of the level to use, from the terms of its estimate in every row. [levels, n]"""
    n = len(terms[0])
    quantile = student_quantile(1 - delta, n - 1)
    values = np.array([one.mean() for one in terms])
    widths = np.array([quantile * math.sqrt(one.var() / (n - 1)) for one in terms])
    order = np.argsort(widths)[::-1]
    chosen = int(order[0])
    for place, level in enumerate(order[1:], 1):
        before = order[:place]
        if (np.abs(values[before] - values[level]) > widths[level] + (math.sqrt(6) - 1) * widths[before]).any():
            break
        chosen = int(level)
    return chosen


def slope_tuned(settings: EstimatorSettings, columns: EstimatorInput) -> EstimatorSettings:
    """Return the settings with levels of `switch-dr` and `dr-shrinkage` that SLOPE chooses from these rows."""
    weights = columns.weights
    if columns.played is None or columns.expected is None or len(weights) < 30 or not np.isfinite(weights).all():
        return settings
    largest = float(weights.max())
    if largest <= 1:
        return settings
    some = columns.rows(slice(None, None, 1 + len(weights) // _MOST))
    levels = np.geomspace(1.0, largest, _LEVELS)
    for name, setting in _TUNED.items():
        tried = (4 * levels**2 if setting == "shrinkage" else levels).tolist()
        terms = [estimator_rows(name, some, replace(settings, **{setting: level})) for level in tried]
        settings = replace(settings, **{setting: tried[slope(terms)]})
    return settings
