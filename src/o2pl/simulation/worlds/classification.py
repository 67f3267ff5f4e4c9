"""Classification as a bandit: the classes are the actions, and only the right one has a reward."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl.protocols import Floats, Ints
from o2pl.simulation.worlds.datasets import Dataset, Source, make_dataset
from o2pl.simulation.worlds.rounds import TableRounds, bernoulli_rounds, check_rounds, require_for_rounds
from o2pl.storage import storable


class OfDataset:
    """Base class of worlds that play the rows of a data set. `source`: the data set, or its location."""

    source: Source
    reward_range = (0.0, 1.0)

    def __post_init__(self) -> None:
        require_for_rounds(
            hasattr(self.source, "load"), "source", self.source, "a data set or a source such as Embedded('iris')"
        )

    @property
    def dataset(self) -> Dataset:
        loaded: Dataset = self.source.load()
        return loaded

    @property
    def n_actions(self) -> int:
        return len(self.dataset.classes)

    def order(self, rounds: int, generator: np.random.Generator) -> Ints:
        """Return the rows to play in random order, at most `rounds`."""
        return generator.permutation(len(self.dataset))[: check_rounds(rounds)]


@storable
@dataclass(frozen=True)
class Classification(OfDataset):
    """The rows of a data set in random order; reward 1 (loss -1) for the right class, 0 for any other.

    The number of rounds is at most the number of rows. With `flip` > 0, every reward is flipped with that probability,
    for noisy logs. `source` is a source of `o2pl.simulation.worlds.datasets`.
    """

    source: Source
    flip: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_for_rounds(0 <= self.flip < 0.5, "flip", self.flip, "a probability in [0, 1/2)")

    @classmethod
    def of(cls, X: object, y: object, flip: float = 0.0) -> Classification:
        """Build a world from arrays. It cannot be saved, since its data has no name."""
        return cls(make_dataset(X, y), flip)

    def sample(self, rounds: int, generator: np.random.Generator) -> TableRounds:
        dataset, order = self.dataset, self.order(rounds, generator)
        means = classification_rewards(dataset.labels[order], self.n_actions, self.flip)
        return bernoulli_rounds(dataset.contexts[order], means, generator)


def classification_rewards(labels: Ints, n_actions: int, flip: float) -> Floats:
    """Return the expected reward of every class: 1 - flip for the right one, flip for the others. [n, K]"""
    means = np.full((len(labels), n_actions), flip)
    means[np.arange(len(labels)), labels] = 1 - flip
    return means
