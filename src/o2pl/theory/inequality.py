"""Prop. B.1, a Bernstein inequality with the observed variance, and the bias of clipped weights.

X_1, X_2, … with |X_s| ≤ B; M_j = Σ_{s≤j} (X_s - E[X_s | past]), S_j = Σ_{s≤j} X_s². For all u, v > 0

    P(there is a j with M_j ≥ u and S_j ≤ v) ≤ exp(-u² / (4 (v + B u))).

S is not centred: for X far from 0 it is much larger than the variance. Subtract a predictable centre first.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from o2pl import _core
from o2pl.errors import InvalidInput
from o2pl.protocols import Floats
from o2pl.special import binomial_tail


def crossing_bound(u: ArrayLike, v: ArrayLike, bound: float) -> Floats:
    """Return the bound of Prop. B.1: exp(-u² / (4 (v + B u)))."""
    u, v = _checked_inequality(u, v, bound)
    return np.asarray(np.exp(-(u**2) / (4 * (v + bound * u))))


def sharper_crossing_bound(u: ArrayLike, v: ArrayLike, bound: float) -> Floats:
    """Return the sharper bound of its proof: the minimum of exp(-λu + λ²v) over 0 < λ ≤ 1/(2B)."""
    u, v = _checked_inequality(u, v, bound)
    slope = np.minimum(u / (2 * v), 1 / (2 * bound))
    return np.asarray(np.exp(-slope * u + slope**2 * v))


def deviation(v: ArrayLike, bound: float, delta: float) -> Floats:
    """Return the u at which Prop. B.1's bound is δ: u² = 4 L (v + B u), L = log(1/δ)."""
    if not 0 < delta < 1:
        raise InvalidInput(f"delta: found {delta}, expected a probability in (0, 1)")
    _, v = _checked_inequality(1.0, v, bound)
    log = math.log(1 / delta)
    return np.asarray(2 * log * bound + 2 * np.sqrt((log * bound) ** 2 + log * v))


def peeled_deviation(v: float, bound: float, delta: float) -> float:
    """Return a u(v) that bounds M_j at all times and for all variations: P(there is a j: M_j ≥ u(S_j)) ≤ δ.

    One λ for each shell of the variation, λ_k = 2^{-k/2}/(2B), with δ_k = δ/((k + 1)(k + 2)), which sum to δ. The proof
    of Prop. B.1 gives P(there is a j: λM_j - λ²S_j ≥ log(1/δ_k)) ≤ δ_k for each, so that
    u(v) = min_k log(1/δ_k)/λ_k + λ_k v: a line on each shell, below the bound at the shell's largest v.
    """
    return _core.peeled_deviation(v, bound, delta)


def _checked_inequality(u: ArrayLike, v: ArrayLike, bound: float) -> tuple[Floats, Floats]:
    for name, value in (("u", u), ("v", v), ("bound", bound)):
        if not np.all(np.asarray(value) > 0):
            raise InvalidInput(f"{name}: found {value}, expected a number > 0")
    return np.asarray(u, np.float64), np.asarray(v, np.float64)


def clipping_bias_bound(variance: ArrayLike, alpha: ArrayLike) -> Floats:
    """Return the bound of the paper's clipping lemma: E (w - α)₊ ≤ σ²/(α - 1) for E w = 1, σ² = E (w - 1)², α > 1.

    With losses y in [-1, 0] it bounds E[(min(w, α) - 1) y] - E[(w - 1) y] from above; the difference is never negative.
    For losses of either sign neither holds.
    """
    level = np.asarray(alpha)
    if not np.all(level > 1):
        raise InvalidInput(f"alpha: found {level}, expected a clipping level > 1")
    return np.asarray(np.asarray(variance) / (level - 1))


def sharp_clipping_bias_bound(variance: ArrayLike, alpha: ArrayLike) -> Floats:
    """Return σ²/(4 (α - 1)), since (w - α)₊ ≤ (w - 1)²/(4 (α - 1)) for every w, with equality at w = 2α - 1.

    (It is ((w - 1) - 2 (α - 1))² ≥ 0.) No smaller constant is possible: a weight of 2α - 1 with a small probability,
    and otherwise one just below 1, comes arbitrarily close to it.
    """
    return np.asarray(clipping_bias_bound(variance, alpha) / 4)


Step = Callable[[Floats, np.random.Generator], tuple[Floats, Floats]]  # M [n] -> X and E[X | past], [n] each


def crossing_frequency(
    step: Step, u: Floats, v: Floats, paths: int, steps: int, generator: np.random.Generator
) -> Floats:
    """Return the fraction of simulated paths with M_j ≥ u and S_j ≤ v at some j ≤ steps, for each pair (u, v). [G]"""
    crossed = np.zeros((len(u), paths), bool)
    M, S = np.zeros(paths), np.zeros(paths)
    for _ in range(steps):
        X, mean = step(M, generator)
        M, S = M + X - mean, S + X**2
        crossed |= (u[:, None] <= M) & (v[:, None] >= S)
    return np.asarray(crossed.mean(axis=1))


def refutes(hits: int, trials: int, bound: float, level: float) -> bool:
    """Return whether the hits refute that their probability is at most the bound (one-sided binomial test)."""
    return binomial_tail(hits, trials, bound) < level
