"""Several members on one log: each is weighed by what it would have gained before it learned from a row."""

from __future__ import annotations

import numpy as np

from o2pl.interactions import Interactions
from o2pl.objectives.weights import clipped_sums, policy_weights
from o2pl.protocols import Floats

RATE = 0.5  # of the exponential weights
_ALONE = np.ones(1)


def progressive_gains(likelihoods: Floats, rows: Interactions, alpha: float, baseline: float) -> Floats:
    """Σ (min(w, α) - 1)(b - y) of each member; likelihoods: π_c(a_s|x_s), [M, n]"""
    residuals = rows.losses - baseline
    return np.array([-clipped_sums(policy_weights(own, rows.propensities), residuals, alpha)[0] for own in likelihoods])


def shares(gains: Floats) -> Floats:
    """Exponential weights, in [0, 1], summing to 1."""
    if len(gains) == 1:
        return _ALONE
    powers = np.exp(RATE * (gains - gains.max()))
    return np.asarray(powers / powers.sum())
