"""Pessimistic offline learning by value: a lower confidence bound (LCB) of each action's reward; and SNIPS."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from o2pl.data.interactions import Interactions
from o2pl.engine.member import LINEAR
from o2pl.learners.improvement_candidates import improvement_candidate_columns, improvement_candidate_verdicts
from o2pl.learners.incumbent import clone_of_incumbent
from o2pl.learners.params import Parameters
from o2pl.objectives.weights import importance_weights
from o2pl.oracles.lbfgs import LBFGS
from o2pl.policies import Softmax
from o2pl.policies.likelihood import log_likelihood
from o2pl.protocols import FeatureMap, Floats, Ints, Seed
from o2pl.simulation.rivals.models import ridge_model_weights
from o2pl.simulation.rivals.reductions import LinearScores, OfflineLearner
from o2pl.validation import check_number

_SOLVER = LBFGS(iterations=200, tolerance=1e-5)


@dataclass(eq=False, repr=False)
class LowerBound(OfflineLearner):
    """LCB: plays argmax θ_a·φ + level - width √(φᵀ A_a⁻¹ φ), A_a = Σ φφᵀ + l2 I over the action's rows.

    Parameters
    ----------
    width
        Width of the bound, as a fraction of the reward range; 0 is the direct method.
    level
        Prediction for actions without data, as a fraction of the reward range; the models are shrunk towards it.
    n_actions, l2, features, reward_range
        As for `IPWClassifier`.
    """

    _: KW_ONLY
    width: float = 1.0
    level: float = 0.0
    l2: float = 30.0

    def _solve(self, features: Floats, actions: Ints, rewards: Floats, propensities: Floats) -> None:
        check_number("width", self.width, 0)
        level = check_number("level", self.level, 0, 1)
        X = features.astype(np.float64)
        self._weights = ridge_model_weights(X, actions, rewards - level, self.n_actions, self.l2)
        ridge = self.l2 * np.eye(X.shape[1])
        grams = (X[actions == action].T @ X[actions == action] for action in range(self.n_actions))
        self._inverses = [np.linalg.inv(gram + ridge) for gram in grams]  # A⁻¹

    def _scores(self, features: Floats) -> Floats:
        X = features.astype(np.float64)
        squares = np.stack([((X @ inverse) * X).sum(axis=1) for inverse in self._inverses], axis=1)
        return np.asarray(self.level + X @ self._weights.T - self.width * np.sqrt(np.maximum(squares, 0)))


@dataclass(eq=False, repr=False)
class GuardedLowerBound(Parameters):
    """LCB with several widths, selected and compared with the incumbent like the candidates of `SafeImprovement`.

    Parameters
    ----------
    widths
        Widths of the candidates.
    confidence, folds, random_state
        As for `SafeImprovement`.
    n_actions, level, l2, features, reward_range
        As for `LowerBound`.
    """

    n_actions: int
    _: KW_ONLY
    widths: tuple[float, ...] = (0.0, 2.0, 8.0)
    confidence: float = 0.9
    folds: int = 3
    level: float = 0.0
    l2: float = 30.0
    features: FeatureMap = LINEAR
    reward_range: tuple[float, float] = (0.0, 1.0)
    random_state: Seed = None

    def _candidate(self, width: float, rows: Interactions) -> LowerBound:
        settings: dict[str, Any] = {
            "level": self.level,
            "l2": self.l2,
            "features": self.features,
            "reward_range": self.reward_range,
        }
        return LowerBound(self.n_actions, width=width, **settings).fit(*rows)

    def fit(self, contexts: ArrayLike, actions: ArrayLike, rewards: ArrayLike, propensities: ArrayLike) -> Self:
        check_number("folds", self.folds, 2)
        check_number("confidence", self.confidence, 0, below=1, open_low=True)
        rows = LowerBound(self.n_actions, reward_range=self.reward_range)._checked(
            contexts, actions, rewards, propensities
        )

        def learn(places: Ints) -> list[Any]:
            return [self._candidate(width, rows[places]).predict_proba for width in self.widths]

        held = improvement_candidate_columns(learn, rows, self.folds, self.random_state)
        found = improvement_candidate_verdicts(held, self.widths, self.confidence, rows)
        self.verdict_ = max(found, key=lambda each: each.pessimistic)
        self._learner = self._candidate(self.verdict_.penalty, rows)
        self.deploy_ = self.verdict_.deploy
        return self

    def predict_proba(self, contexts: ArrayLike) -> Floats:
        """Return the chosen policy, [n, K]; `deploy_` says whether the log supports it."""
        return self._learner.predict_proba(contexts)

    def predict(self, contexts: ArrayLike) -> Ints:
        return self._learner.predict(contexts)


class SelfNormalised(LinearScores):
    """SNIPS: the linear softmax that maximises Σ w r / Σ w - l2 |W|² / (2n), started at a clone of the logger.

    Parameters
    ----------
    n_actions, l2, features, reward_range
        As for `IPWClassifier`.
    """

    def _solve(self, features: Floats, actions: Ints, rewards: Floats, propensities: Floats) -> None:
        policy, n = Softmax(self.n_actions), len(actions)

        def function(params: Floats) -> tuple[float, Floats]:
            log_prob, pullback = log_likelihood(policy, params, features, actions)
            weights = importance_weights(log_prob.astype(np.float64), propensities)
            total = max(float(weights.sum()), 1e-300)
            value = float(weights @ rewards) / total
            pull = -weights * (rewards - value) / total  # ∂/∂ log π of -Σ w r / Σ w
            return -value + 0.5 * self.l2 / n * float(params @ params), pullback(pull) + self.l2 / n * params

        found = _SOLVER(function, clone_of_incumbent(policy, features, actions))
        self._weights = found.params.reshape(self.n_actions, -1)
