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
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from statistics import NormalDist
from typing import Any, NamedTuple, Self

import numpy as np

from o2pl.action_names import Names
from o2pl.contexts import ContextReader, Records, make_reader
from o2pl.contexts.offers import kind_of_contexts as contexts_kind
from o2pl.contexts.records import are_records
from o2pl.errors import InvalidInput
from o2pl.features import Hashed, Standardise, UserItems
from o2pl.interactions import Interactions, log_or_columns
from o2pl.kernels.registry import featurise, n_inputs
from o2pl.learners.member import LINEAR
from o2pl.learners.params import Parameters
from o2pl.objectives.pessimistic import Pessimistic, PolicyValue
from o2pl.objectives.weights import clip_weights, policy_weights
from o2pl.oracles.lbfgs import LBFGS
from o2pl.policies import ActionWise, Softmax, SparseSoftmax, log_likelihood, log_probabilities
from o2pl.policies.sampling import log_softmax
from o2pl.protocols import Array, FeatureMap, Floats, Ints, Policy, State
from o2pl.rows import ActionSets, SparseRows
from o2pl.validation import (
    check_count,
    check_number,
    check_reward_range,
    to_reward,
)

_SOLVER = LBFGS(iterations=200, tolerance=1e-5)
_CLONE_L2 = 1.0

Probabilities = Callable[[Any], Floats]  # contexts -> [n, K]; flat for action sets
Learn = Callable[[Ints], Sequence[Probabilities]]
Kept = Callable[[str, Callable[[], Floats]], Floats]  # what was computed under a name, or computes it


def _computed(name: str, compute: Callable[[], Floats]) -> Floats:
    """Nothing is kept."""
    return compute()


# -- functions


def random_loss(losses: Floats, propensities: Floats) -> float:
    """What an action drawn at random would have lost: Σ y/q / Σ 1/q, self-normalised."""
    return float(np.average(losses, weights=1 / propensities))


def clone(policy: Any, features: Any, actions: Ints, probabilities: Floats | None = None) -> Floats:
    """The policy that is likeliest to have taken these actions, or that is nearest to known probabilities.

    Those are [n, K], or flat for action sets.
    """
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

    return _SOLVER(function, policy.init(n_inputs(features))).params


def improved(
    policy: Policy, features: Any, rows: Interactions, objective: Pessimistic, start: Floats, control: Any = None
) -> Floats:
    """The parameters of the lowest pessimistic objective, searched for from `start`."""
    return _SOLVER(PolicyValue(policy, features, objective.prepare(rows, control)), start).params


def gains(likelihoods: Floats, rows: Interactions, alpha: float, baseline: float) -> Floats:
    """(min(w, α) - 1)(b - y) of each row, with losses y: its mean is how much more than the logger a policy earns.

    What clipping cuts off is counted at b. [n]
    """
    weights = policy_weights(likelihoods, rows.propensities)
    return np.asarray((clip_weights(weights, alpha) - 1) * (baseline - rows.losses))


def held_out_gains(
    learn: Learn, rows: Interactions, folds: int, alpha: float, seed: Any = None, kept: Kept = _computed
) -> Floats:
    """The gain of each candidate in each row, learned without the row's fold. [candidates, n]

    `learn(places)` learns from those rows, and returns the candidates as functions of contexts. `kept`: for what has
    been computed before.
    """
    n, losses = len(rows), rows.losses
    fold = np.random.default_rng(seed).permutation(n) % folds
    parts = []
    for left_out in range(folds):
        own, rest = np.flatnonzero(fold == left_out), np.flatnonzero(fold != left_out)
        test, baseline = rows[own], random_loss(losses[rest], rows.propensities[rest])

        def found(rest: Ints = rest, test: Interactions = test, baseline: float = baseline) -> Floats:
            played = [_of_actions(policy(test.contexts), test) for policy in learn(rest)]
            return np.stack([gains(each, test, alpha, baseline) for each in played])

        parts.append((own, kept(f"fold{left_out}", found)))
    held = np.empty((len(parts[0][1]), n))
    for own, values in parts:
        held[:, own] = values
    return held


