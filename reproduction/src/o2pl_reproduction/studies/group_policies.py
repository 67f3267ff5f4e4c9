"""Policies that act in one of two ways in each of G groups of contexts: 2^G of them, searched exactly.

R̂ and σ̂² are sums over groups and Φ is concave in σ̂², so the least R̂ + Φ(σ̂²) is at a corner of the convex hull of
all 2^G pairs (σ̂², R̂). The corners are the minimisers of R̂ + s σ̂²; as s falls from ∞ to 0, groups turn one after
another from the way of the smaller variance to the way of the smaller risk. Sorting G numbers finds them all.

Two kinds of groups make the worlds of the study `rates`. In both, way 1 is the best and way 0 the one a learner starts
with.

*Fine* groups, k = 1, 2, …: masses ∝ 1/k, log-odds of the good action ±h_k with h_k = log(2) k^{-1/p}, so that
log N(ε, log Π) ~ ε^{-p}; no probability is below 1/3. The gap of the rewards is k^{-(2/β-1)/p}, and the error bound has
exponent β.

*Rare* groups: masses q_k halve from one to the next. Way 1 plays the good action with probability 1 - √q_k/4, way 0
with probability c_k = q_k^{1-β}/4: for β < 1 both floors go to 0. Where a policy is wrong on groups of mass q its
excess risk is ~ q and the variance of the weights ~ q/c ~ q^β: the error bound has exponent β. (For β = 1 it must have
c_k ≥ c > 0; only the floor of way 1 goes to 0.)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from o2pl import _core
from o2pl.objectives.penalty import Phi
from o2pl.objectives.weights import clip_weights, weight_of
from o2pl.protocols import Floats, Ints
from o2pl.theory.schedules import clip_level, log_inverse_confidence

Bools = NDArray[np.bool_]
DELTA = 0.05
FINE_FLOOR = 1 / 3  # the least probability of fine groups: a weight is at most 2, and 1/floor = 3


class Groups(NamedTuple):
    """The groups. Contexts of no group (masses may sum to less than 1) are the same for all policies."""

    masses: Floats  # [G]
    chances: Floats  # [2 ways, 2 actions, G]
    means: Floats  # [2 actions, G], of Bernoulli rewards

    @property
    def excess(self) -> Floats:
        """The cost of way 0 in each group, in the policy's mean reward. [G]"""
        lost = self.chances[1, 1] - self.chances[0, 1]
        return np.asarray(self.masses * lost * (self.means[1] - self.means[0]))

    @property
    def variance(self) -> Floats:
        """The contribution of way 0 to Var(π*/π). [G]"""
        return np.asarray(self.masses * ((self.chances[1] ** 2 / self.chances[0]).sum(axis=0) - 1))

    @property
    def weights(self) -> Floats:
        """π of one way over π of the other that logged, [way, logging way, action, G]."""
        return np.asarray(weight_of(self.chances[:, None], self.chances[None]))


def _groups(masses: Floats, good: Floats, gap: Floats) -> Groups:
    """good [2 ways, G]: probabilities of the good action, which is action 1."""
    chances = np.stack([1 - good, good], axis=1)
    return Groups(masses, chances, np.stack([0.5 - gap / 2, 0.5 + gap / 2]))


def fine_groups(p: float, beta: float, size: int, mass: float = 1.0) -> Groups:
    """Return groups whose two ways become closer and closer, with decreasing gaps."""
    k = np.arange(1.0, size + 1)
    scale = k ** (-1 / p)
    good = 1 / (1 + np.exp(np.outer([1.0, -1.0], np.log(2) * scale)))
    return _groups(mass / k / (1 / k).sum(), good, scale ** (2 / beta - 1))


def rare_groups(beta: float, size: int, offset: float = 0.0, mass: float = 1.0) -> Groups:
    """Return groups that become rarer and less explored. Their fraction of the contexts is mass · 2^-offset."""
    q = 2.0 ** -(np.arange(1.0, size + 1) + offset)
    good = np.stack([q ** (1 - beta) / 4, 1 - np.sqrt(q) / 4])
    return _groups(mass * q, good, np.full(size, 0.5))


def joined(*parts: Groups) -> Groups:
    return Groups(*(np.concatenate(columns, axis=-1) for columns in zip(*parts, strict=True)))


