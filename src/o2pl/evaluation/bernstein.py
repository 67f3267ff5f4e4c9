"""Empirical Bernstein: two lower confidence sequences for the mean of non-negative values.

Both use exponential bets on y - c, with c a predictable centre in [0, 1]: the mean of the earlier rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from o2pl.compiled import compiled
from o2pl.protocols import Floats
from o2pl.theory.inequality import peeled_deviation

_LARGEST_BET = 0.5


def plugin_lower(values: Floats, delta: float) -> Floats:
    """Predictable plug-in empirical Bernstein (Waudby-Smith and Ramdas): lower bounds for a common mean, [n].

    (Σ λ_s y_s - log(1/δ) - Σ ψ(λ_s) (y_s - c_s)²) / Σ λ_s with ψ(λ) = -log(1 - λ) - λ and
    λ_s = min(√(2 log(1/δ) / (σ̂²_{s-1} s log(1 + s))), 1/2).
    """
    return np.asarray(_plugin_lower(values, math.log(1 / delta)))


@compiled
def _plugin_lower(values: Floats, log_inverse: float) -> Any:
    n = len(values)
    bounds = np.empty(n)
    total, spread, centre, variance = 0.5, 0.25, 0.5, 0.25  # prior of half a row with value 1/2
    bet_sum, gain, cost, best = 0.0, 0.0, log_inverse, 0.0
    for s in range(n):
        y, t = values[s], s + 1.0
        bet = min(math.sqrt(2.0 * log_inverse / (variance * t * math.log(1.0 + t))), _LARGEST_BET)
        bet_sum += bet
        gain += bet * y
        cost += (-math.log1p(-bet) - bet) * (y - centre) ** 2
        total += y
        centre = min(total / (t + 1.0), 1.0)
        spread += (y - centre) ** 2
        variance = spread / (t + 1.0)
        best = max(best, (gain - cost) / bet_sum)
        bounds[s] = best
    return bounds


def realized_lower(values: Floats, delta: float, common: bool = True) -> Floats:
    """Prop. B.1 on X = y - c, peeled over the observed variation S: lower bounds after each row, [n].

    Its proof only needs X ≥ -B, so B = 1 although y has no upper bound. If means differ, it bounds their average.
    """
    return np.asarray(_realized_lower(values, delta, common))


@compiled
def _realized_lower(values: Floats, delta: float, common: bool) -> Any:
    n = len(values)
    bounds = np.empty(n)
    total, centre, variation, best = 0.0, 0.5, 0.0, 0.0
    for s in range(n):
        y, t = values[s], s + 1.0
        variation += (y - centre) ** 2
        total += y
        centre = min((0.5 + total) / (t + 1.0), 1.0)
        bound = max(0.0, (total - peeled_deviation(variation, 1.0, delta)) / t)
        best = max(best, bound) if common else bound
        bounds[s] = best
    return bounds
