"""Regret exponents: Regret_T = Õ(T^ρ)."""

from __future__ import annotations

import math


def regret_exponent(beta: float, p: float = 0.0) -> float:
    """Return ρ of Theorem 1, without overlap. At β = 1, p = 0 it is 0 (polylogarithmic: log² T).

    β is the exponent of the Hölderian error bound, p the entropy exponent of the log policy class.
    """
    return (2 * (1 - beta) + p) / (2 * (2 - beta) + p)


def overlap_regret_exponent(beta: float, p: float = 0.0) -> float:
    """Return ρ if every policy has π(a|x) ≥ η > 0, the classical full-information fast rate."""
    return (2 * (1 - beta) + beta * p) / (2 * (2 - beta) + beta * p)


def regret_rate(rounds: float, beta: float, p: float = 0.0, *, overlap: bool = False) -> float:
    """Return Theorem 1's regret bound after `rounds` rounds, up to a universal constant and (unless β = 1, p = 0) logs.

    T^ρ; log² T at β = 1, p = 0. With overlap the exponent is the smaller one, equal at p = 0 and at β = 1.
    """
    if beta == 1 and p == 0:
        return math.log(rounds) ** 2
    return float(rounds ** (overlap_regret_exponent if overlap else regret_exponent)(beta, p))
