"""Counterfactual risk minimisation: importance-weighted losses with a variance penalty, and its learners.

With the ratio ρ = π(a|x)/q, clipped at M (POEM), and implicit exploration τ (SCRM's IPS-IX):

    w = min(ρ, M) / (1 + τ min(ρ, M)),        for M = ∞:  w = π / (q + τ π) ≤ 1/τ
    V = mean(w ℓ) + λ √(Var(w ℓ) / n) + l2 |θ|² / (2n)

The losses ℓ are not centred, so their encoding matters: {-1, 0} and {0, 1} lead to different policies.
"""

from __future__ import annotations

import math
import sys
from abc import ABC
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from o2pl.data.interactions import Interactions
from o2pl.engine.member import LINEAR
from o2pl.engine.stream import UniformStream
from o2pl.errors import InvalidInput
from o2pl.learners.params import Parameters
from o2pl.objectives.weights import clip_weights, importance_weights
from o2pl.oracles.lbfgs import LBFGS
from o2pl.policies.likelihood import log_likelihood, probabilities
from o2pl.policies.sampling import sample_rows
from o2pl.protocols import Array, FeatureMap, Floats, Ints, Policy, Seed, State, ValueAndGradient
from o2pl.validation import (
    check_actions,
    check_contexts,
    check_continuous_actions,
    check_count,
    check_lengths,
    check_number,
    check_pair,
    check_propensities,
    check_reward_range,
    check_rewards,
)

_SOLVER = LBFGS(iterations=200, tolerance=1e-6)
_LARGEST = 1e100  # cap of the ratio: its square is still finite
_TINY = 1e-12  # smaller standard deviations count as 0


@dataclass(frozen=True)
class CounterfactualRisk:
    """V as a function of the log probabilities of the logged actions, and ∂V/∂ log π."""

    losses: Floats  # [n]
    propensities: Floats  # [n]
    penalty: float = 0.0  # λ
    clip: float = math.inf  # M
    tau: float = 0.0

    def __call__(self, log_prob: Floats) -> tuple[float, Floats]:
        ratios = importance_weights(log_prob.astype(np.float64), self.propensities)
        cut = clip_weights(ratios, min(self.clip, _LARGEST))
        weights = cut / (1 + self.tau * cut)
        slopes = np.where(ratios < self.clip, weights * (1 - self.tau * weights), 0.0)  # ∂w/∂ log π
        terms, n = weights * self.losses, len(weights)
        centred = terms - terms.mean()
        error = math.sqrt(float(centred @ centred) / max(n - 1, 1) / n)  # √(Var / n)
        value = float(terms.mean()) + self.penalty * error
        pull = 1 / n + self.penalty * centred / (max(n - 1, 1) * n * max(error, _TINY))  # ∂V/∂ terms
        return value, pull * self.losses * slopes


def counterfactual_value(
    policy: Policy, features: Floats, actions: Array, risk: CounterfactualRisk, l2: float = 0.0
) -> ValueAndGradient:
    """Return the function θ -> V(π_θ) + l2 |θ|² / (2n) with its gradient."""
    shrink = l2 / len(actions)

    def value_and_gradient(params: Floats) -> tuple[float, Floats]:
        log_prob, pullback = log_likelihood(policy, params, features, actions)
        value, cotangent = risk(log_prob)
        return value + 0.5 * shrink * float(params @ params), pullback(cotangent) + shrink * params

    return value_and_gradient


class Solved(NamedTuple):
    params: Floats
    penalty: float


def solve_counterfactual(
    policy: Policy,
    features: Floats,
    actions: Array,
    risk: CounterfactualRisk,
    penalties: Sequence[float],
    start: Floats,
    l2: float = 0.0,
    held: Ints | None = None,
) -> Solved:
    """Minimise from `start`. Of several penalties, use the one with the lowest mean(wℓ) on the held-out rows `held`.

    The last solve, with that penalty, uses all rows.
    """
    best = penalties[0]
    if len(penalties) > 1 and held is not None and len(held) < len(actions):
        kept = np.setdiff1d(np.arange(len(actions)), held)
        risks = []
        for penalty in penalties:
            train = replace(_counterfactual_rows(risk, kept), penalty=penalty)
            found = _SOLVER(counterfactual_value(policy, features[kept], actions[kept], train, l2), start)
            log_prob, _ = log_likelihood(policy, found.params, features[held], actions[held])
            risks.append(replace(_counterfactual_rows(risk, held), penalty=0.0)(log_prob)[0])
        best = penalties[int(np.argmin(risks))]
    found = _SOLVER(counterfactual_value(policy, features, actions, replace(risk, penalty=best), l2), start)
    return Solved(found.params, best)


def _counterfactual_rows(risk: CounterfactualRisk, rows: Array) -> CounterfactualRisk:
    return replace(risk, losses=risk.losses[rows], propensities=risk.propensities[rows])


