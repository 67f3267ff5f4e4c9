"""Selection among dependent arms: K coordinates, each a two-state Markov chain. Data, not rounds to act in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl.protocols import Floats, Ints
from o2pl.simulation.worlds.rounds import check_rounds, require_for_rounds
from o2pl.storage import storable


@dataclass(frozen=True, eq=False)
class DependentSample:
    """n observations of K arms, X_{t,k} = a_k + b_k S_{t,k} with S a chain on ±1; smaller is better."""

    values: Floats  # [n, K]
    risks: Floats  # a_k, the exact mean of arm k, [K]
    spreads: Floats  # b_k: the variance is b_k², [K]
    correlations: Floats  # χ_k: Cov(X_t, X_{t+1}) = χ_k b_k², [K]

    def excess_risk(self, chosen: Ints | int) -> Floats:
        """Return the excess risk a_k̂ - min_k a_k of the chosen arm (or of several)."""
        return np.asarray(self.risks[chosen] - self.risks.min())


@storable
@dataclass(frozen=True)
class DependentArms:
    """Arms: a_k ~ U[B, 1 - B], b_k ~ U[0, B], χ_k ~ U[0, χ_max]; S_0 a fair sign, P(S stays) = (1 + χ_k)/2."""

    arms: int = 500
    bound: float = 0.25
    max_correlation: float = 0.9

    def __post_init__(self) -> None:
        require_for_rounds(self.arms >= 1, "arms", self.arms, "an integer from 1")
        require_for_rounds(
            0 < self.bound <= 0.5, "bound", self.bound, "a number in (0, 1/2], so that values are in [0, 1]"
        )
        require_for_rounds(0 <= self.max_correlation < 1, "max_correlation", self.max_correlation, "a number in [0, 1)")

    def draw(self, rows: int, generator: np.random.Generator) -> DependentSample:
        """Draw new arms and `rows` observations of each."""
        n, k = check_rounds(rows), self.arms
        risks = generator.uniform(self.bound, 1 - self.bound, k)
        spreads = generator.uniform(0, self.bound, k)
        correlations = generator.uniform(0, self.max_correlation, k)
        stay = np.vstack([np.full(k, 0.5), np.broadcast_to((1 + correlations) / 2, (n - 1, k))])
        steps = np.where(generator.random((n, k)) < stay, 1, -1).astype(np.int8)
        states = np.cumprod(steps, axis=0, dtype=np.int8)  # S_t = S_0 times the flips so far
        return DependentSample(risks + spreads * states, risks, spreads, correlations)
