"""A world with a configurable margin, and so a configurable regret exponent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl.policies import ThresholdClass
from o2pl.protocols import Floats
from o2pl.simulation.worlds.rounds import TableRounds, bernoulli_rounds, check_rounds, require_for_rounds
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class Margin:
    """x = s·z, s a fair sign, z ~ Beta(ν, 1); Bernoulli rewards of means 1/2 + gap·x/2 (action 1), 1/2 - gap·x/2 (0).

    The gap between the actions is Δ(x) = gap·|x|, so P(Δ ≤ u) = (u/gap)^ν: the margin exponent is ν, and that of the
    Hölderian error bound β = ν/(ν + 1).
    """

    nu: float = 1.0
    gap: float = 1.0
    n_actions = 2
    reward_range = (0.0, 1.0)

    def __post_init__(self) -> None:
        require_for_rounds(self.nu > 0, "nu", self.nu, "a number > 0")
        require_for_rounds(0 < self.gap <= 1, "gap", self.gap, "a number in (0, 1]")

    @property
    def beta(self) -> float:
        return self.nu / (self.nu + 1)

    def sample(self, rounds: int, generator: np.random.Generator) -> TableRounds:
        n = check_rounds(rounds)
        signs = 1 - 2 * generator.integers(0, 2, n)
        z = generator.random(n) ** (1 / self.nu)  # P(z ≤ u) = u^ν
        contexts = (signs * z).astype(np.float32)[:, None]
        half = 0.5 * self.gap * contexts.astype(np.float64)
        return bernoulli_rounds(contexts, np.hstack([0.5 - half, 0.5 + half]), generator)

    def threshold_values(self, policies: ThresholdClass) -> Floats:
        """Return the exact mean reward of every member of a floored threshold class, [J].

        With floor c and threshold θ it is 1/2 + gap/2 · (1 - 2c) · E[x sign(x - θ)], and the last factor is
        E|x| - 2 E[|x|; x between 0 and θ] = ν/(ν + 1) · (1 - |θ|^(ν+1)) for |θ| ≤ 1, and 0 beyond.
        """
        reach = np.minimum(np.abs(np.asarray(policies.thresholds, np.float64)), 1)
        return 0.5 + 0.5 * self.gap * (1 - 2 * policies.floor) * self.beta * (1 - reach ** (self.nu + 1))

    def best_in_class(self, policies: ThresholdClass) -> float:
        """Return the exact value of the class's best member; with a threshold at 0 it is 1/2 + gap/2 · (1 - 2c) · β."""
        return float(self.threshold_values(policies).max())
