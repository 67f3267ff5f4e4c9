"""The maximal inequality for infinite classes with its constants, its entropy, and the margin lemma's constant.

The paper's theorems hold up to a universal constant. This module has the constants of their proofs. B bounds |X_i|, and
log N(ε) is the entropy of log Π in the sup norm.

Entropy transfer. A δ-cover of log Π makes brackets of the clipped losses of width ≤ (e^{2δ} - 1)(1 + σ) where
ρ̂(ℓ) ≤ σ, so N_[](ε, L(σ)) ≤ N(½ log(1 + ε/(1 + σ)), log Π); the paper's c is 1/(e² - 1) for ε ≤ (e² - 1)(1 + σ).

Chaining. With η_j = 2^{-j}σ and ℓ_j = log(2 Π_{i≤j} N_i / P(A)), Corollary B.2 bounds the parts of the proof by

    first brackets 8 σ √(ℓ_0/n) + 16 B ℓ_0/n,  residuals and increments (1 + 24) Σ_{j≥1} η_{j-1} √(ℓ_j/n)

and Σ_{j≥1} η_j √ℓ_j ≤ σ √log(2/P(A)) + 4 J, J = ∫_0^σ √log N_[](u) du. Since σ √log N_[](σ) ≤ J, it holds with
probability ≥ 1 - δ that

    sup_{ρ̂ ≤ σ} M ≤ 208 J/√n + 16 B log N_[](σ)/n + 58 σ √(log(2/δ)/n) + 16 B log(2/δ)/n.

(The brackets depend on the action and the reward of their own round. The paper calls them predictable; all that its
proof needs is that they are known after the round.)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from o2pl.errors import InvalidInput

Entropy = Callable[[float], float]  # ε -> log N(ε, log Π, sup norm)
_PANELS, _NODES = 64, 8  # of Gauss' rule


def bracket_radius(eps: float, sigma: float) -> float:
    """Return the δ of a cover of log Π that gives ε-brackets of the clipped losses with ρ̂ ≤ σ."""
    return 0.5 * math.log1p(eps / (1 + sigma))


def entropy_integral(entropy: Entropy, sigma: float) -> float:
    """Return J = ∫_0^σ √log N_[](u, L(σ)) du, by the entropy transfer."""

    def inner(v: float) -> float:  # u = σ v⁴ tames entropies up to ε^{-3/2} at 0
        return 4 * sigma * v**3 * math.sqrt(entropy(bracket_radius(sigma * v**4, sigma)))

    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    total = 0.0
    for panel in range(_PANELS):
        total += sum(w * inner((panel + 0.5 * (1 + x)) / _PANELS) for x, w in zip(nodes, weights, strict=True))
    return 0.5 * total / _PANELS


def chained_deviation(sigma: float, bound: float, n: float, delta: float, entropy: Entropy) -> float:
    """Return a bound of M_n for all members with ρ̂ ≤ σ, with probability ≥ 1 - δ, at one n."""
    if not (sigma > 0 and bound > 0 and n >= 1 and 0 < delta <= 1):
        found = (sigma, bound, n, delta)
        raise InvalidInput(f"(sigma, bound, n, delta): found {found}, expected > 0, > 0, ≥ 1 and in (0, 1]")
    log = math.log(2 / delta)
    complexity = 208 * entropy_integral(entropy, sigma) / math.sqrt(n)
    first = 16 * bound * (entropy(bracket_radius(sigma, sigma)) + log) / n
    return complexity + first + 58 * sigma * math.sqrt(log / n)


def peeled_radii(bound: float, smallest: float) -> list[float]:
    """Return B, B/2, … down to the first that is at most `smallest`: the shells of ρ̂ ≤ B."""
    shells = max(0, math.ceil(math.log2(bound / smallest)))
    return [bound * 2.0**-k for k in range(shells + 1)]


def peeled_class_deviation(
    rho: float, bound: float, n: float, delta: float, entropy: Entropy, smallest: float
) -> float:
    """Return a bound of M_n for a member with ρ̂ = `rho`, with probability ≥ 1 - δ: δ/((k + 1)(k + 2)) for shell k."""
    radii = peeled_radii(bound, smallest)
    if rho > bound:
        raise InvalidInput(f"rho: found {rho}, expected at most bound, {bound}")
    k = max(k for k, radius in enumerate(radii) if radius >= rho or k == 0)
    return chained_deviation(radii[k], bound, n, delta / ((k + 1) * (k + 2)), entropy)


def lipschitz_entropy(eps: float, slope: float, height: float) -> float:
    """Return log N(ε) of functions on [0, 1] with slope at most `slope` and values within ±height, sup norm. p = 1.

    Values at points ε'/slope apart, rounded down to multiples of ε' = 2ε/3, differ by at most one step from one point
    to the next; half a step above them is within ε of the function. Logarithms of logistic policies are no farther
    apart than their log-odds.
    """
    step = 2 * eps / 3
    return math.log(2 * height / step + 1) + slope / step * math.log(3)


def margin_constant(kappa: float, margin: float, overlap: float) -> float:
    """Return C of the lemma "Realizability and Tsybakov margin imply HEB": Var(π*/π) ≤ C (R(π) - R(π*))^{κ/(κ+1)}.

    P(Δ ≤ u) ≤ margin · u^κ, π(a*|x) ≥ overlap.
    """
    power = _chaining_margin_power(kappa, margin, overlap)
    return float((kappa**power + kappa ** (-kappa * power)) * margin**power / overlap)


def sharp_margin_constant(kappa: float, margin: float, overlap: float) -> float:
    """The least C that will do for two actions, C_lemma · ((1 - overlap)/(κ + 1))^{1/(κ+1)}.

    With q = 1 - π(a*|x) the variance is E q/(1 - q), convex in q, and the excess risk E qΔ: the worst policies have q
    either 0 or 1 - overlap, and err where Δ is smallest. Where they err with mass m, E qΔ is at least
    (1 - overlap) ∫_0^m (v/margin)^{1/κ} dv, with equality for P(Δ ≤ u) = margin · u^κ.
    """
    power = _chaining_margin_power(kappa, margin, overlap)
    return float(((1 - overlap) * margin) ** power * (1 + 1 / kappa) ** (kappa * power) / overlap)


def _chaining_margin_power(kappa: float, margin: float, overlap: float) -> float:
    if not (kappa > 0 and margin > 0 and 0 < overlap <= 1):
        found = (kappa, margin, overlap)
        raise InvalidInput(f"(kappa, margin, overlap): found {found}, expected > 0, > 0 and in (0, 1]")
    return 1 / (kappa + 1)
