"""Bootstrap ensemble: a few logistic models on reweighted histories; a random one decides."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np

from o2pl.data.decisions import Decision
from o2pl.protocols import Floats, Ints
from o2pl.simulation.rivals.discrete import HistoryLearner
from o2pl.simulation.rivals.models import logistic_model_weights, model_logit
from o2pl.validation import check_count, check_number

_POISSON = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(20)])  # P(count ≤ k), mean 1


@dataclass(eq=False, repr=False)
class BootstrapEnsemble(HistoryLearner):
    """Bootstrapped Thompson sampling: in every round, a random member plays its best action.

    Every member has one logistic model per action. In its history a row counts Poisson(1) times, drawn when the row
    arrives. The propensity is the fraction of members that would have played the action.

    Parameters
    ----------
    n_actions
        Number of actions K.
    members
        Number of members.
    l2
        L2 penalty of the models' weights; > 0.
    features, growth, reward_range, random_state
        As for `EpsilonGreedy`.
    """

    _: KW_ONLY
    members: int = 4
    l2: float = 1.0

    def _begin(self, width: int, n_features: int) -> None:
        check_count("members", self.members)
        check_number("l2", self.l2, 0, open_low=True)
        super()._begin(width, n_features)
        self._weights: Floats = np.zeros((self.members, self.n_actions, n_features))
        self._counts: list[Floats] = []  # weight of each row for each member, [n][members]

    def _decide(self, features: Floats) -> Decision:
        choices = np.argmax(self._weights @ np.asarray(features, np.float64), axis=1)  # [members]
        action = int(choices[int(self._stream.next() * self.members)])
        return Decision(action, float(np.mean(choices == action)))

    def _learn(self, row: Floats, action: int, reward: float, propensity: float) -> None:
        self._counts.append(bootstrap_counts(self._stream.take(self.members)))
        super()._learn(row, action, reward, propensity)

    def _fit_to(self, features: Floats, actions: Ints, shares: Floats) -> None:
        X, counts = np.asarray(features, np.float64), np.array(self._counts)
        for member in range(self.members):
            self._weights[member] = logistic_model_weights(
                X,
                actions,
                shares,
                self.n_actions,
                self.l2,
                model_logit(self._level),
                self._weights[member],
                counts[:, member],
            )


def bootstrap_counts(uniforms: Floats) -> Floats:
    """Return Poisson(1) numbers from uniform numbers."""
    return np.searchsorted(_POISSON, uniforms, side="right").astype(np.float64)
