"""Improving a policy that is in production, from its own log: what is learned, and whether the log supports it.

The search starts at a clone of the incumbent and is made several times, from little pessimism to much. Each policy is
then held against the incumbent on rows it has not learned from, with the learner's own clipped weights:

    gain = mean (min(w, α) - 1)(r - b),   w = π(a|x) / q of the policy as it would act,   r a share of its range.

b, the value given to what the log does not support, is what an action drawn at random would have earned. It is read off
the log, and it tells a good incumbent from a poor one: far below the log's mean where the incumbent chooses well, near
it where it does not. The policy of the highest lower bound is taken; where no bound is above 0, the incumbent stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from statistics import NormalDist
from typing import Any, NamedTuple, Self

import numpy as np

from o2pl.contexts import DenseReader
from o2pl.errors import InvalidInput
from o2pl.interactions import Interactions, log_or_columns
from o2pl.learners.member import LINEAR
from o2pl.learners.params import Parameters
from o2pl.objectives.pessimistic import Pessimistic, PolicyValue
from o2pl.objectives.weights import clip_weights, policy_weights
from o2pl.oracles.lbfgs import LBFGS
from o2pl.policies import Softmax, log_likelihood, log_probabilities
from o2pl.policies.sampling import log_softmax
from o2pl.protocols import FeatureMap, Floats, Ints, Policy, State
from o2pl.validation import (
    check_count,
    check_number,
    check_reward_range,
    to_reward,
)

_SOLVER = LBFGS(iterations=200, tolerance=1e-5)
_CLONE_L2 = 1.0

Probabilities = Callable[[Floats], Floats]  # contexts [n, d] -> [n, K]
Learn = Callable[[Ints], Sequence[Probabilities]]

# -- functions


def random_loss(losses: Floats, propensities: Floats) -> float:
    """What an action drawn at random would have lost: Σ y/q / Σ 1/q, self-normalised."""
    return float(np.average(losses, weights=1 / propensities))


def clone(policy: Any, features: Floats, actions: Ints, probabilities: Floats | None = None) -> Floats:
    """The policy that is likeliest to have taken these actions, or that is nearest to known probabilities [n, K]."""
    n = len(actions)
    weights: Floats = np.full(n, -1 / n) if probabilities is None else -probabilities / n

    def function(params: Floats) -> tuple[float, Floats]:
        log_prob, pullback = (
            log_likelihood(policy, params, features, actions)
            if probabilities is None
            else log_probabilities(policy, params, features)
        )
        value = float((weights * log_prob).sum()) + 0.5 * _CLONE_L2 / n * float(params @ params)
        return value, pullback(weights) + _CLONE_L2 / n * params

    return _SOLVER(function, policy.init(features.shape[1])).params


def improved(
    policy: Policy, features: Floats, rows: Interactions, objective: Pessimistic, start: Floats, control: Any = None
) -> Floats:
    """The parameters of the lowest pessimistic objective, searched for from `start`."""
    return _SOLVER(PolicyValue(policy, features, objective.prepare(rows, control)), start).params


def gains(likelihoods: Floats, rows: Interactions, alpha: float, baseline: float) -> Floats:
    """(min(w, α) - 1)(b - y) of each row, with losses y: its mean is how much more than the logger a policy earns.

    What clipping cuts off is counted at b. [n]
    """
    weights = policy_weights(likelihoods, rows.propensities)
    return np.asarray((clip_weights(weights, alpha) - 1) * (baseline - rows.losses))


def held_out_gains(learn: Learn, rows: Interactions, folds: int, alpha: float, seed: Any = None) -> Floats:
    """The gain of each candidate in each row, learned without the row's fold. [candidates, n]

    `learn(places)` learns from those rows, and returns the candidates as functions of contexts.
    """
    n, losses = len(rows), rows.losses
    fold = np.random.default_rng(seed).permutation(n) % folds
    parts = []
    for left_out in range(folds):
        own, rest = np.flatnonzero(fold == left_out), np.flatnonzero(fold != left_out)
        test, baseline = rows[own], random_loss(losses[rest], rows.propensities[rest])
        played = [policy(test.contexts)[np.arange(len(own)), test.actions] for policy in learn(rest)]
        parts.append((own, np.stack([gains(each, test, alpha, baseline) for each in played])))
    held = np.empty((len(parts[0][1]), n))
    for own, values in parts:
        held[:, own] = values
    return held


def lower_bound(values: Floats, confidence: float) -> float:
    """Of the mean of these values, by the normal approximation: mean - z √(Var / n)."""
    deviation = float(values.std(ddof=1)) / math.sqrt(len(values))
    return float(values.mean()) - NormalDist().inv_cdf(confidence) * deviation


class Verdict(NamedTuple):
    """What the log says about a policy. Gains are over the incumbent."""

    deploy: bool  # is the lower bound above 0?
    gain: float  # estimated on rows that the policy had not learned from
    lower: float  # with the given confidence, all candidates together
    penalty: float  # λ of the policy, or what its pessimism is called elsewhere


def verdicts(held: Floats, pessimism: Sequence[float], confidence: float, scale: float = 1.0) -> tuple[Verdict, ...]:
    """Of candidates with these gains [candidates, n], in shares of the reward range, which is `scale` wide.

    The lower bounds hold together with this confidence (Bonferroni).
    """
    each = 1 - (1 - confidence) / len(held)
    found = []
    for level, values in zip(pessimism, held, strict=True):
        lower = lower_bound(values, each)
        found.append(Verdict(lower > 0, scale * float(values.mean()), scale * lower, float(level)))
    return tuple(found)


@dataclass(frozen=True)
class Learned:
    """A linear softmax with the features it reads."""

    policy: Softmax
    features: FeatureMap
    seen: State
    params: Floats

    def probabilities(self, contexts: Floats, sharpness: float = 1.0) -> Floats:
        scores = self.policy.scores(self.params, self.features.transform(self.seen, contexts))
        return np.exp(log_softmax(sharpness * scores))


# -- the object users hold


@dataclass(eq=False, repr=False)
class SafeImprovement(Parameters):
    """For "I have a policy in production and its log": a better policy, or the finding that the log supports none.

    `fit` learns; `deploy_` says whether to put the new policy in the incumbent's place, and `verdict_` why. Where it is
    False the incumbent should stay, and `predict_proba` is that of its clone.

    Parameters
    ----------
    n_actions
        K. None: as many as the log shows.
    confidence
        With which a policy must be better than the incumbent: the lower bounds of all candidates hold together with
        this probability, by the normal approximation.
    penalties
        λ of the candidates, from bold to careful.
    l2
        Weight decay: l2 |W|² / (2n) is added to the objective.
    sharpness
        The new policy acts with logits times this: close to its likeliest action.
    folds
        Candidates are judged on each of so many parts of the log, learned from the others.
    features
        The feature map; standardisation over the log and an intercept unless said otherwise.
    reward_range
        The lowest and the highest reward there can be.
    random_state
        Seed of the folds.

    Attributes
    ----------
    deploy_, verdict_
        See `Verdict`.
    verdicts_
        Those of all candidates, in the order of `penalties`.
    baseline_
        b as a reward: what an action drawn at random would have earned.
    n_actions_
        K, as given or as the log shows.
    """

    n_actions: int | None = None
    _: KW_ONLY
    confidence: float = 0.9
    penalties: Sequence[float] = (0.3, 1.0, 3.0)
    l2: float = 1.0
    sharpness: float = 20.0
    folds: int = 3
    features: FeatureMap = LINEAR
    reward_range: tuple[float, float] = (0.0, 1.0)
    random_state: Any = None
    _chosen: Learned | None = field(default=None, init=False)
    _reader: DenseReader = field(default_factory=DenseReader, init=False)

    def fit(
        self,
        contexts: Any,
        actions: Any = None,
        rewards: Any = None,
        propensities: Any = None,
        incumbent: Any = None,
    ) -> Self:
        """Learn from the incumbent's log: four columns, or one object, `Interactions` or a `Log`.

        `incumbent`: its probabilities of all actions, [n, K], if they are known.
        """
        reader = DenseReader()
        rows = self._checked(reader, contexts, actions, rewards, propensities)
        policy = Softmax(check_count("n_actions", rows.n_actions if self.n_actions is None else self.n_actions))
        known = None if incumbent is None else _check_probabilities(incumbent, (len(rows), policy.n_actions))
        alpha = self._objective(0.0, 0.0).alpha(len(rows))

        def learn(places: Ints) -> list[Probabilities]:
            known_there = None if known is None else known[places]
            _, *candidates = self._learn(policy, rows[places], known_there, self.penalties)
            return [partial(each.probabilities, sharpness=self.sharpness) for each in candidates]

        held = held_out_gains(learn, rows, self.folds, alpha, self.random_state)
        low, high = ends = check_reward_range(self.reward_range)
        found = verdicts(held, self.penalties, self.confidence, high - low)
        best = max(found, key=lambda verdict: verdict.lower)
        *_, self._chosen = self._learn(policy, rows, known, [best.penalty] if best.deploy else [])
        self.verdicts_, self.verdict_, self.deploy_ = found, best, best.deploy
        self.baseline_ = float(to_reward(random_loss(rows.losses, rows.propensities), ends))
        self.n_actions_ = policy.n_actions
        reader.width = rows.contexts.shape[1]
        self._reader = reader
        return self

    def _checked(
        self, reader: DenseReader, contexts: Any, actions: Any, rewards: Any, propensities: Any
    ) -> Interactions:
        if self.n_actions is not None:
            check_count("n_actions", self.n_actions)
        check_number("confidence", self.confidence, 0, below=1, open_low=True)
        check_number("sharpness", self.sharpness, 0, open_low=True)
        check_number("folds", self.folds, 2)
        if not len(np.atleast_1d(self.penalties)):
            raise InvalidInput("penalties: found none, expected at least one")
        for penalty in self.penalties:
            Pessimistic(penalty, l2=self.l2)  # says what is wrong with them
        given = log_or_columns(contexts, actions, rewards, propensities)
        known = given.n_actions if self.n_actions is None and isinstance(given, Interactions) else self.n_actions
        contexts, actions, rewards, propensities = given
        ends = check_reward_range(self.reward_range)
        rows = Interactions(reader.rows(contexts), actions, rewards, propensities, ends, known, False)
        if len(rows) < 2 * self.folds:
            raise InvalidInput(f"fit: found {len(rows)} rows, expected at least two for each of {self.folds} folds")
        return rows

    def _learn(
        self, policy: Softmax, rows: Interactions, known: Floats | None, penalties: Sequence[float]
    ) -> Iterator[Learned]:
        """The clone, then a policy for each penalty."""
        seen = self.features.observe(self.features.init(rows.contexts.shape[1]), rows.contexts)
        X = self.features.transform(seen, rows.contexts)
        start = clone(policy, X, rows.actions, known)
        yield Learned(policy, self.features, seen, start)
        baseline = random_loss(rows.losses, rows.propensities)
        for penalty in penalties:
            params = improved(policy, X, rows, self._objective(penalty, baseline), start)
            yield Learned(policy, self.features, seen, params)

    def _objective(self, penalty: float, baseline: float) -> Pessimistic:
        return Pessimistic(penalty, "theory", baseline, self.l2)

    @property
    def params_(self) -> Floats:
        """W of the new policy, or of the clone, flattened."""
        return self._fitted().params

    @property
    def sharpness_(self) -> float:
        """With which `predict_proba` acts: a clone acts as it is."""
        return self.sharpness if self.deploy_ else 1.0

    def _fitted(self) -> Learned:
        if self._chosen is None:
            raise AttributeError("this SafeImprovement has seen no data: call fit")
        return self._chosen

    def predict_proba(self, contexts: Any) -> Floats:
        """The new policy as it would act, [n, K]; where the incumbent should stay, its clone."""
        chosen = self._fitted()
        return chosen.probabilities(self._reader.rows(contexts), self.sharpness_)

    def predict(self, contexts: Any) -> Ints:
        """The likeliest action of each context, [n]."""
        return np.asarray(self.predict_proba(contexts).argmax(axis=1))


def _check_probabilities(incumbent: Any, shape: tuple[int, int]) -> Floats:
    known = np.asarray(incumbent, np.float64)
    if known.shape != shape:
        raise InvalidInput(f"incumbent: found shape {known.shape}, expected {shape}: its probabilities of all actions")
    wrong = np.flatnonzero((known < 0).any(axis=1) | ~(np.abs(known.sum(axis=1) - 1) < 1e-6))
    if len(wrong):
        raise InvalidInput(f"incumbent, row {wrong[0]}: found {known[wrong[0]]}, expected probabilities that sum to 1")
    return known
