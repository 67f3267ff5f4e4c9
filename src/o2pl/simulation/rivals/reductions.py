"""Offline learning by reduction to standard problems: IPW-CSC, DM and DR. The deployed policies are greedy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from o2pl.data.interactions import Interactions
from o2pl.engine.member import LINEAR
from o2pl.errors import InvalidInput
from o2pl.learners.params import Parameters
from o2pl.objectives.weights import clip_weights, weight_of
from o2pl.oracles.lbfgs import LBFGS
from o2pl.policies import Softmax
from o2pl.policies.likelihood import log_likelihood, log_probabilities
from o2pl.protocols import FeatureMap, Floats, Ints, Seed, State
from o2pl.simulation.rivals.models import (
    Link,
    check_model_link,
    fit_additive_model,
    fit_models_per_action,
    predict_additive_model,
    predict_models_per_action,
)
from o2pl.validation import check_contexts, check_count, check_number, check_reward_range

_SOLVER = LBFGS(iterations=500, tolerance=1e-6)


@dataclass(eq=False, repr=False)
class OfflineLearner(Parameters, ABC):
    """Base class: `fit` on a log, then `predict` the action with the highest score. Ties go to the first."""

    n_actions: int
    _: KW_ONLY
    l2: float = 1.0
    features: FeatureMap = LINEAR
    reward_range: tuple[float, float] = (0.0, 1.0)
    _seen: State | None = field(default=None, init=False)

    @abstractmethod
    def _solve(self, features: Floats, actions: Ints, rewards: Floats, propensities: Floats) -> None:
        """Learn from the log; rewards are fractions of their range, [0, 1]."""

    @abstractmethod
    def _scores(self, features: Floats) -> Floats:
        """Return the score of each action, [n, K]."""

    def fit(self, contexts: ArrayLike, actions: ArrayLike, rewards: ArrayLike, propensities: ArrayLike) -> Self:
        check_count("n_actions", self.n_actions)
        check_number("l2", self.l2, 0, open_low=True)
        batch = self._checked(contexts, actions, rewards, propensities)
        if not len(batch):
            raise InvalidInput("fit: found no rows, expected at least one")
        width = batch.contexts.shape[1]
        seen = self.features.observe(self.features.init(width), batch.contexts)
        features = self.features.transform(seen, batch.contexts)
        self._solve(features, batch.actions, -batch.losses, batch.propensities)
        self._seen, self._width = seen, width
        return self

    def _checked(
        self, contexts: ArrayLike, actions: ArrayLike, rewards: ArrayLike, propensities: ArrayLike
    ) -> Interactions:
        rows, ends = check_contexts(contexts), check_reward_range(self.reward_range)
        columns: tuple[Any, Any, Any] = actions, rewards, propensities  # Interactions converts them to arrays
        return Interactions(rows, *columns, ends, self.n_actions, False)

    def scores(self, contexts: ArrayLike) -> Floats:
        """Return the scores of all actions, [n, K]: logits (IPW-CSC, DR) or fractions of the reward range (DM)."""
        if self._seen is None:
            raise AttributeError(f"this {type(self).__name__} has seen no data: call fit")
        rows = check_contexts(contexts, self._width)
        return self._scores(self.features.transform(self._seen, rows))

    def predict(self, contexts: ArrayLike) -> Ints:
        """Return the action of each context, [n]."""
        return np.asarray(self.scores(contexts).argmax(axis=1))

    def predict_proba(self, contexts: ArrayLike) -> Floats:
        """Return the deployed policy, [n, K]: probability 1 for the predicted action."""
        return np.eye(self.n_actions)[self.predict(contexts)]


class LinearScores(OfflineLearner):
    """Base class of learners with linear scores x·w_a."""

    _weights: Floats  # [K, d]

    def _scores(self, features: Floats) -> Floats:
        return np.asarray(features @ self._weights.T)


class IPWClassifier(LinearScores):
    """IPW-CSC: cost-sensitive classification by a logistic regression of the actions, weighted by reward / propensity.

    argmin Σ_s (r_s / q_s) (-log π_W(a_s|x_s)) + l2/2 |W|² over the linear softmax; rewards as fractions of their range.

    Parameters
    ----------
    n_actions
        Number of actions K.
    l2
        L2 penalty of the weights; > 0.
    features
        The feature map. Default: standardisation over the log and an intercept.
    reward_range
        Lowest and highest possible reward.
    """

    def _solve(self, features: Floats, actions: Ints, rewards: Floats, propensities: Floats) -> None:
        policy = Softmax(self.n_actions)
        rated = rewards > 0
        X, played, weights = features[rated], actions[rated], (rewards / propensities)[rated]
        total = max(float(weights.sum()), 1.0)  # the solver's tolerance assumes values around 1

        def function(params: Floats) -> tuple[float, Floats]:
            log_prob, pullback = log_likelihood(policy, params, X, played)
            value = -float(weights @ log_prob) + 0.5 * self.l2 * float(params @ params)
            return value / total, (pullback(-weights) + self.l2 * params) / total

        found = _SOLVER(function, policy.init(X.shape[1]))
        self._weights = found.params.reshape(self.n_actions, -1)


@dataclass(eq=False, repr=False)
class DirectMethod(OfflineLearner):
    """DM: model the reward, and take the action with the highest prediction.

    Parameters
    ----------
    model
        "arms": one model per action; "additive": one model of context and action without interactions, which ranks the
        actions equally for every context.
    link
        "ridge" or "logistic".
    level
        Prediction for actions without data, as a fraction of the reward range: "mean" of the log, or a number. The
        models are shrunk towards it.
    n_actions, l2, features, reward_range
        As for `IPWClassifier`.
    """

    _: KW_ONLY
    model: Literal["arms", "additive"] = "arms"
    link: Link = "ridge"
    level: float | str = "mean"

    def _solve(self, features: Floats, actions: Ints, rewards: Floats, propensities: Floats) -> None:
        if self.model not in ("arms", "additive"):
            raise InvalidInput(f"model: found {self.model!r}, expected 'arms' or 'additive'")
        check_model_link("link", self.link)
        self._level = float(rewards.mean()) if self.level == "mean" else check_number("level", self.level, 0, 1)
        fit = fit_models_per_action if self.model == "arms" else fit_additive_model
        self._weights = fit(self.link, features, actions, rewards, self.n_actions, self.l2, self._level)

    def _scores(self, features: Floats) -> Floats:
        if self.model == "arms":
            return predict_models_per_action(self.link, self._weights, features, self._level)
        return predict_additive_model(self.link, self._weights, features, self.n_actions, self._level)


@dataclass(eq=False, repr=False)
class DoublyRobust(LinearScores):
    """DR: the linear softmax with the highest doubly robust value; reward models are cross-fitted.

    Γ_s(a) = q̂(x_s, a) + 1{a = a_s} min(1/q_s, clip) (r_s - q̂(x_s, a_s));
    argmax mean_s Σ_a π_W(a|x_s) Γ_s(a) - l2 |W|² / (2n).

    Parameters
    ----------
    link, model_l2
        Link ("ridge" or "logistic") and L2 penalty of the reward models q̂, one per action.
    folds
        Number of folds; the model of a row is fitted without its fold.
    clip
        The level at which 1/q is clipped, or None.
    random_state
        Seed of the folds.
    n_actions, l2, features, reward_range
        As for `IPWClassifier`.
    """

    _: KW_ONLY
    link: Link = "ridge"
    model_l2: float = 1.0
    folds: int = 5
    clip: float | None = None
    l2: float = 0.1
    random_state: Seed = None

    def _solve(self, features: Floats, actions: Ints, rewards: Floats, propensities: Floats) -> None:
        check_model_link("link", self.link)
        check_number("model_l2", self.model_l2, 0, open_low=True)
        check_number("folds", self.folds, 2)
        if self.clip is not None:
            check_number("clip", self.clip, 0, open_low=True)
        policy, n = Softmax(self.n_actions), len(actions)
        gains = self._gains(features, actions, rewards, propensities)

        def function(params: Floats) -> tuple[float, Floats]:
            log_prob, pullback = log_probabilities(policy, params, features)
            pulled = -np.exp(log_prob) * gains / n  # ∂/∂ log π of -mean Σ π Γ, [n, K]
            value = float(pulled.sum()) + 0.5 * self.l2 / n * float(params @ params)
            return value, pullback(pulled) + self.l2 / n * params

        found = _SOLVER(function, policy.init(features.shape[1]))
        self._weights = found.params.reshape(self.n_actions, -1)

    def _gains(self, features: Floats, actions: Ints, rewards: Floats, propensities: Floats) -> Floats:
        """Return Γ, [n, K]."""
        n = len(actions)
        fold = np.random.default_rng(self.random_state).permutation(n) % min(self.folds, n)
        gains = np.empty((n, self.n_actions))
        for left_out in np.unique(fold):
            rest, own = fold != left_out, fold == left_out
            level = float(rewards[rest].mean()) if rest.any() else 0.0
            fitted = fit_models_per_action(
                self.link, features[rest], actions[rest], rewards[rest], self.n_actions, self.model_l2, level
            )
            gains[own] = predict_models_per_action(self.link, fitted, features[own], level)
        rows = np.arange(n)
        inverse = weight_of(1.0, propensities)  # for a policy that always plays the logged action
        inverse = inverse if self.clip is None else clip_weights(inverse, self.clip)
        gains[rows, actions] += inverse * (rewards - gains[rows, actions])
        return gains
