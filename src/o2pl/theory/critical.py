"""The complexity H_t(r, α) of the clipped losses, its critical radius, and the resulting regret."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.protocols import Floats
from o2pl.special import lambert_w
from o2pl.theory.schedules import clip_level


def complexity(radius: float, alpha: float, t: float, p: float) -> float:
    """Return H_t(r, α) = (α/t) r^{-p} + r^{1-p/2}/√t; for p = 0, (α/t) ℓ + r √ℓ/√t with ℓ = log(e/r).

    For large r we use ℓ = log(e + e/r), as in the penalty: never below log(e/r), and equal to it as r -> 0.
    """
    _check_critical(alpha, t, p)
    if p == 0:
        log = 1 + math.log1p(1 / radius)
        return alpha / t * log + radius * math.sqrt(log / t)
    return float(alpha / t * radius**-p + radius ** (1 - p / 2) / math.sqrt(t))


def critical_radius(alpha: float, t: float, p: float) -> float:
    """Return the smallest r with H_t(r, α) ≤ r². H_t/r² decreases in r, so there is one root, found by bisection."""
    low, high = math.log(radius_scale(alpha, t, p)) - 1, math.log(radius_scale(alpha, t, p)) + 1
    while complexity(math.exp(low), alpha, t, p) <= math.exp(2 * low):
        low -= 1
    while complexity(math.exp(high), alpha, t, p) > math.exp(2 * high):
        high += 1
    for _ in range(60):
        middle = (low + high) / 2
        if complexity(math.exp(middle), alpha, t, p) <= math.exp(2 * middle):
            high = middle
        else:
            low = middle
    return math.exp(high)


def radius_scale(alpha: float, t: float, p: float) -> float:
    """Return (α/t)^{1/(2+p)}. For p > 0 the critical radius is this times a factor that depends on α and p, not on t.

    (With r = s (α/t)^{1/(2+p)} the equation reads s^{-p} + s^{1-p/2}/√α = s².) So r² goes like (α/t)^{2/(2+p)};
    the (α/t)^{4/(4+p)} in one of the paper's appendices is an error.
    """
    _check_critical(alpha, t, p)
    return float((alpha / t) ** (1 / (2 + p)))


def closed_form_radius(alpha: float, t: float, p: float) -> float:
    """Return the critical radius in closed form. With z = (1/√α + √(1/α + 4))/2, the root of z² = 1 + z/√α:

    p > 0: r = z^{2/(2+p)} (α/t)^{1/(2+p)}, exactly. p = 0: r² = z² (α/t) log(e/r), so r² = (c/2) W(2e²/c) with
    c = z² α/t and Lambert's W; that is the paper's logarithm, so it agrees with `critical_radius` as r -> 0.
    """
    _check_critical(alpha, t, p)
    z = (alpha**-0.5 + math.sqrt(1 / alpha + 4)) / 2
    if p > 0:
        return float(z ** (2 / (2 + p)) * radius_scale(alpha, t, p))
    c = z**2 * alpha / t
    return math.sqrt(c / 2 * lambert_w(2 * math.e**2 / c))


def balance_radius(alpha: float, t: float, p: float) -> float:
    """Return r* = (α/√t)^{2/(2+p)}, where the two terms of H_t are equal (p > 0): below it, α/t r^{-p} is larger."""
    _check_critical(alpha, t, p)
    return float((alpha / math.sqrt(t)) ** (2 / (2 + p)))


class RegretCurve(NamedTuple):
    """Regret as a function of rounds."""

    t: Floats
    regret: Floats

    def exponent(self, decades: float = 2.0) -> float:
        """Return the slope of log regret against log t over the last decades."""
        late = self.t >= self.t[-1] / 10**decades
        return float(np.polyfit(np.log(self.t[late]), np.log(self.regret[late]), 1)[0])


def recursion_regret(beta: float, p: float, horizon: float, growth: float = 1.02) -> RegretCurve:
    """Return the regret allowed by the conditions of the master theorem, with all constants 1 and Theorem 1's α_t.

    Δ_{t+1} = σ̄^{1-p/2}/√t + (α_t/t)^{2/(2+p)} + σ̄²/α_t, at most 1, with σ̄² the mean of Δ_s^β over s ≤ t. Time
    advances by a factor per step; Δ is constant in between.
    """
    _check_critical(1.0, horizon, p)
    times = np.unique(np.ceil(growth ** np.arange(math.log(horizon) / math.log(growth) + 1)))
    regret = np.empty(len(times))
    total = variance = 0.0
    before, excess = 0.0, 1.0
    for place, t in enumerate(times):
        total += excess * (t - before)
        variance += excess**beta * (t - before)
        sigma, alpha, before = math.sqrt(variance / t), clip_level(t, beta, p), t
        regret[place] = total
        excess = min(1.0, sigma ** (1 - p / 2) / math.sqrt(t) + (alpha / t) ** (2 / (2 + p)) + sigma**2 / alpha)
    return RegretCurve(times, regret)


def _check_critical(alpha: Any, t: Any, p: Any) -> None:
    if not 0 <= p < 2:
        raise InvalidInput(f"p: found {p}, expected an entropy exponent in [0, 2)")
    if not (alpha > 0 and t > 0):
        raise InvalidInput(f"(alpha, t): found {(alpha, t)}, expected numbers > 0")