class GroupEvidence:
    """Sufficient sums of a log of T rows for all 2^G policies, by (logging way, action, group)."""

    def __init__(self, groups: Groups) -> None:
        self.groups, self.rounds = groups, 0
        self.weights = groups.weights
        self.counts = np.zeros_like(groups.chances)
        self.losses = np.zeros_like(groups.chances)  # Σ y, y in {-1, 0}
        self.logged = np.zeros_like(groups.chances[:, 0])  # rounds in which a way would have acted, [2, G]

    def add(self, ways: Bools, rounds: int, generator: np.random.Generator) -> None:
        """Add `rounds` rounds in which the policy with these ways [G] acts."""
        groups, own = self.groups, (ways.astype(np.int64), np.arange(len(ways)))
        rest = max(0.0, 1 - groups.masses.sum())
        visits = generator.multinomial(rounds, np.append(groups.masses, rest))[:-1]
        ones = generator.binomial(visits, groups.chances[own[0], 1, own[1]])
        for action, taken in ((0, visits - ones), (1, ones)):
            self.counts[own[0], action, own[1]] += taken
            self.losses[own[0], action, own[1]] -= generator.binomial(taken, groups.means[action])
        self.logged[own] += rounds
        self.rounds += rounds

    def clipped(self, alpha: float) -> Floats:
        """min(w, α) - 1, [way, logging way, action, G]"""
        return np.asarray(clip_weights(self.weights, alpha) - 1)

    def moments(self, alpha: float) -> tuple[Floats, Floats]:
        """Return the parts of R̂ and of σ̂², [2 ways, G] each."""
        weights = self.clipped(alpha)
        risks, variances = (weights * self.losses).sum(axis=(1, 2)), (weights**2 * self.counts).sum(axis=(1, 2))
        return risks / self.rounds, variances / self.rounds

    def squares(self, alpha: float) -> Floats:
        """The parts of ρ̂², the mean of the squared losses ℓ² = (min(w, α) - 1)² y², [2 ways, G]."""
        return np.asarray((self.clipped(alpha) ** 2 * -self.losses).sum(axis=(1, 2)) / self.rounds)

    def targets(self, alpha: float) -> Floats:
        """The parts of R_{t,α}, the mean of the losses' conditional means, [2 ways, G]: nothing is sampled in it."""
        groups = self.groups
        means = -groups.masses * groups.chances * groups.means  # [logging way, action, G]
        return np.asarray(((self.clipped(alpha) * means).sum(axis=2) * self.logged).sum(axis=1) / self.rounds)


class Corners(NamedTuple):
    """Policies from the least variance on, group after group turned towards the least risk."""

    start: Bools  # ways of the first, [G]
    turned: Ints  # groups, in the order in which they turn, [m]
    variance: Floats  # of the first and after each turn, [m + 1]
    risk: Floats

    def ways(self, place: int) -> Bools:
        found = self.start.copy()
        found[self.turned[:place]] ^= True
        return found


def corners(risk: Floats, variance: Floats) -> Corners:
    """The lower left corners of all pairs (variance, risk), from their parts [2 ways, G]. Ties stay with way 0."""
    less = variance[1] - variance[0]
    start = (less < 0) | ((less == 0) & (risk[1] < risk[0]))
    sign = np.where(start, -1.0, 1.0)
    gain, cost = sign * (risk[0] - risk[1]), sign * less
    able = np.flatnonzero(gain > 0)  # their cost is > 0
    turned = able[np.argsort(-gain[able] / cost[able], kind="stable")]
    own = (start.astype(np.int64), np.arange(len(start)))
    return Corners(
        start,
        turned,
        variance[own].sum() + np.concatenate([[0.0], np.cumsum(cost[turned])]),
        risk[own].sum() - np.concatenate([[0.0], np.cumsum(gain[turned])]),
    )


def least(risk: Floats, variance: Floats, penalty: Phi) -> tuple[float, Bools]:
    """Return the least R̂ + Φ(σ̂²) of all 2^G policies, and the ways of that policy."""
    found = corners(risk, variance)
    values = found.risk + _core.penalties(found.variance, *penalty)
    best = int(np.argmin(values))
    return float(values[best]), found.ways(best)


def highest_within(gain: Floats, square: Floats, radius: float) -> float:
    """A number that no policy's gain exceeds if its squares are at most radius²; -∞ where there is no such policy.

    The upper hull of the pairs (squares, gain), which at its corners is reached.
    """
    hull = corners(-gain, square)
    if hull.variance[0] > radius**2:
        return -np.inf
    return float(np.interp(radius**2, hull.variance, -hull.risk))


class GroupSchedule(NamedTuple):
    """Algorithm 1's α_t, δ_t and Φ. `clip`: a fixed level instead of Theorem 1's α_t; ∞: no clipping."""

    beta: float
    p: float
    scale: float = 1.0  # λ
    clip: float | None = None

    def penalty(self, t: float) -> Phi:
        alpha = clip_level(t, self.beta, self.p) if self.clip is None else self.clip
        return Phi(alpha, t, log_inverse_confidence(t, DELTA), self.p, self.scale)


def solving_rounds(rounds: int, growth: float) -> Ints:
    """Return the rounds of solves: whenever the log has grown by the factor `growth`, and the last round."""
    first = np.arange(1, min(math.ceil(1 / (growth - 1)), rounds) + 1)
    steps = max(0.0, np.log(rounds / first[-1])) / np.log(growth)
    late = first[-1] * growth ** np.arange(1, np.floor(steps) + 1)
    return np.unique(np.concatenate([first, late.astype(np.int64), [rounds]]))
