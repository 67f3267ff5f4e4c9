"""Worlds with one real-valued action: the Gaussian example, Toy and Pricing. (Advertising is in a separate file.)

Each has a *natural* loss, in which the paper reports, and a reward: the negative loss, clipped to `reward_range`. All
means, natural or clipped, of actions or of Gaussian policies, are exact: closed forms, or a quadrature accurate to 1e-9
for policies with standard deviation up to 2 (at 4, to 1e-4).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.protocols import Array, Floats, Ints
from o2pl.simulation.worlds.moments import (
    moment_normal_density,
    moment_of_capped_square,
    moment_of_clipped,
    moment_of_function,
)
from o2pl.simulation.worlds.rounds import check_rounds, require_for_rounds
from o2pl.storage import storable
from o2pl.validation import check_reward_range

Limits = tuple[float, float]


class ContinuousWorld(ABC):
    """Base class of the worlds. A round's `index` is the number that its expected rewards depend on."""

    n_actions = None
    reward_range: Limits
    natural_range: Limits  # range of the negative natural loss
    logging_scale: float  # the logging policy is N(logging_means(x), logging_scale²)

    @abstractmethod
    def draw(self, rounds: int, generator: np.random.Generator) -> tuple[Floats, Array, Floats]:
        """Draw contexts [n, d], index [n] and noise [n]."""

    @abstractmethod
    def natural_rewards(self, index: Array, noise: Floats, actions: Floats) -> Floats:
        """Return the negative natural loss, [n]."""

    @abstractmethod
    def mean_rewards(self, index: Array, means: Floats, scale: float, limits: Limits) -> Floats:
        """Return the exact mean of natural rewards clipped to `limits`, for actions N(means, scale²). [n]"""

    @abstractmethod
    def best_actions(self, index: Array) -> Floats:
        """Return the action with the largest expected reward, [n]."""

    @abstractmethod
    def logging_means(self, contexts: Floats) -> Floats:
        """Return the mean of the logging policy, [n]."""

    def sample(self, rounds: int, generator: np.random.Generator) -> ContinuousRounds:
        return ContinuousRounds(self, *self.draw(check_rounds(rounds), generator))

    def logging_density(self, contexts: Floats, actions: Floats) -> Floats:
        """Return the exact density of the logging policy, [n]."""
        z = (actions - self.logging_means(contexts)) / self.logging_scale
        return np.asarray(moment_normal_density(z) / self.logging_scale)

    def log(self, rounds: ContinuousRounds, generator: np.random.Generator) -> Interactions:
        """Return the log of the logging policy in these rounds; `rounds.losses` gives natural losses of its actions."""
        noise = generator.standard_normal(len(rounds))
        actions = self.logging_means(rounds.contexts) + self.logging_scale * noise
        rewards = rounds.rewards(np.arange(len(rounds)), actions)
        density = self.logging_density(rounds.contexts, actions)
        return Interactions.trusted(rounds.contexts, actions, rewards, density, self.reward_range, continuous=True)


@dataclass(frozen=True, eq=False)
class ContinuousRounds:
    """Rounds of a world with a real-valued action."""

    world: ContinuousWorld
    contexts: Floats  # [n, d], float32
    index: Array  # [n]
    noise: Floats  # [n]

    def __len__(self) -> int:
        return len(self.contexts)

    def rewards(self, rows: Ints, actions: Floats) -> Floats:
        """Return the negative natural losses, clipped to the world's `reward_range`. [m]"""
        natural = self.world.natural_rewards(self.index[rows], self.noise[rows], np.asarray(actions, np.float64))
        return np.clip(natural, *self.world.reward_range)

    def losses(self, rows: Ints, actions: Floats) -> Floats:
        """Return the natural losses, [m]."""
        natural = self.world.natural_rewards(self.index[rows], self.noise[rows], np.asarray(actions, np.float64))
        return -np.clip(natural, *self.world.natural_range)

    def expected(self, rows: Ints, actions: Floats) -> Floats:
        return self.policy_rewards(rows, actions, 0.0)

    def expected_losses(self, rows: Ints, actions: Floats) -> Floats:
        """Return the exact mean of the natural losses, [m]."""
        return self.policy_losses(rows, actions, 0.0)

    def policy_rewards(self, rows: Ints, means: Floats, scale: float) -> Floats:
        """Return the exact mean reward of a Gaussian policy in each of these rounds, [m]."""
        return self._means(rows, means, scale, self.world.reward_range)

    def policy_losses(self, rows: Ints, means: Floats, scale: float) -> Floats:
        """Return the exact mean natural loss of a Gaussian policy in each of these rounds, [m]."""
        return -self._means(rows, means, scale, self.world.natural_range)

    @property
    def best(self) -> Floats:
        """Return the expected reward of the best action of each round, [n]."""
        return self.expected(np.arange(len(self)), self.world.best_actions(self.index))

    def _means(self, rows: Ints, means: Floats, scale: float, limits: Limits) -> Floats:
        require_for_rounds(scale >= 0, "scale", scale, "a deviation ≥ 0")
        values = self.world.mean_rewards(self.index[rows], np.asarray(means, np.float64), scale, limits)
        return np.clip(values, *limits)  # rounding errors only


