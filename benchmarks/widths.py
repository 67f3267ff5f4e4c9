"""Widths of the confidence sequences beside published ones, on the same data: `python -m benchmarks.widths`.

References, written here from the publications and computed for one number of rows at a time:

    plug-in, betting   Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting: the predictable
                       plug-in empirical Bernstein sequence, and the hedged capital of its bets λ_t cut at 1/(2m)
    gamma mixture      Howard, Ramdas, McAuliffe, Sekhon, Time-uniform nonparametric confidence sequences: what
                       vw-estimators' `bandits.cs` computes (used itself where installed)

Lower is better; all are intersected over time but vw-estimators', which are as it gives them.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Row
from o2pl.evaluation.sequences import SequenceMethod, confidence_sequence, weighted_sequence

Floats = NDArray[np.floating[Any]]
DELTA, SEEDS, SIZES = 0.05, 9, (100, 1_000, 10_000, 100_000)
CLIP = 10.0


class Data(NamedTuple):
    """Values in [0, scale], or rewards in [0, 1] with weights."""

    values: Floats
    scale: float = 1.0
    weights: Floats | None = None

    def sides(self) -> tuple[Floats, Floats]:
        """What each end is a lower bound of."""
        if self.weights is None:
            return self.values / self.scale, 1 - self.values / self.scale
        return self.weights * self.values, self.weights * (1 - self.values)

    def width(self, n: int, method: SequenceMethod) -> float:
        if self.weights is None:
            lower, upper = confidence_sequence(self.values[:n], DELTA, 0.0, self.scale, method)
        else:
            lower, upper = weighted_sequence(self.weights[:n], self.values[:n], DELTA, method=method)
        return float(upper[-1] - lower[-1])

    def peer_width(self, n: int, lower_bound: Callable[[Floats], float]) -> float:
        first, second = (lower_bound(side[:n]) for side in self.sides())
        return self.scale * (1 - first - second)


def off_policy(seed: int, n: int) -> Data:
    """Three actions, weights 6, 1 and 1/6."""
    generator = np.random.default_rng(seed)
    q, pi, means = np.array([0.1, 0.3, 0.6]), np.array([0.6, 0.3, 0.1]), np.array([0.7, 0.5, 0.4])
    action = generator.choice(3, n, p=q)
    return Data((generator.random(n) < means[action]) * 1.0, weights=(pi / q)[action])


def clipped_weights(seed: int, n: int) -> Data:
    """Lognormal weights of mean 1, cut at 10: values in [0, 10]."""
    return Data(np.minimum(np.exp(np.random.default_rng(seed).normal(-0.5, 1, n)), CLIP), CLIP)


def bernoulli(mean: float) -> Callable[[int, int], Data]:
    return lambda seed, n: Data((np.random.default_rng(seed).random(n) < mean) * 1.0)


WORLDS: dict[str, Callable[[int, int], Data]] = {
    "Bernoulli(.5)": bernoulli(0.5),
    "Bernoulli(.95)": bernoulli(0.95),
    "Bernoulli(.01)": bernoulli(0.01),
    "clipped weights": clipped_weights,
    "off-policy": off_policy,
}


def published_bets(x: Floats) -> tuple[Floats, Floats]:
    """λ_t before it is cut, and the predictable means."""
    t = np.arange(1, len(x) + 1)
    means = np.minimum((0.5 + np.cumsum(x)) / (t + 1), 1.0)
    variances = (0.25 + np.cumsum((x - means) ** 2)) / (t + 1)
    before = np.concatenate([[0.25], variances[:-1]])
    return np.sqrt(2 * math.log(2 / DELTA) / (before * t * np.log(1 + t))), np.concatenate([[0.5], means[:-1]])


def published_plugin(x: Floats) -> float:
    raw, means = published_bets(x)
    bets = np.minimum(raw, 0.5)
    cost = np.cumsum((-np.log1p(-bets) - bets) * (x - means) ** 2)
    return max(0.0, float(((np.cumsum(bets * x) - math.log(2 / DELTA) - cost) / np.cumsum(bets)).max()))


def published_betting(x: Floats) -> float:
    """The largest m that the capital has ever refuted, by bisection."""
    bets, _ = published_bets(x)
    low, high = 0.0, 1.0
    for _ in range(30):
        m = (low + high) / 2
        if np.cumsum(np.log1p(np.minimum(bets, 0.5 / m) * (x - m))).max() >= math.log(2 / DELTA):
            low = m
        else:
            high = m
    return low


def gamma_mixture(x: Floats) -> float:
    """Conjugate gamma mixture (ρ = 1) of exp(λ Σ(x - m) - ψ(λ) V), V = Σ (x - mean before)²."""
    from scipy.optimize import brentq
    from scipy.special import gammainc, loggamma

    n, total = len(x), float(x.sum())
    before = (np.concatenate([[0.0], np.cumsum(x)[:-1]]) + 0.5) / np.arange(1, n + 1)
    v = float(((x - before) ** 2).sum())

    def log_gamma_below(a: float, z: float) -> float:
        return math.log(gammainc(a, z)) + float(loggamma(a))

    def above(m: float) -> float:
        s = total - n * m
        wealth = s + v - (v + 1) * math.log(s + v + 1) + log_gamma_below(v + 1, s + v + 1) - log_gamma_below(1, 1)
        return wealth - math.log(2 / DELTA)

    return float(brentq(above, 0.0, min(1.0, total / n))) if above(0.0) > 0 else 0.0


def vw_width(data: Data, n: int) -> float:
    """vw-estimators' own interval where it is installed, else the same mixture as written above."""
    try:
        cs: Any = importlib.import_module("estimators.bandits.cs")
    except ImportError:
        return data.peer_width(n, gamma_mixture)
    interval = cs.Interval(0.0, 1.0)
    weights = np.ones(n) if data.weights is None else data.weights[:n]
    for w, r in zip(weights.tolist(), (data.values[:n] / data.scale).tolist(), strict=True):
        interval.add_example(1.0, r, w)
    low, high = interval.get(DELTA)
    return data.scale * float(high - low)


