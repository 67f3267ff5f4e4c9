"""Confidence sequences by their formulas, row by row."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

from o2pl.theory.betting import BETS, LOG_SHARES


def slow_betting(y: np.ndarray, delta: float) -> np.ndarray:
    """Literal bets 1 + λ(y - m), λ = κ/(1 + κm), and a bracketed root at each time. [n]"""

    def log_capital(m: float, t: int) -> float:
        bets = BETS / (1 + BETS * m)
        return float(logsumexp(LOG_SHARES + np.log1p(bets * (y[:t, None] - m)).sum(axis=0)))

    roots, threshold = [], math.log(1 / delta)
    for t in range(1, len(y) + 1):
        above = log_capital(0.0, t) > threshold
        roots.append(brentq(lambda m, t=t: log_capital(m, t) - threshold, 0, y.max() + 1) if above else 0.0)
    return np.array(roots)


def slow_plugin(y: np.ndarray, delta: float) -> np.ndarray:
    """Row by row from the formulas, each centre and variance computed anew."""
    log, out = math.log(1 / delta), []

    def centre(s: int) -> float:
        return min(1.0, (0.5 + y[:s].sum()) / (s + 1))

    def variance(s: int) -> float:
        return (0.25 + sum((y[i] - centre(i + 1)) ** 2 for i in range(s))) / (s + 1)

    bets = [min(0.5, math.sqrt(2 * log / (variance(s - 1) * s * math.log(1 + s)))) for s in range(1, len(y) + 1)]
    for t in range(1, len(y) + 1):
        cost = sum((-math.log(1 - b) - b) * (y[s] - centre(s)) ** 2 for s, b in enumerate(bets[:t]))
        out.append((np.dot(bets[:t], y[:t]) - log - cost) / sum(bets[:t]))
    return np.maximum.accumulate(np.maximum(out, 0))


def slow_realized(y: np.ndarray, delta: float) -> np.ndarray:
    """Prop. B.1's line of every shell, at each time."""
    out = []
    for t in range(1, len(y) + 1):
        centres = [min(1.0, (0.5 + y[:s].sum()) / (s + 1)) for s in range(t)]
        S = ((y[:t] - centres) ** 2).sum()
        shells = np.arange(60)
        slopes = 0.5 * 2 ** (-shells / 2)
        u = (np.log((shells + 1) * (shells + 2) / delta) / slopes + slopes * S).min()
        out.append((y[:t].sum() - u) / t)
    return np.maximum(out, 0)
