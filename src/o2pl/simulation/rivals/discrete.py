"""Base classes of the discrete rivals: input checks, features, random numbers and history."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from o2pl.data.decisions import Decision
from o2pl.data.log import Log
from o2pl.engine.member import LINEAR
from o2pl.engine.stream import UniformStream
from o2pl.learners.params import Parameters
from o2pl.objectives.terms import PRIOR_ROWS
from o2pl.policies.sampling import mix_uniform, sample_rows
from o2pl.protocols import FeatureMap, Floats, Ints, Seed, State
from o2pl.validation import (
    check_actions,
    check_context,
    check_count,
    check_number,
    check_propensities,
    check_reward,
    check_reward_range,
)


class DiscreteLearner(Parameters, ABC):
    """Base class: one of `n_actions` actions per context. The first context sets the number of features.

    Running statistics of the features use only contexts of past updates.
    """

    n_actions: int
    features: FeatureMap
    random_state: Seed
    _width: int | None = None
    _seen: State
    _stream: UniformStream

    @abstractmethod
    def _begin(self, width: int, n_features: int) -> None:
        """Check the settings and create the state for this context width and number of features."""

    @abstractmethod
    def _decide(self, features: Floats) -> Decision:
        """Decide from one row of features, [d]."""

    @abstractmethod
    def _learn(self, row: Floats, action: int, reward: float, propensity: float) -> None:
        """Learn from one checked interaction; row: the raw context, [1, inputs], not observed yet."""

    def _check_reward(self, reward: object) -> None:
        check_number("reward", reward, -math.inf)

    def act(self, context: ArrayLike) -> Decision:
        """Choose an action for a context. Returns it with its probability: 1 for deterministic learners."""
        row = self._door(context)
        return self._decide(self._transform(row))

    def update(self, context: ArrayLike, action: Any, reward: float, propensity: float) -> Self:
        """Learn from one interaction; rewards may arrive late."""
        row = self._door(context)
        if not (isinstance(action, int | np.integer) and 0 <= action < self.n_actions):
            check_actions([action], self.n_actions)
        if not (isinstance(propensity, float | int | np.number) and 0 < propensity <= 1):
            check_propensities([propensity])
        self._check_reward(reward)
        self._learn(row, int(action), float(reward), float(propensity))
        return self

    def _door(self, context: ArrayLike) -> Floats:
        row = check_context(context, self._width)[None]
        if self._width is None:
            self._start(row.shape[1])
        return row

    def _start(self, width: int) -> None:
        check_count("n_actions", self.n_actions)
        self._stream = UniformStream(self.random_state)
        self._seen = self.features.init(width)
        self._begin(width, self.features.width(width))
        self._width = width

    def _observe(self, rows: Floats) -> None:
        self._seen = self.features.observe(self._seen, rows)

    def _transform(self, row: Floats) -> Floats:
        out: Floats = self.features.transform(self._seen, row)[0]
        return out

    def _drawn(self, probabilities: Floats) -> Decision:
        """Draw an action from these probabilities, [K]."""
        actions, propensities = sample_rows(probabilities[None], np.array([self._stream.next()]))
        return Decision(int(actions[0]), float(propensities[0]))

    def _mostly(self, best: int, epsilon: float) -> Decision:
        """Return the best action, or with probability ε a random one."""
        if epsilon == 0:
            return Decision(best, 1.0)
        share = epsilon / self.n_actions
        uniform = self._stream.next()
        action = int(uniform / share) if uniform < epsilon else best
        action = min(action, self.n_actions - 1)
        return Decision(action, float(mix_uniform(float(action == best), epsilon, 1 / self.n_actions)))


@dataclass(eq=False, repr=False)
class HistoryLearner(DiscreteLearner):
    """Keeps all rows, and refits with the current feature statistics when they have grown by `growth`."""

    n_actions: int
    _: KW_ONLY
    features: FeatureMap = LINEAR
    growth: float = 1.05
    reward_range: tuple[float, float] = (0.0, 1.0)
    random_state: Seed = None

    @abstractmethod
    def _fit_to(self, features: Floats, actions: Ints, shares: Floats) -> None:
        """Fit to all rows. shares: rewards as fractions of their range. `_level` is up to date."""

    def _begin(self, width: int, n_features: int) -> None:
        check_number("growth", self.growth, 1)
        self._range = check_reward_range(self.reward_range)
        self._log = Log(width, n_actions=self.n_actions, reward_range=self._range)
        self._level, self._next_fit, self._fitted = 1.0, 1, 0

    def _check_reward(self, reward: object) -> None:
        check_reward(reward, self._range)

    def _learn(self, row: Floats, action: int, reward: float, propensity: float) -> None:
        self._log.append(row[0], action, reward, propensity)
        if len(self._log) >= self._next_fit:
            self._fit()

    def _fit(self) -> None:
        rows = self._log.columns
        n, shares = len(rows), -rows.losses  # rewards as fractions of their range, [0, 1]
        self._observe(rows.contexts[self._fitted :])
        self._level = (float(shares.sum()) + PRIOR_ROWS) / (n + PRIOR_ROWS)  # prediction for untried actions
        self._fit_to(self.features.transform(self._seen, rows.contexts), rows.actions, shares)
        self._fitted, self._next_fit = n, max(n + 1, math.ceil(self.growth * n))