PEERS: dict[str, tuple[SequenceMethod, Callable[[Data, int], float], str]] = {
    "plugin / published plug-in": ("plugin", lambda d, n: d.peer_width(n, published_plugin), "≤ 1.02"),
    "betting / published betting": ("betting", lambda d, n: d.peer_width(n, published_betting), "≤ 1.02"),
    "betting / vw-estimators": ("betting", vw_width, "≤ 1.02"),
    "plugin / vw-estimators": ("plugin", vw_width, ""),
    "realized / plugin": ("realized", lambda d, n: d.width(n, "plugin"), "≤ 1.5 at 1e4"),
}


def ratio(world: str, peer: str, n: int) -> Row:
    """Our width, the peer's and their ratio: medians over seeds, and the ratio's range.

    Medians, because a sequence that has missed (a seed in twenty is allowed to) may end up empty.
    """
    method, reference, _ = PEERS[peer]
    pairs = [(data.width(n, method), reference(data, n)) for data in (WORLDS[world](s, n) for s in range(SEEDS))]
    ours, theirs = np.median(pairs, axis=0)
    ratios = [a / b for a, b in pairs]
    return Row(float(ours), float(theirs), float(np.median(ratios)), min(ratios), max(ratios), "width")


def main() -> None:
    console = Console() if sys.stdout.isatty() else Console(width=120)
    for peer, (_, _, bar) in PEERS.items():
        table = Table("data", *(f"n = {n:,}" for n in SIZES), title=f"{peer}  {bar}".strip())
        for world in WORLDS:
            rows = [ratio(world, peer, n) for n in SIZES]
            table.add_row(world, *(f"{r.ratio:.3f} ({r.low:.2f}–{r.high:.2f})" for r in rows))
        console.print(table)


if __name__ == "__main__":
    main()
