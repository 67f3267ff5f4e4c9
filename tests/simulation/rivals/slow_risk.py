"""The counterfactual risk as a loop."""

from __future__ import annotations

import math
from typing import Any


def slow_risk(probabilities: Any, losses: Any, propensities: Any, penalty: Any, clip: Any, tau: Any) -> Any:
    """Row by row, with SCRM's own form of the weights where nothing is clipped."""
    terms = []
    for p, loss, q in zip(probabilities, losses, propensities, strict=True):
        weight = p / (q + tau * p) if p / q < clip else clip / (1 + tau * clip)
        terms.append(weight * loss)
    n = len(terms)
    mean = sum(terms) / n
    variance = sum((term - mean) ** 2 for term in terms) / (n - 1)
    return mean + penalty * math.sqrt(variance / n)
