"""Uniform choice, and ε-greedy on models of the reward that are fitted to the whole history."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from o2pl.features import Chain
from o2pl.interactions import Decision
from o2pl.learners.member import LINEAR
from o2pl.learners.rivals.discrete import DiscreteLearner
from o2pl.learners.rivals.models import Link, check_link, fit_per_action, predict_per_action
from o2pl.log import Log
from o2pl.objectives.terms import PRIOR_ROWS
from o2pl.policies.sampling import mix_uniform
from o2pl.protocols import FeatureMap, Floats, Seed
from o2pl.validation import check_number, check_reward, check_reward_range


class Uniform(DiscreteLearner):
    """Every action with probability 1/K, whatever the context; learns nothing."""

    features: FeatureMap = Chain()

    def __init__(self, n_actions: int, *, random_state: Seed = None) -> None:
        self.n_actions = n_actions
        self.random_state = random_state

    def _begin(self, width: int, n_features: int) -> None:
        pass

    def _decide(self, features: Floats) -> Decision:
        return Decision(int(self._stream.next() * self.n_actions), 1 / self.n_actions)

    def _learn(self, row: Floats, action: int, reward: float, propensity: float) -> None:
        pass


@dataclass(eq=False, repr=False)
class EpsilonGreedy(DiscreteLearner):
    """The best action by one model per action, or with probability ε any action. Ties go to the first.

    The models are fitted to the whole history, on the features' statistics of that moment, whenever the history has
    grown by `growth`; in between nothing changes. (Ridge models brought up to date every round earned no more and took
    no less time.) An action never tried is predicted at the mean reward so far, with three best rewards added to it, so
    that an action that has failed falls behind those not tried.

    Parameters
    ----------
    n_actions
        K.
    epsilon
        ε in [0, 1]; 0 is greedy.
    model
        "ridge" or "logistic" (rewards as shares of the reward range).
    l2
        Of the models' weights; > 0.
    features
        The feature map; running standardisation and an intercept unless said otherwise.
    growth
        A fit when the history has grown by this factor; 1 fits after every round.
    reward_range
        The lowest and the highest reward there can be.
    random_state
        Seed, numpy Generator or None.
    """

    n_actions: int
    _: KW_ONLY
    epsilon: float = 0.0
    model: Link = "ridge"
    l2: float = 1.0
    features: FeatureMap = LINEAR
    growth: float = 1.05
    reward_range: tuple[float, float] = (0.0, 1.0)
    random_state: Seed = None

    def _begin(self, width: int, n_features: int) -> None:
        check_link("model", self.model)
        check_number("epsilon", self.epsilon, 0, 1)
        check_number("l2", self.l2, 0, open_low=True)
        check_number("growth", self.growth, 1)
        self._range = check_reward_range(self.reward_range)
        self._log = Log(width, n_actions=self.n_actions, reward_range=self._range)
        self._weights: Floats = np.zeros((self.n_actions, n_features))  # [K, d]
        self._level, self._next_fit, self._fitted = 1.0, 1, 0

    def _decide(self, features: Floats) -> Decision:
        best = int(np.argmax(predict_per_action(self.model, self._weights, features[None], self._level)[0]))
        if self.epsilon == 0:
            return Decision(best, 1.0)
        share = self.epsilon / self.n_actions
        uniform = self._stream.next()
        action = int(uniform / share) if uniform < self.epsilon else best
        action = min(action, self.n_actions - 1)
        return Decision(action, float(mix_uniform(float(action == best), self.epsilon, 1 / self.n_actions)))

    def _check_reward(self, reward: Any) -> None:
        check_reward(reward, self._range)

    def _learn(self, row: Floats, action: int, reward: float, propensity: float) -> None:
        self._log.append(row[0], action, reward, propensity)
        if len(self._log) >= self._next_fit:
            self._fit()

    def _fit(self) -> None:
        rows = self._log.columns
        n, shares = len(rows), -rows.losses  # rewards as shares of their range, [0, 1]
        self._observe(rows.contexts[self._fitted :])
        self._level = (float(shares.sum()) + PRIOR_ROWS) / (n + PRIOR_ROWS)
        features = self.features.transform(self._seen, rows.contexts)
        self._weights = fit_per_action(
            self.model, features, rows.actions, shares, self.n_actions, self.l2, self._level, self._weights
        )
        self._fitted, self._next_fit = n, max(n + 1, math.ceil(self.growth * n))
