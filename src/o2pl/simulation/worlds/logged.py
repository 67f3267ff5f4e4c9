"""Logged tasks for offline learning: a world, a logger with exact propensities, and exact values of policies."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.extras import extra
from o2pl.policies.sampling import mix_uniform, sample_rows, sharpened_before_sampling
from o2pl.protocols import Floats, Ints
from o2pl.simulation.worlds.classification import classification_rewards
from o2pl.simulation.worlds.datasets import Dataset, Source
from o2pl.simulation.worlds.rounds import TableRounds, bernoulli_rounds, check_rounds, require_for_rounds
from o2pl.storage import storable

# -- results of a task


class Overlap(NamedTuple):
    """Concentration of a logging policy; all three are means over contexts."""

    minimum: float  # smallest action probability
    maximum: float  # largest action probability
    entropy: float


def overlap(probabilities: Floats) -> Overlap:
    """Return the overlap of a logger's probabilities [n, K]."""
    logs = np.log(np.where(probabilities > 0, probabilities, 1.0))
    entropy = -(probabilities * logs).sum(axis=1)
    return Overlap(
        float(probabilities.min(axis=1).mean()), float(probabilities.max(axis=1).mean()), float(entropy.mean())
    )


@dataclass(frozen=True, eq=False)
class Logged:
    """A log, and contexts with known expected rewards, for the exact `value` of policies."""

    interactions: Interactions  # n rows, rewards in [0, 1]
    logging: Floats  # the logger's probabilities of all actions in these rows, [n, K]
    contexts: Floats  # [m, d], not in the log
    means: Floats  # the expected rewards of all actions there, [m, K]
    logging_there: Floats  # the logger's probabilities there, [m, K]

    def value(self, probabilities: Floats) -> float:
        """Return the exact mean reward of a policy with these probabilities [m, K] at `contexts`."""
        if np.shape(probabilities) != self.means.shape:
            raise InvalidInput(f"probabilities: found shape {np.shape(probabilities)}, expected {self.means.shape}")
        return float((probabilities * self.means).sum(axis=1).mean())

    @property
    def logger_value(self) -> float:
        return self.value(self.logging_there)

    @property
    def oracle_value(self) -> float:
        return float(self.means.max(axis=1).mean())

    @property
    def overlap(self) -> Overlap:
        return overlap(self.logging)


def write_logged(rounds: TableRounds, probabilities: Floats, generator: np.random.Generator) -> Interactions:
    """Return the log of a logger with these probabilities [n, K] in rounds with rewards in [0, 1]."""
    actions, propensities = sample_rows(probabilities, generator.random(len(probabilities)))
    rewards = rounds.rewards(np.arange(len(actions)), actions)
    return Interactions.trusted(rounds.contexts, actions, rewards, propensities, (0.0, 1.0), probabilities.shape[1])


# -- synthetic tasks


def _logged_logistic(logits: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-logits)))


@storable
@dataclass(frozen=True)
class BernoulliTask:
    """Bernoulli rewards whose means depend on x in one of three ways; θ_a and η_a are drawn once, from `seed`.

    "logistic": x ~ N(0, I), mean σ(s x·θ_a), the θ_a about unit length and s = `signal`.
    "linear": x uniform on [-1, 1]^d, mean 1/2 + x·θ_a/2 with |θ_a|₁ = 1, which is in [0, 1] without clipping.
    "misspecified": x ~ N(0, I), mean σ(s (x·θ_a/2 + |x·η_a| - E|x·η_a|)); the even part is invisible to linear models.
    """

    reward: str = "logistic"
    features: int = 10
    n_actions: int = 5
    signal: float = 2.0
    seed: int = 0
    reward_range = (0.0, 1.0)

    def __post_init__(self) -> None:
        known = ("logistic", "linear", "misspecified")
        require_for_rounds(self.reward in known, "reward", self.reward, f"one of {known}")
        require_for_rounds(self.features >= 1, "features", self.features, "an integer from 1")
        require_for_rounds(self.n_actions >= 2, "n_actions", self.n_actions, "an integer from 2")

    def _weights(self) -> tuple[Floats, Floats]:
        generator = np.random.default_rng(self.seed)
        theta, eta = generator.standard_normal((2, self.n_actions, self.features)) / math.sqrt(self.features)
        return theta, eta

    @property
    def weights(self) -> Floats:
        """Return θ, [K, d]."""
        theta, _ = self._weights()
        return theta / np.abs(theta).sum(axis=1, keepdims=True) if self.reward == "linear" else theta

    def draw_contexts(self, rows: int, generator: np.random.Generator) -> Floats:
        shape = (rows, self.features)
        x = generator.uniform(-1, 1, shape) if self.reward == "linear" else generator.standard_normal(shape)
        return x.astype(np.float32)

    def means(self, contexts: Floats) -> Floats:
        """Return the exact expected rewards of all actions, [n, K]."""
        x = contexts.astype(np.float64)
        linear = x @ self.weights.T
        if self.reward == "linear":
            return np.clip(0.5 + 0.5 * linear, 0, 1)  # clip: rounding errors only
        if self.reward == "logistic":
            return _logged_logistic(self.signal * linear)
        _, eta = self._weights()
        even = np.abs(x @ eta.T) - math.sqrt(2 / math.pi) * np.linalg.norm(eta, axis=1)
        return _logged_logistic(self.signal * (0.5 * linear + even))

    def sample(self, rounds: int, generator: np.random.Generator) -> TableRounds:
        contexts = self.draw_contexts(check_rounds(rounds), generator)
        return bernoulli_rounds(contexts, self.means(contexts), generator)


