"""Logs of an incumbent policy of a given quality on a classification data set, with noisy rewards."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.policies.sampling import mix_uniform, sharpened_before_sampling
from o2pl.protocols import Floats, Ints
from o2pl.simulation.worlds.classification import classification_rewards
from o2pl.simulation.worlds.datasets import Dataset, Source
from o2pl.simulation.worlds.logged import Logged, logistic_logger, write_logged
from o2pl.simulation.worlds.rounds import bernoulli_rounds, check_rounds, require_for_rounds
from o2pl.storage import storable

_TEST_ROWS = 3000  # largest number of rows used to evaluate a policy
_TEST_SHARE, _OWN_SHARE = 0.25, 0.15


@storable
@dataclass(frozen=True)
class IncumbentLog:
    """The incumbent is a logistic regression on separate rows, sharpened and mixed with the uniform policy.

    The generator shuffles and splits the rows: a quarter evaluates policies exactly (at most 3,000 rows), `logger_rows`
    (at most .15 of all) train the incumbent, the rest is for the log. `hidden` is the fraction of features that the
    incumbent does not see; `swapped` the fraction of classes with permuted training labels. Rewards are flipped with
    probability `flip`.
    """

    source: Source
    logger_rows: int = 400
    hidden: float = 0.0
    swapped: float = 0.0
    sharpness: float = 2.0
    epsilon: float = 0.1
    flip: float = 0.2

    def __post_init__(self) -> None:
        require_for_rounds(self.logger_rows >= 2, "logger_rows", self.logger_rows, "an integer from 2")
        require_for_rounds(0 <= self.hidden < 1, "hidden", self.hidden, "a fraction in [0, 1)")
        require_for_rounds(0 <= self.swapped <= 1, "swapped", self.swapped, "a fraction in [0, 1]")
        require_for_rounds(self.sharpness > 0, "sharpness", self.sharpness, "a number > 0")
        require_for_rounds(0 <= self.epsilon <= 1, "epsilon", self.epsilon, "a probability in [0, 1]")
        require_for_rounds(0 <= self.flip < 0.5, "flip", self.flip, "a probability in [0, 1/2)")

    @property
    def n_actions(self) -> int:
        return len(self.source.load().classes)

    @property
    def log_rows(self) -> int:
        """Return the number of rows available for a log."""
        n = len(self.source.load())
        return n - _incumbent_test_rows(n) - _incumbent_own_rows(n)

    def log(self, rows: int, generator: np.random.Generator) -> Logged:
        """Return a log of at most `rows` rows: as many as the data set has."""
        data: Dataset = self.source.load()
        n, k = len(data), self.n_actions
        ends = np.cumsum([_incumbent_test_rows(n), _incumbent_own_rows(n)])
        test, own, rest = np.split(generator.permutation(n), ends)
        rest = rest[: check_rounds(rows)]
        if not len(rest):
            raise InvalidInput(f"{data.name}: found {n} rows, too few to split")
        view = self._view(data, generator)
        choose = logistic_logger(view, _incumbent_rows_of_two_classes(own, view.labels, self.logger_rows))

        def incumbent(part: Ints) -> Floats:
            return np.asarray(
                mix_uniform(sharpened_before_sampling(choose(view.contexts[part]), self.sharpness), self.epsilon, 1 / k)
            )

        logging = incumbent(rest)
        rounds = bernoulli_rounds(
            data.contexts[rest], classification_rewards(data.labels[rest], k, self.flip), generator
        )
        log = write_logged(rounds, logging, generator)
        means = classification_rewards(data.labels[test], k, self.flip)
        return Logged(log, logging, data.contexts[test], means, incumbent(test))

    def _view(self, data: Dataset, generator: np.random.Generator) -> Dataset:
        """Return the data set as seen by the incumbent."""
        d, k = data.contexts.shape[1], len(data.classes)
        seen = np.ones(d, np.bool_)
        seen[generator.permutation(d)[: math.floor(self.hidden * d)]] = False
        taught = np.arange(k)
        if self.swapped:
            some = generator.permutation(k)[: max(2, round(self.swapped * k))]
            taught[some] = np.roll(some, 1)
        contexts = np.where(seen, data.contexts, np.float32(0))
        return replace(data, contexts=contexts, labels=taught[data.labels])


def _incumbent_test_rows(n: int) -> int:
    return min(_TEST_ROWS, math.ceil(_TEST_SHARE * n))


def _incumbent_own_rows(n: int) -> int:
    return min(400, math.floor(_OWN_SHARE * n))


def _incumbent_rows_of_two_classes(own: Ints, labels: Ints, rows: int) -> Ints:
    """Return the first `rows` rows, or more until there are two classes."""
    others = np.flatnonzero(labels[own] != labels[own[0]])
    return own[: max(rows, others[0] + 1 if len(others) else rows)]
