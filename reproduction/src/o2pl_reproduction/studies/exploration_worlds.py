"""Worlds in which a learner has to explore: arms in contexts that say little or nothing, and items that come and go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl.protocols import Floats, Ints
from o2pl.simulation.worlds.rounds import TableRounds, bernoulli_rounds, check_rounds, require_for_rounds
from o2pl.special import expit
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class Arms:
    """Arms with these rates of rewards 0 and 1. The context is 1, or `noise` standard normal numbers.

    Rewards do not depend on the context.
    """

    rates: tuple[float, ...] = (0.5, 0.6)
    noise: int = 0
    reward_range = (0.0, 1.0)

    def __post_init__(self) -> None:
        require_for_rounds(
            len(self.rates) > 1 and all(0 <= each <= 1 for each in self.rates), "rates", self.rates, "rates in [0, 1]"
        )
        require_for_rounds(self.noise >= 0, "noise", self.noise, "a number of features from 0")

    @property
    def n_actions(self) -> int:
        return len(self.rates)

    def sample(self, rounds: int, generator: np.random.Generator) -> TableRounds:
        n = check_rounds(rounds)
        contexts = generator.normal(size=(n, self.noise)) if self.noise else np.ones((n, 1))
        return bernoulli_rounds(contexts.astype(np.float32), np.tile(self.rates, (n, 1)), generator)


@dataclass(frozen=True, eq=False)
class Visits:
    """Visits to a page: who comes, which items are on it, and what each of them would earn."""

    users: Floats  # [n, d]
    items: Floats  # features of all items, [m, d]
    shown: Ints  # the items on the page, [n, live]
    chances: Floats  # of a reward of 1, [n, live]
    uniforms: Floats  # a reward is 1 if this is below its chance, [n]
    born: Ints  # the visit from which an item is on the page, [m]

    def __len__(self) -> int:
        return len(self.users)


@storable
@dataclass(frozen=True)
class Page:
    """A page with `live` items; every `every` visits the `leaving` oldest of them are replaced by new ones.

    A visit of user x to item i earns 1 with log-odds level + quality z_i + taste/√d x'M a_i, with z_i, the features a_i
    and M standard normal. Only x and a_i are seen.
    """

    live: int = 12
    every: int = 30
    leaving: int = 1
    features: int = 4
    level: float = -1.2
    quality: float = 0.7
    taste: float = 0.5

    def __post_init__(self) -> None:
        require_for_rounds(self.live > 1, "live", self.live, "a number of items from 2")
        require_for_rounds(
            1 <= self.leaving <= self.live, "leaving", self.leaving, f"a number of items from 1 to {self.live}"
        )
        require_for_rounds(
            self.every > 0 and self.features > 0, "every, features", (self.every, self.features), "integers from 1"
        )

    def sample(self, visits: int, generator: np.random.Generator) -> Visits:
        n, d = check_rounds(visits), self.features
        periods = (n - 1) // self.every  # in which items were replaced
        m = self.live + periods * self.leaving
        taste, items = generator.normal(size=(d, d)) * self.taste / np.sqrt(d), generator.normal(size=(m, d))
        level = self.level + self.quality * generator.normal(size=m)
        users, uniforms = generator.normal(size=(n, d)), generator.random(n)
        page, shown = generator.permutation(self.live), np.empty((n, self.live), np.int64)
        for t in range(n):
            if t and t % self.every == 0:
                page = np.append(page[self.leaving :], page.max() + 1 + np.arange(self.leaving))
            shown[t] = np.sort(page)
        born = np.append(np.zeros(self.live, np.int64), self.every * (1 + np.arange(m - self.live) // self.leaving))
        log_odds = level[shown] + np.einsum("nd,de,nke->nk", users, taste, items[shown])
        return Visits(users, items, shown, expit(log_odds), uniforms, born)
