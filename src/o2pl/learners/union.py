"""Several members on one log: each is weighed by what it would have gained before it learned from a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from o2pl.interactions import Interactions
from o2pl.objectives.weights import clipped_moments
from o2pl.protocols import Floats

RATE = 0.5  # of the exponential weights


def progressive_gains(likelihoods: Sequence[Floats], rows: Interactions, alpha: float, baseline: float) -> Floats:
    """Σ (min(w, α) - 1)(b - y) of each member; likelihoods: π_c(a_s|x_s), [n] each."""
    residuals = rows.losses - baseline
    risks = [clipped_moments(each / rows.propensities, residuals, alpha)[0] for each in likelihoods]
    return -len(rows) * np.array(risks)


def shares(gains: Floats) -> Floats:
    """Exponential weights, in [0, 1], summing to 1."""
    powers = np.exp(RATE * (gains - gains.max()))
    return np.asarray(powers / powers.sum())
