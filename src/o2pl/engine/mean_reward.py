"""The mean reward of a log, which tells exploration rules how much there is left to gain."""

from __future__ import annotations

from typing import NamedTuple

from o2pl import _core
from o2pl.data.log import Log


class MeanReward(NamedTuple):
    """Mean of rows `base` to `rows` of a log, as a fraction of the reward range, with two pseudo-rows of mean 1/2."""

    base: int = 0
    rows: int = 0
    total: float = 0.0  # Σ r

    def extended(self, log: Log, base: int, rows: int) -> MeanReward:
        """Return the mean including the log's rows up to `rows`; recomputed if the base has moved."""
        known = self if base == self.base and rows >= self.rows else MeanReward(base, base)
        if rows == known.rows:
            return known
        return MeanReward(base, rows, _core.added_up(known.total, log[known.rows : rows].fractions))

    @property
    def value(self) -> float:
        return (self.total + 1) / (self.rows - self.base + 2)
