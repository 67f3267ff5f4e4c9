"""Advertising: two groups of users (the two moons); each user has a responsiveness p, which is the best bid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from o2pl.extras import extra
from o2pl.protocols import Array, Floats
from o2pl.simulation.worlds.continuous import ContinuousWorld, Limits
from o2pl.simulation.worlds.moments import moment_normal_density, moment_normal_probability, moment_of_excess
from o2pl.simulation.worlds.rounds import require_for_rounds
from o2pl.storage import storable

_REACH = 9.0  # range of quadratures, in standard deviations of p
_ZOOMS = 7  # on the best bid, each by 20
_CHUNK = 1024  # rows per quadrature block: bounds the memory


@storable
@dataclass(frozen=True)
class Advertising(ContinuousWorld):
    """x from `make_moons` with noise .05, its moon g the group; p = |N(μ_g, σ_p²)|; loss minus the reward

        r(p, a) = max(-.1, a/p) for a < p,  max(-.1, 1 + (p - a)/2) for a ≥ p.

    Logging policy N(logging_mean, logging_scale²). Rewards are in [-.1, 1] without clipping. The formula also holds for
    negative bids, which Gaussian policies make. Expected rewards are given the group, which the context nearly
    determines; the index of a round is its group, its noise is p.
    """

    responsiveness: tuple[float, float] = (3.0, 1.0)
    deviation: float = 0.5
    logging_mean: float = 2.0
    logging_scale: float = 0.3
    natural_range = (-0.1, 1.0)
    reward_range = (-0.1, 1.0)

    def __post_init__(self) -> None:
        require_for_rounds(self.deviation > 0, "deviation", self.deviation, "a number > 0")
        require_for_rounds(self.logging_scale > 0, "logging_scale", self.logging_scale, "a number > 0")

    def draw(self, rounds: int, generator: np.random.Generator) -> tuple[Floats, Array, Floats]:
        with extra("experiments", "the world Advertising"):
            from sklearn.datasets import make_moons

        seed = int(generator.integers(2**31))
        contexts, group = make_moons(rounds, noise=0.05, random_state=seed)
        mean = np.asarray(self.responsiveness)[group]
        p = np.abs(mean + self.deviation * generator.standard_normal(rounds))
        return contexts.astype(np.float32), group.astype(np.int64), p

    def natural_rewards(self, index: Array, noise: Floats, actions: Floats) -> Floats:
        over = 1 + 0.5 * (noise - actions)
        return np.asarray(np.maximum(np.where(actions < noise, actions / noise, over), self.natural_range[0]))

    def mean_rewards(self, index: Array, means: Floats, scale: float, limits: Limits) -> Floats:
        low, _ = limits
        values = np.empty(len(means))
        for group, centre in enumerate(self.responsiveness):
            rows = np.flatnonzero(np.asarray(index) == group)
            for some in np.array_split(rows, len(rows) // _CHUNK + 1):
                if scale == 0:
                    values[some] = _advertising_mean_of_bids(means[some], centre, self.deviation, low)
                else:
                    values[some] = _advertising_mean_of_policies(means[some], scale, centre, self.deviation, low)
        return values

    def best_actions(self, index: Array) -> Floats:
        low, _ = self.natural_range
        best = [_advertising_best_bid(centre, self.deviation, low) for centre in self.responsiveness]
        return np.asarray(best)[index]

    def logging_means(self, contexts: Floats) -> Floats:
        return np.full(len(contexts), self.logging_mean)


def _advertising_density(p: Floats, centre: float, deviation: float) -> Floats:
    """Return the density of |N(centre, deviation²)| at p ≥ 0."""
    return np.asarray(
        (moment_normal_density((p - centre) / deviation) + moment_normal_density((p + centre) / deviation)) / deviation
    )


def _advertising_parts(upper: Floats, centre: float, deviation: float) -> tuple[Floats, Floats]:
    """Return P(p < upper) and E[p; p < upper]."""
    probability, first = np.zeros_like(upper), np.zeros_like(upper)
    for mean in (centre, -centre):  # on p > 0, |N(m, s²)| has the sum of the densities of N(m, s²) and N(-m, s²)
        z0, z1 = -mean / deviation, (upper - mean) / deviation
        inside = moment_normal_probability(z1) - moment_normal_probability(z0)
        probability += inside
        first += mean * inside + deviation * (moment_normal_density(z0) - moment_normal_density(z1))
    return probability, first


def _advertising_mean_of_bids(bids: Floats, centre: float, deviation: float, low: float) -> Floats:
    """Return E_p r(p, a) for fixed bids: closed forms except for E[a/p; p > start], a quadrature in log p. [m]"""
    positive = bids > 0
    floor_until = np.where(positive, np.maximum(bids - 2 * (1 - low), 0), bids / low)  # r = low for p below this
    start = np.where(positive, bids, floor_until)  # r = a/p for p above this
    floored, floored_first = _advertising_parts(floor_until, centre, deviation)
    until, until_first = _advertising_parts(start, centre, deviation)
    over = (1 - bids / 2) * (until - floored) + 0.5 * (until_first - floored_first)  # 1 + (p - a)/2 in between

    nodes, weights = _advertising_legendre(96)
    last = math.log(abs(centre) + _REACH * deviation)
    first = np.minimum(np.log(np.maximum(start, 1e-300)), last)
    half = 0.5 * (last - first)[:, None]
    p = np.exp(first[:, None] + half * (1 + nodes))
    return np.asarray(low * floored + over + bids * ((half * _advertising_density(p, centre, deviation)) @ weights))


def _advertising_mean_of_policies(means: Floats, scale: float, centre: float, deviation: float, low: float) -> Floats:
    """Return E_p E_a r(p, a) for a ~ N(means, scale²). [m]

    For fixed p the reward is piecewise linear in a, with knots at low·p, p and p + 2(1 - low):
    r = low + (a - low·p)₊/p - (1/p + 1/2)(a - p)₊ + (a - p - 2(1 - low))₊/2. Its mean over a has a closed form; the
    mean over p is a quadrature on panels no wider than the integrand's scale.
    """
    reach = abs(centre) + _REACH * deviation
    nodes, weights = _advertising_legendre(16)
    panels = math.ceil(reach / (2 * min(scale, deviation)))
    width = reach / panels
    p = (width * (np.arange(panels)[:, None] + 0.5 * (1 + nodes))).reshape(-1)
    density = np.tile(0.5 * width * weights, panels) * _advertising_density(p, centre, deviation)
    m = means[:, None]
    rewards = (
        moment_of_excess(m, scale, low * p) / p
        - (1 / p + 0.5) * moment_of_excess(m, scale, p)
        + 0.5 * moment_of_excess(m, scale, p + 2 * (1 - low))
    )
    return np.asarray(low + rewards @ density)


@lru_cache(maxsize=16)
def _advertising_best_bid(centre: float, deviation: float, low: float) -> float:
    bids = np.linspace(0, abs(centre) + 4 * deviation, 201)
    for _ in range(_ZOOMS):
        best = int(np.argmax(_advertising_mean_of_bids(bids, centre, deviation, low)))
        bids = np.linspace(bids[max(best - 1, 0)], bids[min(best + 1, len(bids) - 1)], 41)
    return float(bids[len(bids) // 2])


@lru_cache(maxsize=4)
def _advertising_legendre(nodes: int) -> tuple[Floats, Floats]:
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return points, weights
