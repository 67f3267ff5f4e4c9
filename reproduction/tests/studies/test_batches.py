from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from o2pl.simulation.worlds import Pricing
from o2pl_reproduction.studies.batches import batch_sizes, categorical, gaussian, mean_and_deviation, rollouts


class Listening:
    """A learner that only notes what it is given."""

    def __init__(self) -> None:
        self.batches: list[tuple[Any, ...]] = []

    def means(self, contexts: Any) -> Any:
        return np.full(len(contexts), 10.0 * len(self.batches))

    def learn(self, *batch: Any) -> None:
        self.batches.append(batch)


def test_the_logger_collects_the_first_batch_and_the_policy_as_it_stands_the_others() -> None:
    world, rng = Pricing(), np.random.default_rng(0)
    sizes, learner = [300, 500, 700], Listening()
    batches = [world.sample(size, rng) for size in sizes]
    logging = gaussian(lambda contexts: np.full(len(contexts), -5.0), 2.0, rng)
    assert list(rollouts(batches, logging, gaussian(learner.means, 0.5, rng), learner.learn)) == [1, 2, 3]
    for (contexts, actions, rewards, densities), rounds, mean, scale in zip(
        learner.batches, batches, (-5.0, 10.0, 20.0), (2.0, 0.5, 0.5), strict=True
    ):
        assert abs(actions.mean() - mean) < 3.9 * scale / math.sqrt(len(actions))  # level 1e-4
        assert np.allclose(densities, norm.pdf(actions, mean, scale))
        assert (contexts == rounds.contexts).all()
        assert (rewards == rounds.rewards(np.arange(len(rounds)), actions)).all()


def test_classes_are_drawn_with_the_probabilities_that_are_logged() -> None:
    table = np.tile([0.7, 0.1, 0.2], (20_000, 1))
    actions, propensities = categorical(lambda contexts: table, np.random.default_rng(1))(np.zeros((20_000, 1)))
    assert (propensities == table[0][actions]).all()
    for action, probability in enumerate(table[0]):
        error = math.sqrt(probability * (1 - probability) / 20_000)
        assert abs((actions == action).mean() - probability) < 4.1 * error  # level 1e-4 for all three


def test_batch_sizes_are_the_papers_and_stop_at_the_bound() -> None:
    assert batch_sizes("uniform", 1500, 10, 200_000) == [1500] * 10
    assert batch_sizes("doubling", 150, 10, 200_000) == [150 * 2**k for k in range(10)]
    assert batch_sizes("doubling", 150, 10, 1049) == [150, 300]
    assert batch_sizes("doubling", 150, 10, 1050) == [150, 300, 600]
    assert batch_sizes("uniform", 1500, 10, 200) == [200]


def test_deviation_is_that_of_a_seed() -> None:
    assert mean_and_deviation(np.array([1.0, 3.0])) == pytest.approx((2.0, math.sqrt(2)))
    assert math.isnan(mean_and_deviation(np.array([1.0]))[1])
