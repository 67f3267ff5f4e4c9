"""Empirical Bernstein: two lower confidence sequences for the mean of non-negative values.

Both use exponential bets on y - c, with c a predictable centre in [0, 1]: the mean of the earlier rows.
"""

from __future__ import annotations

import math

import numpy as np

from o2pl import _core
from o2pl.protocols import Floats


def plugin_bernstein_lower(values: Floats, delta: float) -> Floats:
    """Predictable plug-in empirical Bernstein (Waudby-Smith and Ramdas): lower bounds for a common mean, [n].

    (Σ λ_s y_s - log(1/δ) - Σ ψ(λ_s) (y_s - c_s)²) / Σ λ_s with ψ(λ) = -log(1 - λ) - λ and
    λ_s = min(√(2 log(1/δ) / (σ̂²_{s-1} s log(1 + s))), 1/2).
    """
    return _core.plugin_lower(np.asarray(values, np.float64), math.log(1 / delta))


def realized_bernstein_lower(values: Floats, delta: float, common: bool = True) -> Floats:
    """Prop. B.1 on X = y - c, peeled over the observed variation S: lower bounds after each row, [n].

    Its proof only needs X ≥ -B, so B = 1 although y has no upper bound. If means differ, it bounds their average.
    """
    return _core.realized_lower(np.asarray(values, np.float64), delta, common)