def _of_actions(probabilities: Floats, rows: Interactions) -> Floats:
    """Those of the actions that were taken, [n]."""
    if isinstance(rows.contexts, ActionSets):
        return np.asarray(probabilities[rows.contexts.offsets[:-1] + rows.actions])
    return np.asarray(probabilities[np.arange(len(rows)), rows.actions])


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
    """A policy with the features it reads."""

    policy: Policy
    features: FeatureMap
    seen: State
    params: Floats

    def probabilities(self, contexts: Any, sharpness: float = 1.0) -> Floats:
        """[n, K]; flat for action sets."""
        scores = self.policy.scores(self.params, featurise(self.features, self.seen, contexts))
        sets = contexts.offsets if isinstance(contexts, ActionSets) else None
        return np.exp(log_softmax(sharpness * scores, sets))


# Kinds of contexts: features, and whether they are action sets. The policy is linear in the features.
KINDS: dict[str, tuple[FeatureMap, bool]] = {
    "linear": (LINEAR, False),
    "actionwise": (Standardise(), True),
    "items": (UserItems(), True),
    "hashed": (Hashed(), False),
    "hashed actionwise": (Hashed(), True),
}


def kind_of_contexts(contexts: Any) -> str:
    """Among `KINDS`: what a learner of these contexts would be called; dictionaries are read as rows of numbers."""
    if contexts_kind(contexts) == "offer":
        return "items"
    if are_records(contexts):
        records = contexts if isinstance(contexts, Records) else Records.of(contexts[:1])
        return "linear" if records.sizes is None else "hashed actionwise"
    if isinstance(contexts, ActionSets):
        return "actionwise" if isinstance(contexts.values, np.ndarray) else "hashed actionwise"
    if isinstance(contexts, SparseRows):
        return "hashed"
    ragged = isinstance(contexts, list | tuple) and len(contexts) > 0 and np.ndim(contexts[0]) == 2
    return "actionwise" if ragged else "linear"


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
    policy
        "linear" (rows of numbers, frames, dictionaries), "hashed" (dictionaries whose words need no columns),
        "actionwise" (action sets of numbers) or "hashed actionwise" (action sets of dictionaries). "auto": as the
        contexts are.
    features
        The feature map of the policy; None: its own.
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
    n_actions_, actions_
        K, as given or as the log shows, and the names of the actions, if the log has any.
    """

    n_actions: int | None = None
    _: KW_ONLY
    confidence: float = 0.9
    penalties: Sequence[float] = (0.3, 1.0, 3.0)
    l2: float = 1.0
    sharpness: float = 20.0
    folds: int = 3
    policy: str = "auto"
    features: FeatureMap | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)
    random_state: Any = None
    _chosen: Learned | None = field(default=None, init=False)
    _reader: ContextReader | None = field(default=None, init=False)

    def fit(
        self,
        contexts: Any,
        actions: Any = None,
        rewards: Any = None,
        propensities: Any = None,
        incumbent: Any = None,
        *,
        kept: Kept = _computed,
    ) -> Self:
        """Learn from the incumbent's log: four columns, or one object, `Interactions` or a `Log`.

        `incumbent`: its probabilities of all actions, [n, K] (flat for action sets), if they are known. `kept` is asked
        for what a fold has found before it is computed: for work that must survive a restart.
        """
        given, *_ = log_or_columns(contexts, actions, rewards, propensities)
        self.policy_, features, sets = self._kind(given)
        hashed = (features.bits, features.signed, features.interactions) if isinstance(features, Hashed) else None
        reader = make_reader(None, sets, hashed, offers=isinstance(features, UserItems))
        rows = self._checked(reader, contexts, actions, rewards, propensities)
        users: int | None = None
        if isinstance(features, UserItems):
            users = int(rows.contexts.shared.shape[1])
            features = replace(features, shared=users)
        policy: Any = ActionWise()
        if not sets:
            K = check_count("n_actions", rows.n_actions if self.n_actions is None else self.n_actions)
            policy = (Softmax if hashed is None else SparseSoftmax)(K)
        known = None if incumbent is None else _check_probabilities(incumbent, rows, policy)
        alpha = self._objective(0.0, 0.0).alpha(len(rows))

        def learn(places: Ints) -> list[Probabilities]:
            known_there = None if known is None else _some(known, rows, places)
            _, *candidates = self._learn(policy, features, rows[places], known_there, self.penalties)
            return [partial(each.probabilities, sharpness=self.sharpness) for each in candidates]

        held = held_out_gains(learn, rows, self.folds, alpha, self.random_state, kept)
        low, high = ends = check_reward_range(self.reward_range)
        found = verdicts(held, self.penalties, self.confidence, high - low)
        best = max(found, key=lambda verdict: verdict.lower)
        *_, self._chosen = self._learn(policy, features, rows, known, [best.penalty] if best.deploy else [])
        self.verdicts_, self.verdict_, self.deploy_ = found, best, best.deploy
        self.baseline_ = float(to_reward(random_loss(rows.losses, rows.propensities), ends))
        self.n_actions_, self.actions_ = None if sets else policy.n_actions, () if sets else rows.action_names
        width, offers = n_inputs(rows.contexts), users is not None
        self._reader = make_reader(width, sets, hashed, schema=reader.schema, shared=users, offers=offers)
        return self

    def _kind(self, contexts: Any) -> tuple[str, FeatureMap, bool]:
        """The name of the policy, its features, and whether contexts are action sets."""
        name = kind_of_contexts(contexts) if self.policy == "auto" else self.policy
        if name not in KINDS:
            raise InvalidInput(f"policy: found {name!r}, expected 'auto' or one of {', '.join(KINDS)}")
        features, sets = KINDS[name]
        return name, self.features or features, sets

    def _checked(
        self, reader: ContextReader, contexts: Any, actions: Any, rewards: Any, propensities: Any
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
        known: int | None = self.n_actions
        names: Names = ()
        if isinstance(given, Interactions):
            known, names = given.n_actions if known is None else known, given.action_names
        contexts, actions, rewards, propensities = given
        ends = check_reward_range(self.reward_range)
        read = reader.rows(contexts)
        rows = Interactions(read, actions, rewards, propensities, ends, known, False, action_names=names)
        if rows.action_names and len(rows.action_names) != rows.n_actions:
            raise InvalidInput(
                f"log: found names for {len(rows.action_names)} of {rows.n_actions} actions, expected all"
            )
        if len(rows) < 2 * self.folds:
            raise InvalidInput(f"fit: found {len(rows)} rows, expected at least two for each of {self.folds} folds")
        return rows

    def _learn(
        self, policy: Any, features: FeatureMap, rows: Interactions, known: Floats | None, penalties: Sequence[float]
    ) -> Iterator[Learned]:
        """The clone, then a policy for each penalty."""
        contexts = rows.contexts
        inputs = contexts.inputs if isinstance(contexts, ActionSets) else contexts
        seen = features.observe(features.init(n_inputs(contexts)), inputs)
        X = featurise(features, seen, contexts)
        start = clone(policy, X, rows.actions, known)
        yield Learned(policy, features, seen, start)
        baseline = random_loss(rows.losses, rows.propensities)
        for penalty in penalties:
            params = improved(policy, X, rows, self._objective(penalty, baseline), start)
            yield Learned(policy, features, seen, params)

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
        """The new policy as it would act, [n, K] (flat for action sets); where the incumbent should stay, its clone."""
        return self._probabilities(contexts)[0]

    def predict(self, contexts: Any) -> Array:
        """The likeliest action of each context, by its name where actions have names. [n]"""
        found, rows = self._probabilities(contexts)
        if isinstance(rows, ActionSets):
            return np.array([int(np.argmax(one)) for one in np.split(found, rows.offsets[1:-1])])
        likeliest = np.asarray(found.argmax(axis=1))
        return np.array(self.actions_)[likeliest] if self.actions_ else likeliest

    def _probabilities(self, contexts: Any) -> tuple[Floats, Any]:
        chosen = self._fitted()
        assert self._reader is not None
        rows = self._reader.rows(contexts)
        return chosen.probabilities(rows, self.sharpness_), rows


def _check_probabilities(incumbent: Any, rows: Interactions, policy: Any) -> Floats:
    known, sets = np.asarray(incumbent, np.float64), rows.contexts
    shape = (int(sets.offsets[-1]),) if isinstance(sets, ActionSets) else (len(rows), policy.n_actions)
    if known.shape != shape:
        raise InvalidInput(f"incumbent: found shape {known.shape}, expected {shape}: its probabilities of all actions")
    by_row = np.split(known, sets.offsets[1:-1]) if isinstance(sets, ActionSets) else known
    wrong = [row for row, one in enumerate(by_row) if (one < 0).any() or not abs(one.sum() - 1) < 1e-6]
    if wrong:
        raise InvalidInput(f"incumbent, row {wrong[0]}: found {by_row[wrong[0]]}, expected probabilities that sum to 1")
    return known


def _some(known: Floats, rows: Interactions, places: Ints) -> Floats:
    """Probabilities of these rows."""
    sets = rows.contexts
    return np.asarray(ActionSets(known, sets.offsets)[places].values if isinstance(sets, ActionSets) else known[places])
