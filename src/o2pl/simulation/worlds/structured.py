"""Classification data sets with other reward structures than 1 for the right class, and with changing classes.

A *structure* defines the value of each action for class c: a table m(c, a) of expected rewards, [K, K], fixed for a
data set, and how rewards are drawn around it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np

from o2pl.protocols import Floats, Ints
from o2pl.simulation.worlds.classification import OfDataset, classification_rewards
from o2pl.simulation.worlds.datasets import Source
from o2pl.simulation.worlds.rounds import TableRounds, bernoulli_rounds, require_for_rounds
from o2pl.storage import storable

Seeded = np.random.Generator


@dataclass(frozen=True)
class Structure:
    """A reward structure: m(c, a) of K classes, from a generator seeded by the data set; and drawn rewards."""

    means: Callable[[int, Seeded], Floats]  # [K, K]
    draw: Callable[[Floats, Floats, Seeded], TableRounds]  # contexts [n, d], means [n, K]


# -- expected rewards


def structured_right_and_wrong(right: float, wrong: float, n_actions: int, _: Seeded) -> Floats:
    """Return m(c, a) = right for a = c, wrong for all others."""
    return np.asarray(wrong + (right - wrong) * np.eye(n_actions))


def structured_several_good(n_actions: int, generator: Seeded) -> Floats:
    """Return m(c, a) = 1 for a = c and for the max(1, ⌊K/4⌋) actions after c in a random cyclic order; 0 for the rest.

    So every action is good for the same number of classes.
    """
    order, means = generator.permutation(n_actions), np.zeros((n_actions, n_actions))
    for step in range(1 + max(1, n_actions // 4)):
        means[order, np.roll(order, -step)] = 1.0
    return means


def structured_grades(n_actions: int, _: Seeded) -> Floats:
    """Return m(c, a) = .5 · .6^δ, δ the distance of a and c on the circle of classes: .5, .3, .18, ..."""
    places = np.arange(n_actions)
    apart = np.abs(places[:, None] - places)
    return np.asarray(0.5 * 0.6 ** np.minimum(apart, n_actions - apart))


def structured_skewed_costs(n_actions: int, generator: Seeded) -> Floats:
    """Return m(c, a) = 1 - cost(c, a) / the largest cost; cost(c, c) = 0, the others log-normal, exp of N(0, 1)."""
    costs = np.exp(generator.standard_normal((n_actions, n_actions)))
    np.fill_diagonal(costs, 0.0)
    return np.asarray(1 - costs / costs.max())


# -- drawn rewards


def _structured_exactly(contexts: Floats, means: Floats, _: Seeded) -> TableRounds:
    """Pay the mean itself."""
    return TableRounds(contexts, means, means)


def _structured_uniformly(contexts: Floats, means: Floats, generator: Seeded) -> TableRounds:
    """Draw rewards uniformly on [0, 2m]."""
    return TableRounds(contexts, 2 * means * generator.random(means.shape), means)


STRUCTURES: Mapping[str, Structure] = MappingProxyType(
    {
        "one-hot": Structure(partial(structured_right_and_wrong, 1.0, 0.0), _structured_exactly),
        "noisy": Structure(partial(structured_right_and_wrong, 0.5, 0.1), bernoulli_rounds),
        "rare": Structure(partial(structured_right_and_wrong, 0.1, 0.01), bernoulli_rounds),
        "several": Structure(structured_several_good, _structured_exactly),
        "graded": Structure(structured_grades, _structured_uniformly),
        "costs": Structure(structured_skewed_costs, _structured_exactly),
    }
)


@storable
@dataclass(frozen=True)
class Structured(OfDataset):
    """The rows of a data set in random order, with one of six reward structures. m(c, a) is the expected reward.

    "one-hot": 1 for the class, else 0.
    "noisy": 1 with probability .5 for the class, with probability .1 for any other action, else 0.
    "rare": 1 with probability .1 for the class, with probability .01 for any other action, else 0.
    "several": 1 for the class and for the max(1, ⌊K/4⌋) actions after it in a cyclic order fixed by the data set; else
    0. "graded": uniform on [0, 2m], m = .5 · .6^δ, δ the distance of action and class on the circle 0, ..., K - 1.
    "costs": 1 - cost/(largest cost); no cost for the class, and for each pair of class and other action a log-normal
    one, exp of N(0, 1), fixed by the data set.

    What is fixed by the data set is drawn from a seed made of its name. The number of rounds is at most the number of
    rows.
    """

    source: Source
    structure: str = "noisy"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_for_rounds(self.structure in STRUCTURES, "structure", self.structure, f"one of {tuple(STRUCTURES)}")

    @property
    def means(self) -> Floats:
        """Return m(c, a), [K, K]."""
        seed = zlib.crc32(self.dataset.name.encode())
        return STRUCTURES[self.structure].means(self.n_actions, np.random.default_rng(seed))

    def sample(self, rounds: int, generator: np.random.Generator) -> TableRounds:
        dataset, order = self.dataset, self.order(rounds, generator)
        means = self.means[dataset.labels[order]]
        return STRUCTURES[self.structure].draw(dataset.contexts[order], means, generator)


# -- worlds that change

CHANGES = ("none", "reversal", "gradual")


@storable
@dataclass(frozen=True)
class Drifting(OfDataset):
    """The rows of a data set in random order, reward 1 for the right class, else 0; classes are renamed over time.

    The new name of class k is (k + ⌊K/2⌋) mod K, so that all change (two classes are swapped). In
    round t of T a row has its new name with probability s(t), independently of the other rounds:
    "none": 0. "reversal": 1 from T/2 on. "gradual": 0 up to T/4, 1 from 3T/4 on, a straight line in between.
    The expected reward of an action is its mean over the two names. T is the number of rounds, at most the number of
    rows.
    """

    source: Source
    change: str = "reversal"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_for_rounds(self.change in CHANGES, "change", self.change, f"one of {CHANGES}")

    def sample(self, rounds: int, generator: np.random.Generator) -> TableRounds:
        dataset, order = self.dataset, self.order(rounds, generator)
        old = dataset.labels[order]
        new = structured_renaming(old, self.n_actions)
        share = structured_new_share(self.change, len(order))
        names = np.where(generator.random(len(order)) < share, new, old)
        paid, before, after = (classification_rewards(labels, self.n_actions, 0.0) for labels in (names, old, new))
        means = (1 - share[:, None]) * before + share[:, None] * after
        return TableRounds(dataset.contexts[order], paid, means)


def structured_renaming(labels: Ints, n_classes: int) -> Ints:
    """Return the new names (k + ⌊K/2⌋) mod K: no class keeps its name. [n]"""
    return np.asarray((labels + n_classes // 2) % n_classes)


def structured_new_share(change: str, rounds: int) -> Floats:
    """Return s(t), the probability of the new name in each round, [rounds]."""
    time = np.arange(rounds) / rounds
    if change == "none":
        return np.zeros(rounds)
    if change == "reversal":
        return (time >= 0.5).astype(np.float64)
    return np.clip(2 * (time - 0.25), 0.0, 1.0)
