"""Deviations of R̂_t(π) from its target over a policy class, in terms of the observed variance σ̂.

Where the paper has constants, they are here (`finite_family_maximum`) or follow from Prop. B.1 (`finite_class_bound`).
Its theorems for infinite classes hold *up to a universal constant* C that is not given: `constant`, default 1. With C =
1 they are shapes to compare, not guarantees.
"""

from __future__ import annotations

import math

from o2pl.errors import InvalidInput
from o2pl.theory.critical import complexity, critical_radius
from o2pl.theory.inequality import peeled_deviation


def finite_class_bound(sigma: float, alpha: float, t: float, delta: float, members: int) -> float:
    """Return a bound of |R̂_t(π) - R_{t,α}(π)| at all t and for all J policies, with probability ≥ 1 - δ. Explicit.

    Prop. B.1, peeled over t σ̂² (which is at least Σ ℓ_s²), two-sided, a union over J; for α ≥ 2 fixed over t.
    """
    _check_self_normalised(sigma, alpha, t, delta)
    if alpha < 2 or members < 1:
        raise InvalidInput(f"(alpha, members): found {(alpha, members)}, expected alpha ≥ 2 and members ≥ 1")
    # losses (min(w, α) - 1) y lie in [-(α - 1), 1]
    return peeled_deviation(t * sigma**2, alpha - 1.0, delta / (2 * members)) / t


def finite_family_maximum(v: float, bound: float, members: int, probability: float = 1.0) -> float:
    """Appendix B.2: E[max_h 1{S_h ≤ v} max_j M_j^h | A] ≤ 4 √(v ℓ) + 16 B ℓ with ℓ = log(1 + N/P(A)). Explicit."""
    if not (v > 0 and bound > 0 and members >= 1 and 0 < probability <= 1):
        found = (v, bound, members, probability)
        raise InvalidInput(f"(v, bound, members, probability): found {found}, expected > 0, > 0, ≥ 1 and in (0, 1]")
    log = math.log(1 + members / probability)
    return 4 * math.sqrt(v * log) + 16 * bound * log


def maximal_deviation(sigma: float, alpha: float, t: float, delta: float, p: float, constant: float = 1.0) -> float:
    """Return the maximal inequality for policies with σ̂ ≤ σ: C (H_t(σ, α) + σ √(log(e/δ)/t) + α log(e/δ)/t).

    Up to a universal constant.
    """
    _check_self_normalised(sigma, alpha, t, delta)
    log = math.log(math.e / delta)
    return constant * (complexity(sigma, alpha, t, p) + sigma * math.sqrt(log / t) + alpha * log / t)


def self_normalised_bound(sigma: float, alpha: float, t: float, delta: float, p: float, constant: float = 1.0) -> float:
    """Return the theorem "Self-normalized confidence bound" for a policy with σ̂; up to a universal constant.

    C (r² + σ̂^{1-p/2}/√t + σ̂ √(log(et/δ)/t) + α log(et/δ)/t), r the critical radius. For p = 0 its second term is
    σ̂ √log(e + e/σ̂) /√t, as in H_t. (The appendix has log(α/r*) + log(1/δ) for log(et/δ); the penalty has log(1/δ).)
    """
    _check_self_normalised(sigma, alpha, t, delta)
    log = math.log(math.e * t / delta)
    local = sigma * math.sqrt(1 + math.log1p(1 / sigma)) if p == 0 else sigma ** (1 - p / 2)
    radius = critical_radius(alpha, t, p)
    return constant * (radius**2 + (local + sigma * math.sqrt(log)) / math.sqrt(t) + alpha * log / t)


def _check_self_normalised(sigma: float, alpha: float, t: float, delta: float) -> None:
    if not (sigma > 0 and alpha > 0 and t > 0 and 0 < delta < 1):
        found = (sigma, alpha, t, delta)
        raise InvalidInput(f"(sigma, alpha, t, delta): found {found}, expected numbers > 0 and delta in (0, 1)")
