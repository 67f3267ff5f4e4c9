"""Numbers whose mean is never above what one policy gains over another: what a lower confidence bound is made of."""

from __future__ import annotations

import math

import numpy as np

from o2pl.objectives.weights import clip_weights
from o2pl.protocols import Floats

_LARGEST = 1e15  # a weight that was too large for a number; times a reward of 0 it must be 0


def improvement_values(
    weights: Floats, against: Floats, rewards: Floats, low: float, high: float, clip: float = math.inf
) -> Floats:
    """min(w, α) u + min(w', α)(1 - u) - 1 ≥ -1 with u = (r - low)/(high - low): mean ≤ (V(π) - V(π'))/(high - low). [n]

    From u ≥ 0 clipping takes value of π, E min(w, α) u ≤ V; from 1 - u ≥ 0 it takes loss of π', E min(w', α)(1 - u) ≤
    1 - V'. So it holds for every α, and where the log does not show all that a policy does (E w < 1). What the two
    policies share cancels row by row; against the logger, whose weights are 1, it is (min(w, α) - 1) u.
    """
    share = (rewards - low) / (high - low)
    level = min(clip, _LARGEST)
    return np.asarray(clip_weights(weights, level) * share + clip_weights(against, level) * (1 - share) - 1)
