"""Rounds with all randomness drawn in advance, and checks shared by worlds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.protocols import Floats, Ints


@dataclass(frozen=True, eq=False)
class TableRounds:
    """Rounds of a world with K actions, as tables. Contexts are float32, the same numbers for learners and world."""

    contexts: Floats  # [n, d]
    table: Floats  # [n, K], reward of each action
    expected_table: Floats  # [n, K], exact mean reward given the context

    def __len__(self) -> int:
        return len(self.table)

    def rewards(self, rows: Ints, actions: Ints) -> Floats:
        return np.asarray(self.table[rows, actions])

    def expected(self, rows: Ints, actions: Ints) -> Floats:
        return np.asarray(self.expected_table[rows, actions])

    @property
    def best(self) -> Floats:
        """Return the expected reward of the best action of each round, [n]."""
        return np.asarray(self.expected_table.max(axis=1))


def bernoulli_rounds(contexts: Floats, means: Floats, generator: np.random.Generator) -> TableRounds:
    """Draw rewards 0 or 1 with these means [n, K] for every action of every round."""
    table = (generator.random(means.shape) < means).astype(np.float64)
    return TableRounds(contexts, table, means)


def check_rounds(rounds: object) -> int:
    if not (isinstance(rounds, int | np.integer) and rounds >= 1):
        raise InvalidInput(f"rounds: found {rounds!r}, expected an integer from 1")
    return int(rounds)


def require_for_rounds(fine: bool, name: str, found: object, expected: str) -> None:
    """Check a setting of a world."""
    if not fine:
        raise InvalidInput(f"{name}: found {found!r}, expected {expected}")
