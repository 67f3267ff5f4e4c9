"""The clipping level α_t and the confidence level δ_t of Algorithm 1."""

from __future__ import annotations

import math


def log_inverse_confidence(t: float, delta: float) -> float:
    """Return log(1/δ_t) for δ_t = δ / (t (t + 1)), which sums to δ over all rounds."""
    return math.log(t * (t + 1) / delta)


def clip_exponent(beta: float, p: float) -> float:
    """Return γ = 2 (1 - β) / (2 (2 - β) + p), the growth of α_t = 2 ∨ t^γ for β < 1."""
    return 2 * (1 - beta) / (2 * (2 - beta) + p)


def clip_level(t: float, beta: float = 1.0, p: float = 0.0) -> float:
    """Return α_t of Theorem 1: 1 + log(e t) if the error-bound exponent β is 1, else 2 ∨ t^γ."""
    return 1 + math.log(math.e * t) if beta == 1 else max(2.0, t ** clip_exponent(beta, p))


def overlap_clip(floor: float) -> float:
    """Return α = 1/η for policies with π(a|x) ≥ η: no weight exceeds it, so clipping is inactive."""
    return 1 / floor
