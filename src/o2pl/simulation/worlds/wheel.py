"""The wheel bandit: a safe action in the middle, one excellent action per quadrant at the rim."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl.protocols import Floats
from o2pl.simulation.worlds.rounds import TableRounds, check_rounds, require_for_rounds
from o2pl.storage import storable

DEVIATIONS = 6  # standard deviations of the noise from the outermost means to the ends of the reward range


@storable
@dataclass(frozen=True)
class Wheel:
    """Contexts x uniform on the unit disk, five actions, rewards N(mean, noise²).

    means = (μ1, μ2, μ3). Action 0 has mean μ1 everywhere. Actions 1 to 4 have mean μ2 < μ1, except that outside
    |x| ≤ δ the one of x's quadrant has μ3 > μ1: action 1 for (+, +), 2 for (+, -), 3 for (-, +), 4 for (-, -).

    Rewards are clipped to `reward_range`, six standard deviations beyond the outermost means. That changes a mean by
    less than 2e-10 standard deviations, which `expected` ignores: it gives μ1, μ2 and μ3.
    """

    delta: float = 0.95
    means: tuple[float, float, float] = (1.2, 1.0, 50.0)
    noise: float = 0.01
    n_actions = 5

    def __post_init__(self) -> None:
        require_for_rounds(0 <= self.delta <= 1, "delta", self.delta, "a radius in [0, 1]")
        require_for_rounds(self.noise >= 0, "noise", self.noise, "a deviation ≥ 0")
        fine = len(self.means) == 3 and self.means[1] < self.means[0] < self.means[2]
        require_for_rounds(fine, "means", self.means, "(μ1, μ2, μ3) with μ2 < μ1 < μ3")

    @property
    def reward_range(self) -> tuple[float, float]:
        slack = DEVIATIONS * self.noise
        return min(self.means) - slack, max(self.means) + slack

    @property
    def best_value(self) -> float:
        """Return the mean reward of the best policy: the rim has probability 1 - δ²."""
        safe, _, rim = self.means
        return self.delta**2 * safe + (1 - self.delta**2) * rim

    def sample(self, rounds: int, generator: np.random.Generator) -> TableRounds:
        n = check_rounds(rounds)
        radius = np.sqrt(generator.random(n))  # P(|x| ≤ r) = r²
        angle = 2 * np.pi * generator.random(n)
        contexts = (radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)).astype(np.float32)
        expected = self._means_at(contexts.astype(np.float64))
        rewards = expected + self.noise * generator.standard_normal(expected.shape)
        return TableRounds(contexts, np.clip(rewards, *self.reward_range), expected)

    def _means_at(self, x: Floats) -> Floats:
        """Return the means of all actions, [n, 5]."""
        safe, inner, rim = self.means
        means = np.full((len(x), self.n_actions), inner)
        means[:, 0] = safe
        outside = np.flatnonzero(np.hypot(x[:, 0], x[:, 1]) > self.delta)
        quadrant = 2 * (x[outside, 0] < 0) + (x[outside, 1] < 0)
        means[outside, 1 + quadrant] = rim
        return means
