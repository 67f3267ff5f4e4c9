"""Uniform choice, and ε-greedy with reward models fitted to the whole history."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from o2pl.data.decisions import Decision
from o2pl.features import Chain
from o2pl.protocols import FeatureMap, Floats, Ints, Seed
from o2pl.simulation.rivals.discrete import DiscreteLearner, HistoryLearner
from o2pl.simulation.rivals.models import Link, check_model_link, fit_models_per_action, predict_models_per_action
from o2pl.validation import check_number


class Uniform(DiscreteLearner):
    """Plays every action with probability 1/K in every context; learns nothing."""

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
class EpsilonGreedy(HistoryLearner):
    """Plays the best action by one reward model per action, or with probability ε a random one. Ties go to the first.

    The models are refitted to the whole history, with the current feature statistics, whenever it has grown by
    `growth`. (Ridge models updated every round earned no more and took no less time.) The prediction for an untried
    action is the mean reward so far with three best rewards added, so that untried actions are preferred to actions
    that failed.

    Parameters
    ----------
    n_actions
        Number of actions K.
    epsilon
        ε in [0, 1]; 0 is greedy.
    model
        "ridge" or "logistic" (rewards as fractions of the reward range).
    l2
        L2 penalty of the models' weights; > 0.
    features
        The feature map. Default: running standardisation and an intercept.
    growth
        Refit when the history has grown by this factor; 1: after every round.
    reward_range
        Lowest and highest possible reward.
    random_state
        Seed, numpy Generator or None.
    """

    _: KW_ONLY
    epsilon: float = 0.0
    model: Link = "ridge"
    l2: float = 1.0

    def _begin(self, width: int, n_features: int) -> None:
        check_model_link("model", self.model)
        check_number("epsilon", self.epsilon, 0, 1)
        check_number("l2", self.l2, 0, open_low=True)
        super()._begin(width, n_features)
        self._weights: Floats = np.zeros((self.n_actions, n_features))  # [K, d]

    def _decide(self, features: Floats) -> Decision:
        best = int(np.argmax(predict_models_per_action(self.model, self._weights, features[None], self._level)[0]))
        return self._mostly(best, self.epsilon)

    def _fit_to(self, features: Floats, actions: Ints, shares: Floats) -> None:
        self._weights = fit_models_per_action(
            self.model, features, actions, shares, self.n_actions, self.l2, self._level, self._weights
        )
