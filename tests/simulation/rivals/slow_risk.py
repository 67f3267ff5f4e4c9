"""The counterfactual risk as a loop."""

from __future__ import annotations

import math


def slow_risk(probabilities, losses, propensities, penalty, clip, tau):
    """Row by row, with SCRM's own form of the weights where nothing is clipped."""
    terms = []
    for p, loss, q in zip(probabilities, losses, propensities, strict=True):
        weight = p / (q + tau * p) if p / q < clip else clip / (1 + tau * clip)
        terms.append(weight * loss)
    n = len(terms)
    mean = sum(terms) / n
    variance = sum((term - mean) ** 2 for term in terms) / (n - 1)
    return mean + penalty * math.sqrt(variance / n)