@dataclass(eq=False, repr=False)
class CounterfactualLearner(Parameters, ABC):
    """Base class of CRM and SCRM: settings, checks, and the current policy."""

    policy: Any
    _: KW_ONLY
    penalty: float | Sequence[float] = 0.1
    clip: float | None = 100.0
    tau: float = 0.0
    l2: float = 0.1
    validation: float = 0.25
    features: FeatureMap = LINEAR
    reward_range: tuple[float, float] | None = (0.0, 1.0)
    loss_range: tuple[float, float] = (-1.0, 0.0)
    start: ArrayLike | None = None
    random_state: Seed = None
    _seen: State | None = field(default=None, init=False)
    _width: int | None = field(default=None, init=False)

    @property
    def _discrete(self) -> bool:
        return hasattr(self.policy, "n_actions")

    @property
    def params_(self) -> Floats:
        """The parameters θ of the current policy."""
        self._begun()
        return self._params

    @property
    def penalty_(self) -> float:
        """The penalty λ of the last solve."""
        self._begun()
        return self._penalty

    def _begun(self) -> State:
        if self._seen is None:
            raise AttributeError(f"this {type(self).__name__} has seen no data")
        return self._seen

    def _begin(self, width: int) -> None:
        if not hasattr(self.policy, "forward"):
            raise InvalidInput(f"policy: found {self.policy!r}, expected one such as Softmax(3) or Gaussian()")
        if self._discrete:
            check_count("n_actions of the policy", self.policy.n_actions)
        self._penalties = np.atleast_1d(np.asarray(self.penalty, np.float64)).tolist()
        for penalty in self._penalties or [None]:
            check_number("penalty", penalty, 0)
        check_number("tau", self.tau, 0)
        check_number("l2", self.l2, 0)
        check_number("validation", self.validation, 0, 1, open_low=True)
        clip = math.inf if self.clip is None else check_number("clip", self.clip, 0, open_low=True)
        self._weighing = CounterfactualRisk(np.empty(0), np.empty(0), 0.0, clip, self.tau)
        n_features = self.features.width(width)
        self._params: Floats = self.policy.init(n_features)
        if self.start is not None:
            given = np.asarray(self.start, np.float64).reshape(-1)
            if given.shape != self._params.shape or not np.isfinite(given).all():
                raise InvalidInput(f"start: found {self.start!r}, expected {len(self._params)} finite numbers")
            self._params = given
        self._penalty: float = self._penalties[0]
        self._stream = UniformStream(self.random_state)
        self._seen, self._width = self.features.init(width), width

    def _checked(
        self, contexts: ArrayLike, actions: ArrayLike, rewards: ArrayLike, propensities: ArrayLike
    ) -> Interactions:
        rows = check_contexts(contexts, self._width)
        checked = check_actions(actions, self.policy.n_actions) if self._discrete else check_continuous_actions(actions)
        losses = self._losses(rewards)
        probabilities = check_propensities(propensities, density=not self._discrete)
        check_lengths(contexts=rows, actions=checked, rewards=losses, propensities=probabilities)
        # Losses in this encoding; rewards are their negatives, without a range.
        return Interactions.trusted(rows, checked, -losses, probabilities, continuous=not self._discrete)

    def _losses(self, rewards: ArrayLike) -> Floats:
        if self.reward_range is None:
            return -check_rewards(rewards, (-sys.float_info.max, sys.float_info.max))
        low, high = check_reward_range(self.reward_range)
        best, worst = check_pair("loss_range", self.loss_range)
        return best + (worst - best) * (high - check_rewards(rewards, (low, high))) / (high - low)

    def _solve(self, rows: Interactions) -> None:
        features = self.features.transform(self._begun(), rows.contexts)
        risk = replace(self._weighing, losses=rows.losses, propensities=rows.propensities)
        held = None
        if len(self._penalties) > 1:
            held = self._stream.take(len(rows)).argsort()[: max(1, round(self.validation * len(rows)))]
        self._params, self._penalty = solve_counterfactual(
            self.policy, features, rows.actions, risk, self._penalties, self._params, self.l2, held
        )

    def _featurise(self, contexts: ArrayLike) -> Floats:
        seen = self._begun()
        return np.asarray(self.features.transform(seen, check_contexts(contexts, self._width)))

    def sample(self, contexts: ArrayLike) -> tuple[Array, Floats]:
        """Draw an action per context from the current policy. Returns actions and propensities (densities)."""
        features = self._featurise(contexts)
        uniforms = self._stream.take(len(features))
        if self._discrete:
            return sample_rows(probabilities(self.policy, self._params, features), uniforms)
        actions, densities = self.policy.sample(self.policy.scores(self._params, features), self._params, uniforms)
        return actions, densities

    def predict(self, contexts: ArrayLike) -> Array:
        """Return the most likely action of each context, [n]; for continuous actions, the mean."""
        if not self._discrete:
            return np.asarray(self.policy.mean(self.policy.scores(self.params_, self._featurise(contexts))))
        return np.asarray(self.predict_proba(contexts).argmax(axis=1))

    def predict_proba(self, contexts: ArrayLike) -> Floats:
        """Return π(·|x), [n, K]."""
        if not self._discrete:
            raise InvalidInput("predict_proba: found a continuous policy, expected a discrete one")
        return probabilities(self.policy, self.params_, self._featurise(contexts))
