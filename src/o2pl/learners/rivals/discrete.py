"""What the discrete rivals share: checks at the door, features that never see the future, and one seeded stream."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from o2pl.interactions import Decision
from o2pl.learners.params import Parameters
from o2pl.learners.stream import UniformStream
from o2pl.protocols import FeatureMap, Floats, Seed, State
from o2pl.validation import check_actions, check_context, check_count, check_number, check_propensities


class DiscreteLearner(Parameters, ABC):
    """One of `n_actions` actions per context. The first context says how many features there are.

    Running statistics of the features never see the future: only contexts of updates enter them.
    """

    n_actions: int
    features: FeatureMap
    random_state: Seed
    _width: int | None = None
    _seen: State
    _stream: UniformStream

    @abstractmethod
    def _begin(self, width: int, n_features: int) -> None:
        """Check the settings and make the state, for contexts of this width and this many features."""

    @abstractmethod
    def _decide(self, features: Floats) -> Decision:
        """From one row of features, [d]."""

    @abstractmethod
    def _learn(self, row: Floats, action: int, reward: float, propensity: float) -> None:
        """From one interaction, checked; the context as it came, [1, inputs], not yet observed."""

    def _check_reward(self, reward: Any) -> None:
        check_number("reward", reward, -math.inf)

    def act(self, context: ArrayLike) -> Decision:
        """The action for a context, with the probability with which it was chosen: 1 where nothing is drawn."""
        row = self._door(context)
        return self._decide(self._transform(row))

    def update(self, context: ArrayLike, action: Any, reward: float, propensity: float) -> Self:
        """Learn from one interaction, at once or later."""
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
