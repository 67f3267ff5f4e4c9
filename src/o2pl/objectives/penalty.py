"""The penalty Φ_p of the oracle's definition, as a function of the variance proxy v = σ̂²."""

from __future__ import annotations

import math
from typing import NamedTuple

_TINY = 1e-9  # smaller σ counts as 0: the penalty has a kink there, and its slope is multiplied by w - 1 = 0


class Phi(NamedTuple):
    """λ Φ_p at round t. λ = `scale` is 1 in the paper. With α = ∞ (no clipping) the terms with α are dropped."""

    alpha: float
    t: float
    log_inv_delta: float
    p: float = 0.0
    scale: float = 1.0

    def __call__(self, variance: float) -> tuple[float, float]:
        return phi(variance, self)


def phi(variance: float, penalty: Phi) -> tuple[float, float]:
    """Return scale * Φ_p(σ, α, t, δ) and its derivative by v = σ².

    Φ_p = (α/t)^{2/(2+p)} + σ^{1-p/2}/√t + σ √(log(1/δ)/t) + α log(1/δ)/t.

    For p = 0 the paper reads σ^{1-p/2} as σ polylog(e/σ), and its complexity bound has σ √log(e/σ), which is undefined
    for σ > e. We use σ √log(e + e/σ): smooth, never below that bound, and equal to it as σ -> 0.
    """
    t, p = penalty.t, penalty.p
    alpha = penalty.alpha if penalty.alpha < math.inf else 0.0
    sigma = max(math.sqrt(variance), _TINY)
    if p == 0:
        root = math.sqrt(1.0 + math.log1p(1.0 / sigma))
        local, local_slope = sigma * root, root - 0.5 / (root * (1.0 + sigma))
        floor = alpha / t
    else:
        local, local_slope = sigma ** (1 - p / 2), (1 - p / 2) * sigma ** (-p / 2)
        floor = (alpha / t) ** (2 / (2 + p))
    root_t, root_log = math.sqrt(t), math.sqrt(penalty.log_inv_delta)
    value = floor + (local + sigma * root_log) / root_t + alpha * penalty.log_inv_delta / t
    slope = (local_slope + root_log) / root_t / (2 * sigma)  # dΦ/dv = dΦ/dσ / (2σ)
    return penalty.scale * value, penalty.scale * slope


class Tangent(NamedTuple):
    """The tangent of a penalty at one variance. Φ_p is concave in v, so the tangent is an upper bound."""

    at: float
    value: float
    slope: float

    def __call__(self, variance: float) -> tuple[float, float]:
        return self.value + self.slope * (variance - self.at), self.slope
