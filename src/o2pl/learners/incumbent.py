"""Safe improvement of a policy in production, from its log: the new policy, and whether the log supports it.

The search starts at a clone of the incumbent and is run several times, from little pessimism to much. Each policy is
then compared with the incumbent on held-out rows and judged as everywhere (`evaluation.judgement`), jointly. Of the
policies that are better with confidence, the one with the highest pessimistic gain is chosen. If there is none, the
incumbent stays: the one that was given, or a clone of the logging policy if, on held-out rows, the clone is about as
likely to take its actions as it is. Otherwise there is no policy to save, and that is an error.

b, the loss assumed for what the log does not support while a policy is learned, is what an action drawn at random would
have earned, estimated from the log. It separates a good incumbent from a poor one: it is far below the log's mean if
the incumbent chooses well, and near it if not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np

from o2pl.data.action_names import Names
from o2pl.data.contexts import are_sparse_contexts, as_contexts
from o2pl.data.interactions import Interactions, interactions_or_columns
from o2pl.data.kinds import DICTIONARIES, MATRIX, OFFER, ROW, kind_of_contexts
from o2pl.encode import Encoder
from o2pl.engine.member import LINEAR
from o2pl.errors import InvalidInput
from o2pl.features import Hashed, Standardise, UserItems
from o2pl.kernels.registry import features_for_registered
from o2pl.learners.improvement_candidates import (
    Imitation,
    Kept,
    Probabilities,
    Verdict,
    computed_improvement_candidate,
    imitation_by_improvement_candidate,
    improvement_candidate_columns,
    improvement_candidate_verdicts,
    random_loss_for_improvement_candidates,
    some_rows_of_improvement_candidates,
)
from o2pl.learners.params import Parameters
from o2pl.learners.targets import as_target
from o2pl.objectives.pessimistic import Pessimistic, PolicyValue
from o2pl.oracles.lbfgs import LBFGS
from o2pl.policies import ActionWise, Softmax, SparseSoftmax, log_likelihood, log_probabilities
from o2pl.policies.sampling import log_softmax
from o2pl.protocols import Array, FeatureMap, Floats, Ints, Policy, State
from o2pl.validation import (
    check_count,
    check_number,
    check_reward_range,
    to_reward,
)

_SOLVER = LBFGS(iterations=200, tolerance=1e-5)
_CLONE_L2 = 1.0
_SAME = 1e-6  # probabilities of logged actions that are nearer to the propensities are those of the logger

# -- functions


def clone_of_incumbent(policy: Any, features: Any, actions: Ints, probabilities: Floats | None = None) -> Floats:
    """Return the policy most likely to have taken these actions, or the one closest to known probabilities.

    probabilities: [n, K], or flat for action sets.
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

    return _SOLVER(function, policy.init(as_contexts(features).n_inputs)).params


def improved_incumbent(
    policy: Policy, features: Any, rows: Interactions, objective: Pessimistic, start: Floats, control: Any = None
) -> Floats:
    """Minimise the pessimistic objective from `start`. Returns the parameters."""
    return _SOLVER(PolicyValue(policy, features, objective.prepare(rows, control)), start).params


@dataclass(frozen=True)
class LearnedPolicy:
    """A policy and its features."""

    policy: Policy
    features: FeatureMap
    seen: State
    params: Floats

    def probabilities(self, contexts: Any, sharpness: float = 1.0) -> Floats:
        """Return the probabilities of all actions, [n, K]; flat for action sets."""
        scores = self.policy.scores(self.params, features_for_registered(self.features, self.seen, contexts))
        return np.exp(log_softmax(sharpness * scores, as_contexts(contexts).offsets))


# Kinds of contexts: features, and whether they are action sets. The policy is linear in the features.
KINDS: dict[str, tuple[FeatureMap, bool]] = {
    "linear": (LINEAR, False),
    "actionwise": (Standardise(), True),
    "items": (UserItems(), True),
    "hashed": (Hashed(), False),
    "hashed actionwise": (Hashed(), True),
}