@storable
@dataclass(frozen=True)
class GaussianExample(ContinuousWorld):
    """Loss (a - y)² - 1, y ~ N(target, noise²), one context; logging policy N(start, logging_scale²).

    The reward is 1 - (a - y)², clipped below at -15.5: at the start, where it is worst, that takes six standard
    deviations. The paper does not give target, noise and start; 1, .3 and 2.5 are those of the method it compares with.
    """

    target: float = 1.0
    noise: float = 0.3
    start: float = 2.5
    logging_scale: float = 0.3
    reward_range: Limits = (-15.5, 1.0)
    natural_range = (-math.inf, 1.0)

    def __post_init__(self) -> None:
        _check_continuous_world(self)
        require_for_rounds(self.noise > 0, "noise", self.noise, "a deviation > 0")

    def draw(self, rounds: int, generator: np.random.Generator) -> tuple[Floats, Array, Floats]:
        y = self.target + self.noise * generator.standard_normal(rounds)
        return np.ones((rounds, 1), np.float32), np.zeros(rounds), y

    def natural_rewards(self, index: Array, noise: Floats, actions: Floats) -> Floats:
        return 1 - (actions - noise) ** 2

    def mean_rewards(self, index: Array, means: Floats, scale: float, limits: Limits) -> Floats:
        # a - y ~ N(mean - target, scale² + noise²); natural: 1 - (mean - target)² - scale² - noise²
        low, high = limits
        off, spread = means - self.target, math.hypot(scale, self.noise)
        least = max(1 - high, 0.0)
        square = least + moment_of_capped_square(off, spread, 1 - low) - moment_of_capped_square(off, spread, least)
        return np.asarray(1 - square)

    def best_actions(self, index: Array) -> Floats:
        return np.full(len(index), self.target)

    def logging_means(self, contexts: Floats) -> Floats:
        return np.full(len(contexts), self.start)


@storable
@dataclass(frozen=True)
class Toy(ContinuousWorld):
    """x ~ N(0, I_d); loss min(-((x·w) a - a² + ε), 0), ε ~ N(0, 1); logging policy N(x·w/2, logging_scale²).

    The paper does not give w. Contexts are rotation invariant, so only its norm matters: w = norm/√d · (1, ..., 1). The
    reward is clipped above at 10, which at norm 1 happens less than once in 10⁷ rounds.
    """

    features: int = 10
    norm: float = 1.0
    logging_scale: float = 0.5
    reward_range: Limits = (0.0, 10.0)
    natural_range = (0.0, math.inf)

    def __post_init__(self) -> None:
        _check_continuous_world(self)
        require_for_rounds(self.features >= 1, "features", self.features, "an integer from 1")

    def _index(self, contexts: Floats) -> Floats:
        """Return x·w."""
        return np.asarray(contexts.sum(axis=1, dtype=np.float64) * (self.norm / math.sqrt(self.features)))

    def draw(self, rounds: int, generator: np.random.Generator) -> tuple[Floats, Array, Floats]:
        contexts = generator.standard_normal((rounds, self.features)).astype(np.float32)
        return contexts, self._index(contexts), generator.standard_normal(rounds)

    def natural_rewards(self, index: Array, noise: Floats, actions: Floats) -> Floats:
        return np.asarray(index * actions - actions**2 + noise)

    def mean_rewards(self, index: Array, means: Floats, scale: float, limits: Limits) -> Floats:
        def of_action(slope: Array, actions: Floats) -> Floats:
            return np.asarray(moment_of_clipped(slope * actions - actions**2, 1.0, *limits))

        return moment_of_function(of_action, index, means, scale)

    def best_actions(self, index: Array) -> Floats:
        return np.asarray(index / 2)

    def logging_means(self, contexts: Floats) -> Floats:
        return self._index(contexts) / 2


@storable
@dataclass(frozen=True)
class Pricing(ContinuousWorld):
    """x uniform on [1, 2]^d, z the mean of its first `relevant` features; price a, demand 2z² - .6 z a.

    Loss min(-(a (2z² - .6 z a) + ε), 0), ε ~ N(0, 1); logging policy N(z, logging_scale²). d = 10 and three relevant
    features are not in the paper. The reward is clipped above at 20, which the best price (5z/3, value z³/.6 ≤ 13.4)
    reaches only with a noise of 6.6 standard deviations.
    """

    features: int = 10
    relevant: int = 3
    logging_scale: float = 1.0
    reward_range: Limits = (0.0, 20.0)
    natural_range = (0.0, math.inf)

    def __post_init__(self) -> None:
        _check_continuous_world(self)
        require_for_rounds(1 <= self.relevant <= self.features, "relevant", self.relevant, f"from 1 to {self.features}")

    def draw(self, rounds: int, generator: np.random.Generator) -> tuple[Floats, Array, Floats]:
        contexts = generator.uniform(1, 2, (rounds, self.features)).astype(np.float32)
        return contexts, self.logging_means(contexts), generator.standard_normal(rounds)

    def natural_rewards(self, index: Array, noise: Floats, actions: Floats) -> Floats:
        return np.asarray(_continuous_revenue(index, actions) + noise)

    def mean_rewards(self, index: Array, means: Floats, scale: float, limits: Limits) -> Floats:
        def of_action(z: Array, prices: Floats) -> Floats:
            return np.asarray(moment_of_clipped(_continuous_revenue(z, prices), 1.0, *limits))

        return moment_of_function(of_action, index, means, scale)

    def best_actions(self, index: Array) -> Floats:
        return np.asarray(index / 0.6)

    def logging_means(self, contexts: Floats) -> Floats:
        return np.asarray(contexts[:, : self.relevant].mean(axis=1, dtype=np.float64))


def _continuous_revenue(z: Array, price: Floats) -> Floats:
    return np.asarray(price * (2 * z**2 - 0.6 * z * price))


def _check_continuous_world(world: ContinuousWorld) -> None:
    low, _ = check_reward_range(world.reward_range)
    lowest = world.natural_range[0]
    require_for_rounds(low >= lowest, "reward_range", world.reward_range, f"rewards from {lowest:g} up")
    require_for_rounds(world.logging_scale > 0, "logging_scale", world.logging_scale, "a deviation > 0")
