"""One context, two actions: the paper's example of the fastest rate (β = 1) without realisability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl.simulation.worlds.rounds import TableRounds, bernoulli_rounds, check_rounds, require_for_rounds
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class SingleContext:
    """Bernoulli losses in {-1, 0} of means μ0 and μ1 < μ0; the gap is Δ = μ0 - μ1. The context is always 0.

    The policies of the example play action 1 with probability θ ∈ [c, 1 - c]. The best of them is θ = 1 - c; the best
    policy overall, θ = 1, is not in the class.
    """

    mu0: float = -0.4
    mu1: float = -0.6
    n_actions = 2
    reward_range = (0.0, 1.0)
    beta = 1.0

    def __post_init__(self) -> None:
        fine = -1 <= self.mu1 < self.mu0 <= 0
        require_for_rounds(fine, "(mu0, mu1)", (self.mu0, self.mu1), "mean losses with -1 ≤ mu1 < mu0 ≤ 0")

    @property
    def gap(self) -> float:
        return self.mu0 - self.mu1

    def sample(self, rounds: int, generator: np.random.Generator) -> TableRounds:
        n = check_rounds(rounds)
        means = np.tile([-self.mu0, -self.mu1], (n, 1))
        return bernoulli_rounds(np.zeros((n, 1), np.float32), means, generator)

    def value(self, theta: float) -> float:
        """Return the exact mean reward of the policy that plays action 1 with probability θ."""
        return -self.mu0 + theta * self.gap

    def best_in_class(self, floor: float) -> float:
        """Return the value of the best policy with floor c; the excess risk of others is (1 - c - θ) Δ."""
        return self.value(1 - floor)

    def weight_variance(self, theta: float, floor: float) -> float:
        """Return Var(π*/π_θ) under π_θ, (1 - c - θ)² / (θ (1 - θ)): quadratic in the excess risk, hence β = 1."""
        return (1 - floor - theta) ** 2 / (theta * (1 - theta))