_OF_ITEMS = {OFFER: "items", MATRIX: "actionwise", DICTIONARIES: "hashed actionwise"}


def incumbent_policy_for(contexts: object) -> str:
    """Return the policy class in `KINDS` for these contexts. Dictionaries are encoded as numeric rows."""
    kind = kind_of_contexts(contexts)
    if kind in _OF_ITEMS:
        return _OF_ITEMS[kind]
    return "hashed" if are_sparse_contexts(contexts) else "linear"


# -- the public class


@dataclass(eq=False, repr=False)
class SafeImprovement(Parameters):
    """Safe improvement on a policy in production from its log: a better policy, or the finding that none is supported.

    `fit` learns. `deploy_` says whether to replace the incumbent by the new policy, and `verdict_` why. If it is False,
    keep the incumbent; `predict_proba` is then that of the incumbent.

    Parameters
    ----------
    n_actions
        Number of actions K. None: taken from the log.
    confidence
        Confidence that the new policy is better than the incumbent. The lower bounds of all candidates hold jointly
        with this probability.
    penalties
        λ of the candidates, from little pessimism to much.
    l2
        Weight decay: l2 |W|² / (2n) is added to the objective.
    sharpness
        Factor of the new policy's logits: it acts close to its most likely action.
    folds
        Number of folds of the cross-validation.
    policy
        "linear" (numeric rows, data frames, dictionaries), "hashed" (dictionaries with arbitrary strings), "actionwise"
        (numeric action sets) or "hashed actionwise" (action sets of dictionaries). "auto": chosen by the contexts.
    features
        The feature map of the policy. None: its default.
    reward_range
        Lowest and highest possible reward.
    random_state
        Seed of the folds.

    Attributes
    ----------
    deploy_, verdict_
        See `Verdict`.
    imitation_
        How well a clone acts like the incumbent on held-out rows.
    verdicts_
        The verdicts of all candidates, in the order of `penalties`.
    baseline_
        b as a reward: the mean reward of an action drawn at random.
    n_actions_, actions_
        Number of actions K, and their names if the log has any.
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
    verdict_: Verdict = field(init=False)
    verdicts_: tuple[Verdict, ...] = field(init=False)
    deploy_: bool = field(init=False)
    imitation_: Imitation = field(init=False)
    _incumbent: Any = field(default=None, init=False)
    _chosen: LearnedPolicy | None = field(default=None, init=False)
    _encoder: Encoder | None = field(default=None, init=False)

    def fit(
        self,
        contexts: Any,
        actions: Any = None,
        rewards: Any = None,
        propensities: Any = None,
        incumbent: Any = None,
        *,
        kept: Kept = computed_improvement_candidate,
    ) -> Self:
        """Learn from the incumbent's log: four columns, or one object, `Interactions` or a `Log`.

        `incumbent`: a learner, a function of contexts that returns probabilities, or its probabilities of all actions,
        [n, K] (flat for action sets). None: the logging policy. `kept`: a cache of fold results, for work that must
        survive a restart.
        """
        given, *_ = interactions_or_columns(contexts, actions, rewards, propensities)
        self.policy_, features, sets = self._kind(given)
        hashed = features.encoding if isinstance(features, Hashed) else None
        encoder = Encoder(OFFER if isinstance(features, UserItems) else ROW, items=sets, hashed=hashed)
        rows = self._checked(encoder, contexts, actions, rewards, propensities)
        if isinstance(features, UserItems):
            features = replace(features, shared=encoder.shared or 0)
        policy: Any = ActionWise()
        if not sets:
            K = check_count("n_actions", rows.n_actions if self.n_actions is None else self.n_actions)
            policy = (Softmax if hashed is None else SparseSoftmax)(K)
        known = (
            None
            if incumbent is None
            else _check_incumbent_probabilities(_incumbent_table(incumbent, rows, given), rows, policy)
        )

        def learn(places: Ints) -> list[Probabilities]:
            known_there = None if known is None else some_rows_of_improvement_candidates(known, rows, places)
            copy, *candidates = self._learn(policy, features, rows[places], known_there, self.penalties)
            return [copy.probabilities, *(partial(each.probabilities, sharpness=self.sharpness) for each in candidates)]

        likely = rows.propensities if known is None else np.asarray(known[rows.encoded.places(rows.actions)])
        apart = known is not None and float(np.abs(likely - rows.propensities).max()) > _SAME
        held = improvement_candidate_columns(learn, rows, self.folds, self.random_state, kept, known if apart else None)
        ends = check_reward_range(self.reward_range)
        found = improvement_candidate_verdicts(held[1:], self.penalties, self.confidence, rows, apart)
        best = max(found, key=lambda verdict: (verdict.deploy, verdict.pessimistic))
        *_, chosen = self._learn(policy, features, rows, known, [best.penalty] if best.deploy else [])
        self._chosen = chosen
        self.verdicts_, self.verdict_, self.deploy_ = found, best, best.deploy
        self.imitation_ = imitation_by_improvement_candidate(held[0], likely, rows.encoded.counts(rows.n_actions))
        self._incumbent = incumbent if hasattr(incumbent, "predict_proba") or callable(incumbent) else None
        self.baseline_ = float(to_reward(random_loss_for_improvement_candidates(rows.losses, rows.propensities), ends))
        self.n_actions_, self.actions_ = None if sets else policy.n_actions, () if sets else rows.action_names
        self._encoder = encoder
        return self

    def _kind(self, contexts: object) -> tuple[str, FeatureMap, bool]:
        """Return the name of the policy, its features, and whether contexts are action sets."""
        name = incumbent_policy_for(contexts) if self.policy == "auto" else self.policy
        if name not in KINDS:
            raise InvalidInput(f"policy: found {name!r}, expected 'auto' or one of {', '.join(KINDS)}")
        features, sets = KINDS[name]
        return name, self.features or features, sets

    def _checked(self, encoder: Encoder, contexts: Any, actions: Any, rewards: Any, propensities: Any) -> Interactions:
        if self.n_actions is not None:
            check_count("n_actions", self.n_actions)
        check_number("confidence", self.confidence, 0, below=1, open_low=True)
        check_number("sharpness", self.sharpness, 0, open_low=True)
        check_number("folds", self.folds, 2)
        if not len(np.atleast_1d(self.penalties)):
            raise InvalidInput("penalties: found none, expected at least one")
        for penalty in self.penalties:
            Pessimistic(penalty, l2=self.l2)  # raises if they are invalid
        given = interactions_or_columns(contexts, actions, rewards, propensities)
        known: int | None = self.n_actions
        names: Names = ()
        if isinstance(given, Interactions):
            known, names = given.n_actions if known is None else known, given.action_names
            if given.row_weights is not None:
                raise InvalidInput(
                    "log: found rows that stand for different numbers of decisions (row_weights), expected one each:"
                    " pass log.thinned(), which draws rows so that each decision is equally likely"
                )
        contexts, actions, rewards, propensities = given
        ends = check_reward_range(self.reward_range)
        read = encoder.encode(contexts)
        rows = Interactions(read, actions, rewards, propensities, ends, known, False, action_names=names)
        if rows.action_names and len(rows.action_names) != rows.n_actions:
            raise InvalidInput(
                f"log: found names for {len(rows.action_names)} of {rows.n_actions} actions, expected all"
            )
        if len(rows) < 2 * self.folds:
            raise InvalidInput(f"fit: found {len(rows)} rows, expected at least two per fold ({self.folds} folds)")
        return rows

    def _learn(
        self, policy: Any, features: FeatureMap, rows: Interactions, known: Floats | None, penalties: Sequence[float]
    ) -> Iterator[LearnedPolicy]:
        """Return the clone, then one policy per penalty."""
        seen = features.observe(features.init(rows.encoded.n_inputs), rows.encoded.inputs)
        X = features_for_registered(features, seen, rows.contexts)
        start = clone_of_incumbent(policy, X, rows.actions, known)
        yield LearnedPolicy(policy, features, seen, start)
        baseline = random_loss_for_improvement_candidates(rows.losses, rows.propensities)
        for penalty in penalties:
            params = improved_incumbent(policy, X, rows, self._objective(penalty, baseline), start)
            yield LearnedPolicy(policy, features, seen, params)

    def _objective(self, penalty: float, baseline: float) -> Pessimistic:
        return Pessimistic(penalty, "theory", baseline, self.l2)

    @property
    def params_(self) -> Floats:
        """The parameters W of the new policy, or of the clone, flattened."""
        return self._fitted().params

    @property
    def sharpness_(self) -> float:
        """The sharpness of `predict_proba`: 1 for a clone."""
        return self.sharpness if self.deploy_ else 1.0

    def _fitted(self) -> LearnedPolicy:
        if self._chosen is None:
            raise AttributeError("this SafeImprovement has seen no data: call fit")
        return self._chosen

    def check_kept(self) -> None:
        """Raise if nothing is deployed and there is no policy that acts like the incumbent."""
        self._fitted()
        if not self.deploy_ and self._incumbent is None and not self.imitation_.good:
            raise InvalidInput(
                f"incumbent: {self.verdict_.said}; and {self.imitation_}."
                " Keep the incumbent itself, or pass it: incumbent=policy"
            )

    def predict_proba(self, contexts: object) -> Floats:
        """Return the new policy's probabilities, [n, K] (flat for action sets); the incumbent's if it stays."""
        return self._probabilities(contexts)[0]

    def predict(self, contexts: object) -> Array:
        """Return the most likely action of each context, [n]; by name if actions have names."""
        found, rows = self._probabilities(contexts)
        likeliest = as_contexts(rows).likeliest(found)
        return np.array(self.actions_)[likeliest] if self.actions_ else likeliest

    def _probabilities(self, contexts: object) -> tuple[Floats, Any]:
        chosen = self._fitted()
        assert self._encoder is not None
        self.check_kept()
        rows = self._encoder.encode(contexts)
        if not self.deploy_ and self._incumbent is not None:
            kept = self._incumbent
            return np.asarray(kept.predict_proba(contexts) if hasattr(kept, "predict_proba") else kept(contexts)), rows
        found = chosen.probabilities(rows, self.sharpness_)
        if not self.deploy_:
            share = self.imitation_.explored
            sets = as_contexts(rows)
            found = (1 - share) * found + share * sets.spread(1 / sets.counts(found.shape[-1]))
        return found, rows


def _check_incumbent_probabilities(incumbent: Any, rows: Interactions, policy: Any) -> Floats:
    known, sets = np.asarray(incumbent, np.float64), rows.encoded
    shape = (len(rows), policy.n_actions) if sets.items is None else (int(sets.offsets[-1]),)
    if known.shape != shape:
        raise InvalidInput(
            f"incumbent: found shape {known.shape}, expected {shape}: the incumbent's probabilities of all actions"
        )
    by_row = known if sets.items is None else np.split(known, sets.offsets[1:-1])
    wrong = [row for row, one in enumerate(by_row) if (one < 0).any() or not abs(one.sum() - 1) < 1e-6]
    if wrong:
        raise InvalidInput(f"incumbent, row {wrong[0]}: found {by_row[wrong[0]]}, expected probabilities that sum to 1")
    return known


def _incumbent_table(incumbent: object, rows: Interactions, given: object) -> Any:
    """Return the probabilities of all actions; a policy is asked for them on the raw contexts."""
    if not (hasattr(incumbent, "predict_proba") or callable(incumbent)):
        return incumbent
    raw = given.contexts if isinstance(given, Interactions) else given[0] if isinstance(given, tuple) else given
    target = as_target(incumbent, rows, "incumbent", contexts=raw)
    return np.concatenate([target.on(block).probabilities for block in rows.blocks()])