@storable
@dataclass(frozen=True)
class SoftmaxLogger:
    """π(a|x) = (1 - ε) softmax_a(sharpness · x·v_a) + ε/K: no action is ever less likely than ε/K.

    v = quality · θ/|θ| + √(1 - quality²) · noise of the same size: quality 1 knows the direction of the rewards, 0
    knows nothing, -1 has it reversed. The noise is drawn once, from `seed`.
    """

    sharpness: float = 1.0
    epsilon: float = 0.2
    quality: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        require_for_rounds(self.sharpness >= 0, "sharpness", self.sharpness, "a number ≥ 0")
        require_for_rounds(0 <= self.epsilon <= 1, "epsilon", self.epsilon, "a probability in [0, 1]")
        require_for_rounds(-1 <= self.quality <= 1, "quality", self.quality, "a number in [-1, 1]")

    def probabilities(self, contexts: Floats, theta: Floats) -> Floats:
        """Return the probabilities of all actions, [n, K]."""
        noise = np.random.default_rng(self.seed).standard_normal(theta.shape)
        v = self.quality * _unit_rows_logged(theta) + math.sqrt(1 - self.quality**2) * _unit_rows_logged(noise)
        logits = self.sharpness * (contexts.astype(np.float64) @ v.T)
        softmax = np.exp(logits - logits.max(axis=1, keepdims=True))
        softmax /= softmax.sum(axis=1, keepdims=True)
        return np.asarray(mix_uniform(softmax, self.epsilon, 1 / len(theta)))


def _unit_rows_logged(rows: Floats) -> Floats:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


@storable
@dataclass(frozen=True)
class SyntheticLog:
    """Logs of a synthetic task; policies are evaluated on `evaluation_rows` contexts drawn from the task's seed."""

    task: BernoulliTask = BernoulliTask()
    logger: SoftmaxLogger = SoftmaxLogger()
    evaluation_rows: int = 20000

    @property
    def n_actions(self) -> int:
        return self.task.n_actions

    def log(self, rows: int, generator: np.random.Generator) -> Logged:
        rounds = self.task.sample(rows, generator)
        theta = self.task.weights
        logging = self.logger.probabilities(rounds.contexts, theta)
        there = self.task.draw_contexts(self.evaluation_rows, np.random.default_rng([self.task.seed, 1]))
        return Logged(
            write_logged(rounds, logging, generator),
            logging,
            there,
            self.task.means(there),
            self.logger.probabilities(there, theta),
        )


# -- multiclass to bandit


@storable
@dataclass(frozen=True)
class MulticlassLog:
    """Logs of a classification data set: a logistic regression, fitted to some of the rows, chooses classes on others.

    The generator shuffles and splits the rows into three: the logger's (`logger_share`), those for evaluating policies
    (`test_share`, means known exactly), and the log's. The logger's probabilities are sharpened (logits times
    `sharpness`) and mixed with the uniform policy to a floor of ε/K; a class that it has not seen gets the floor.
    Rewards are flipped with probability `flip`.
    """

    source: Source
    logger_share: float = 0.1
    test_share: float = 0.3
    sharpness: float = 1.0
    epsilon: float = 0.1
    flip: float = 0.0

    def __post_init__(self) -> None:
        shares = (self.logger_share, self.test_share)
        fine = min(shares) > 0 and sum(shares) < 1
        require_for_rounds(fine, "(logger_share, test_share)", shares, "fractions > 0 that sum to less than 1")
        require_for_rounds(self.sharpness > 0, "sharpness", self.sharpness, "a number > 0")
        require_for_rounds(0 <= self.epsilon <= 1, "epsilon", self.epsilon, "a probability in [0, 1]")
        require_for_rounds(0 <= self.flip < 0.5, "flip", self.flip, "a probability in [0, 1/2)")

    @property
    def n_actions(self) -> int:
        return len(self.source.load().classes)

    def log(self, rows: int, generator: np.random.Generator) -> Logged:
        """Return a log of at most `rows` rows: as many as remain."""
        data: Dataset = self.source.load()
        k = len(data.classes)
        order = generator.permutation(len(data))
        ends = np.cumsum([math.ceil(self.logger_share * len(data)), math.ceil(self.test_share * len(data))])
        own, test, rest = np.split(order, ends)
        rest = rest[: check_rounds(rows)]
        if not len(rest):
            raise InvalidInput(f"{data.name}: found {len(data)} rows, too few to split")
        choose = logistic_logger(data, own)
        logging, there = (
            mix_uniform(sharpened_before_sampling(choose(data.contexts[part]), self.sharpness), self.epsilon, 1 / k)
            for part in (rest, test)
        )
        rounds = bernoulli_rounds(
            data.contexts[rest], classification_rewards(data.labels[rest], k, self.flip), generator
        )
        means = classification_rewards(data.labels[test], k, self.flip)
        return Logged(write_logged(rounds, logging, generator), logging, data.contexts[test], means, there)


def logistic_logger(data: Dataset, rows: Ints) -> Callable[[Floats], Floats]:
    """Return contexts -> probabilities [n, K] of a logistic regression (L2, C = 1) on these rows, standardised."""
    with extra("experiments", "a logger that is a logistic regression"):
        from sklearn.linear_model import LogisticRegression

    X, y = data.contexts[rows].astype(np.float64), data.labels[rows]
    if len(np.unique(y)) < 2:
        raise InvalidInput(f"{data.name}: found one class in the logger's {len(rows)} rows, expected at least two")
    centre, spread = X.mean(axis=0), X.std(axis=0)
    spread = np.where(spread > 0, spread, 1)
    model = LogisticRegression(max_iter=10000).fit((X - centre) / spread, y)

    def choose(contexts: Floats) -> Floats:
        probabilities = np.zeros((len(contexts), len(data.classes)))
        probabilities[:, model.classes_] = model.predict_proba((contexts - centre) / spread)
        return probabilities

    return choose
