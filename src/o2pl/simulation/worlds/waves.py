"""A world whose best action is not a quadratic function of the context: it changes several times with the angle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl.simulation.worlds.rounds import TableRounds, bernoulli_rounds, check_rounds, require_for_rounds
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class Waves:
    """Contexts are normal; the first two numbers have the angle φ; P(reward | a) = 1/2 + gap/2 · cos(waves φ + 2π a/K).

    The other `spare` numbers are irrelevant.
    """

    waves: int = 3
    n_actions: int = 4
    spare: int = 6
    gap: float = 0.9
    reward_range = (0.0, 1.0)

    def __post_init__(self) -> None:
        require_for_rounds(self.waves >= 1, "waves", self.waves, "a number from 1")
        require_for_rounds(self.n_actions >= 2, "n_actions", self.n_actions, "a number from 2")
        require_for_rounds(self.spare >= 0, "spare", self.spare, "a number from 0")
        require_for_rounds(0 < self.gap <= 1, "gap", self.gap, "a number in (0, 1]")

    def sample(self, rounds: int, generator: np.random.Generator) -> TableRounds:
        contexts = generator.normal(size=(check_rounds(rounds), 2 + self.spare)).astype(np.float32)
        angle = np.arctan2(contexts[:, 1], contexts[:, 0]).astype(np.float64)
        shifts = 2 * np.pi * np.arange(self.n_actions) / self.n_actions
        means = 0.5 + 0.5 * self.gap * np.cos(self.waves * angle[:, None] + shifts)
        return bernoulli_rounds(contexts, means, generator)
