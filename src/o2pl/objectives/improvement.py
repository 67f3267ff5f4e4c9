"""Row values whose mean is at most the gain of one policy over another, for lower confidence bounds."""

from __future__ import annotations

import math

import numpy as np

from o2pl.objectives.weights import clip_weights
from o2pl.protocols import Floats

_LARGEST = 1e15  # replaces an overflowed weight; times a reward of 0 it must be 0


def improvement_values(
    weights: Floats, against: Floats, rewards: Floats, low: float, high: float, clip: float = math.inf
) -> Floats:
    """Return min(w, α) u + min(w', α)(1 - u) - 1, u = (r - low)/(high - low): mean ≤ (V(π) - V(π'))/(high - low). [n]

    Since u ≥ 0, clipping reduces the value of π, E min(w, α) u ≤ V; since 1 - u ≥ 0, it reduces the loss of π',
    E min(w', α)(1 - u) ≤ 1 - V'. So it holds for every α, and if the log does not cover a policy (E w < 1). What the
    two policies share cancels row by row; against the logger, whose weights are 1, it is (min(w, α) - 1) u.
    """
    share = (rewards - low) / (high - low)
    level = min(clip, _LARGEST)
    return np.asarray(clip_weights(weights, level) * share + clip_weights(against, level) * (1 - share) - 1)
