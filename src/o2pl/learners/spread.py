"""How much the rewards of a log differ: what an exploration rule needs to know how many plays tell enough."""

from __future__ import annotations

import math
from typing import NamedTuple

from o2pl.log import Log


class Spread(NamedTuple):
    """Of the rewards in rows `base` to `rows` of a log, as shares of their range; two rows of a coin come first."""

    base: int = 0
    rows: int = 0
    total: float = 0.0  # Σ r
    squares: float = 0.0  # Σ r²

    def extended(self, log: Log, base: int, rows: int) -> Spread:
        """With the log's rows up to `rows`; anew where the base has moved."""
        known = self if base == self.base and rows >= self.rows else Spread(base, base)
        if rows == known.rows:
            return known
        rewards = -log[known.rows : rows].losses
        return Spread(base, rows, known.total + float(rewards.sum()), known.squares + float(rewards @ rewards))

    @property
    def of_rewards(self) -> float:
        """Twice the standard deviation, at most 1."""
        n = self.rows - self.base + 2
        mean = (self.total + 1) / n
        return 2 * math.sqrt(max((self.squares + 1) / n - mean**2, 0.0))
