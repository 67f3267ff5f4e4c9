"""SquareCB and FastCB: probabilities from the gaps between predicted rewards, with logistic models."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np

from o2pl.data.decisions import Decision
from o2pl.errors import InvalidInput
from o2pl.protocols import Floats, Ints
from o2pl.simulation.rivals.discrete import HistoryLearner
from o2pl.simulation.rivals.models import fit_models_per_action, predict_models_per_action
from o2pl.validation import check_number

Rule = Literal["square", "fast"]
_LEAST = 1e-6  # smallest predicted loss: FastCB divides by it


@dataclass(eq=False, repr=False)
class InverseGap(HistoryLearner):
    """Inverse gap weighting: actions other than the best have a probability that decreases with their predicted gap.

    Rewards are fractions of their range. One logistic model per action predicts m_a(x); b is the best action, and
    γ = `gamma` · n^`exponent` after n rows:

        "square"   p_a = 1 / (K + γ (m_b - m_a))                         SquareCB (Foster & Rakhlin 2020)
        "fast"     p_a = l_b / (K l_b + γ (l_a - l_b)),  l = 1 - m       FastCB (Foster & Krishnamurthy 2021)

    The models are fitted to the whole history, as in `EpsilonGreedy`.

    Parameters
    ----------
    n_actions
        Number of actions K.
    rule
        "square" or "fast".
    gamma, exponent
        Speed at which exploration decreases: γ = gamma · n^exponent.
    l2
        L2 penalty of the models' weights; > 0.
    features, growth, reward_range, random_state
        As for `EpsilonGreedy`.
    """

    _: KW_ONLY
    rule: Rule = "square"
    gamma: float = 30.0
    exponent: float = 0.5
    l2: float = 1.0

    def _begin(self, width: int, n_features: int) -> None:
        check_inverse_gap_rule(self.rule)
        check_number("gamma", self.gamma, 0)
        check_number("exponent", self.exponent, 0)
        check_number("l2", self.l2, 0, open_low=True)
        super()._begin(width, n_features)
        self._weights: Floats = np.zeros((self.n_actions, n_features))  # [K, d]

    def _decide(self, features: Floats) -> Decision:
        predicted = predict_models_per_action("logistic", self._weights, features[None], self._level)[0]
        return self._drawn(inverse_gap(self.rule, predicted, self.gamma * len(self._log) ** self.exponent))

    def _fit_to(self, features: Floats, actions: Ints, shares: Floats) -> None:
        self._weights = fit_models_per_action(
            "logistic", features, actions, shares, self.n_actions, self.l2, self._level, self._weights
        )


def check_inverse_gap_rule(rule: object) -> Rule:
    if rule not in ("square", "fast"):
        raise InvalidInput(f"rule: found {rule!r}, expected 'square' or 'fast'")
    return rule  # one of the two, checked above


def inverse_gap(rule: Rule, predicted: Floats, gamma: float) -> Floats:
    """Return the probabilities of all actions from their predicted rewards in [0, 1], [K]; ties go to the first."""
    n_actions, best = len(predicted), int(np.argmax(predicted))
    gaps = predicted[best] - predicted
    least = 1.0 if rule == "square" else max(1 - float(predicted[best]), _LEAST)
    probabilities = least / (n_actions * least + gamma * gaps)
    probabilities[best] = 0.0
    probabilities[best] = 1 - probabilities.sum()
    return np.asarray(probabilities)
