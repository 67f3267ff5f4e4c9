"""`O2PL`, the object users hold for discrete actions."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.features import Chain, Fourier, Hashed, Intercept, Standardise
from o2pl.features.hashing import Reader
from o2pl.interactions import Log
from o2pl.learners.base import BanditEstimator, LossTable
from o2pl.learners.finite import FiniteOnline
from o2pl.learners.incumbent import SafeImprovement, Verdict
from o2pl.learners.members import LINEAR, QUADRATIC, Member
from o2pl.learners.online import Online
from o2pl.learners.replay import ReplaySoftmax, is_flat
from o2pl.learners.schedules import Replay, as_schedule
from o2pl.learners.settings import Settings
from o2pl.learners.sparse import SparseOnline
from o2pl.learners.stream import UniformStream
from o2pl.policies import ActionWise, Softmax, UniformMixture
from o2pl.policies.finite import FinitePolicies
from o2pl.protocols import Array, FeatureMap, Floats
from o2pl.rows import ActionSets
from o2pl.validation import (
    check_action_sets,
    check_actions,
    check_contexts,
    check_count,
    check_number,
    check_reward_range,
    check_rewards,
    to_loss,
)

_CLASSES: dict[str, tuple[Member, ...]] = {
    "union": (Member(LINEAR), Member(QUADRATIC, joins=100)),
    "linear": (Member(LINEAR),),
    "quadratic": (Member(QUADRATIC),),
    "fourier": (Member(Chain((Standardise(), Fourier(), Intercept()))),),
    "actionwise": (Member(Standardise(), ActionWise()),),
    "hashed": (Member(Hashed()),),
}


class O2PL(BanditEstimator):
    """Online pessimistic policy learning for discrete actions.

    Hand it raw contexts and rewards; standardisation, the intercept and the policy classes are its own business.

    Parameters
    ----------
    n_actions
        K. None: as many as the first batch of data shows; not used by policies that bring their own actions.
    policy
        "union" (linear and quadratic softmax on one log), "linear", "quadratic", "fourier", "actionwise" (action sets
        that vary: a context is a matrix of one feature row per action), "hashed" (a context is a dictionary of words
        and numbers; `Hashed(...)` for its settings), a policy such as `ThresholdClass(...)`, a `Member`, or a sequence
        of members.
    schedule
        When to re-learn: "geometric", "near-exact" (more often, to the minimum), "exact" (every round), "replay", or
        one of these with its own settings, such as `Geometric(growth=1.1)`.
    reward_range
        The lowest and the highest reward there can be.
    penalty
        λ, the weight of pessimism: 1 in the paper, 0 for none.
    clip
        The level α at which importance weights are cut: "theory" (α_t of Theorem 1), a number ≥ 1, or None.
    baseline
        b in (min(w, α) - 1)(y - b): "mean" of the losses so far, a loss in [-1, 0], or None (0, as in the paper).
    control
        The ridge of a control variate (one linear model per action that takes out variance and never acts), or None.
    l2
        Weight decay: l2 |W|² / (2n) is added to the objective.
    sharpness
        Decisions are drawn from logits times this; the propensities are the sharpened ones. Members of a finite class
        act as they are.
    exploration
        ε: decisions are mixed with the uniform policy; every action keeps at least ε/K.
    p, beta, delta
        The theory's entropy exponent, error-bound exponent and confidence; they enter the clip and the penalty.
    random_state
        Seed, numpy Generator or None.

    Attributes
    ----------
    log_
        The interactions so far.
    effort_
        Solves so far, and evaluations of the objective in them.
    n_actions_, n_features_in_
        Seen at the first use.
    """

    improvement_: Verdict  # of `from_incumbent`

    def __init__(
        self,
        n_actions: int | None = None,
        *,
        policy: Any = "union",
        schedule: Any = "geometric",
        reward_range: tuple[float, float] = (0.0, 1.0),
        penalty: float = 0.1,
        clip: float | str | None = "theory",
        baseline: float | str | None = "mean",
        control: float | None = 5.0,
        l2: float = 0.1,
        sharpness: float = 5.0,
        exploration: float = 0.0,
        p: float = 0.0,
        beta: float = 1.0,
        delta: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.n_actions = n_actions
        self.policy = policy
        self.schedule = schedule
        self.reward_range = reward_range
        self.penalty = penalty
        self.clip = clip
        self.baseline = baseline
        self.control = control
        self.l2 = l2
        self.sharpness = sharpness
        self.exploration = exploration
        self.p = p
        self.beta = beta
        self.delta = delta
        self.random_state = random_state

    @classmethod
    def paper(
        cls, n_actions: int | None = None, *, policy: Any = "linear", schedule: Any = "exact", **settings: Any
    ) -> Self:
        """Algorithm 1 to the letter: solve every round, λ = 1, b = 0, the theory's schedules, no control variate."""
        literal: dict[str, Any] = {"penalty": 1.0, "baseline": None, "control": None, "l2": 0.0, "sharpness": 1.0}
        return cls(n_actions, policy=policy, schedule=schedule, **(literal | settings))

    @classmethod
    def paper_replay(cls, n_actions: int | None = None, **settings: Any) -> Self:
        """The flat replay-Adam of the paper's benchmark: the last 200 rows, 5 steps every 5 rounds, after 50 rounds.

        The paper does not say how its penalty was weighed there. At λ = 1 the terms in log(1/δ) outweigh what 200 rows
        can show and nothing is learned; λ = 0.1 is ours.
        """
        return cls.paper(n_actions, **({"schedule": "replay", "penalty": 0.1} | settings))

    @classmethod
    def from_incumbent(
        cls,
        contexts: Any,
        actions: Any,
        rewards: Any,
        propensities: Any,
        *,
        incumbent: Any = None,
        n_actions: int | None = None,
        confidence: float = 0.9,
        reward_range: tuple[float, float] = (0.0, 1.0),
        schedule: Any = "geometric",
        exploration: float = 0.0,
        random_state: Any = None,
    ) -> Self:
        """From the log of a policy in production (and, if known, its probabilities of all actions, [n, K]).

        Where the log supports an improvement with this confidence, the learner acts by the improved policy; where it
        does not, by a clone of the incumbent. `improvement_` says which (`deploy`) and why; see `SafeImprovement`.
        From there it goes on learning like any other.
        """
        found = SafeImprovement(n_actions, confidence=confidence, reward_range=reward_range, random_state=random_state)
        found.fit(contexts, actions, rewards, propensities, incumbent)
        learner = cls(
            len(found.params_) // LINEAR.width(np.shape(contexts)[1]),
            policy="linear",
            schedule=schedule,
            reward_range=reward_range,
            penalty=found.verdict_.penalty if found.deploy_ else max(found.penalties),
            baseline=float(np.clip(to_loss(found.baseline_, reward_range), -1, 0)),  # rounding
            control=None,
            l2=found.l2,
            sharpness=found.sharpness_,
            exploration=exploration,
            random_state=random_state,
        )
        rows = learner._checked(contexts, actions, rewards, propensities)
        engine = learner._make_engine(learner._width(rows.contexts), None)
        engine.begin_at(rows, found.params_)
        learner._adopt(engine)
        learner.improvement_ = found.verdict_
        return learner

    # -- the acting policy

    def predict_proba(self, contexts: Any) -> Floats:
        """The acting policy, [n, K]; for action sets one probability per (context, action), set after set."""
        engine = self._begun()
        rows, _ = self._check_columns(contexts, None)
        return np.asarray(engine.probabilities(rows))

    def predict(self, contexts: Any) -> Array:
        """The likeliest action of each context, [n]."""
        rows, _ = self._check_columns(contexts, None)
        probabilities = self.predict_proba(rows)
        if isinstance(rows, ActionSets):
            return np.array([int(np.argmax(one)) for one in np.split(probabilities, rows.offsets[1:-1])])
        return np.asarray(probabilities.argmax(axis=1))

    def _likelihoods(self, contexts: Any, actions: Array) -> Floats:
        probabilities = self.predict_proba(contexts)
        if isinstance(contexts, ActionSets):
            return np.asarray(probabilities[contexts.offsets[:-1] + actions])
        return np.asarray(probabilities[np.arange(len(actions)), actions])

    # -- how an engine is made

    def _members(self) -> tuple[Member, ...]:
        if isinstance(self.policy, str) and self.policy in _CLASSES:
            return _CLASSES[self.policy]
        if isinstance(self.policy, Member):
            return (self.policy,)
        if isinstance(self.policy, Hashed):
            return (Member(self.policy),)
        if hasattr(self.policy, "forward"):
            return (Member(_features_for(self.policy), self.policy),)
        if isinstance(self.policy, list | tuple) and self.policy and all(isinstance(m, Member) for m in self.policy):
            return tuple(self.policy)
        raise InvalidInput(
            f"policy: found {self.policy!r}, expected one of {sorted(_CLASSES)}, a policy, a Member or several Members"
        )

    def _settings(self, control: bool) -> Settings:
        ridge = self.control if control else None
        return Settings(
            self.penalty, self.clip, self.baseline, ridge, self.l2, p=self.p, beta=self.beta, delta=self.delta
        )

    @property
    def _takes_action_sets(self) -> bool:
        return any(_is_actionwise(member.policy) for member in self._members())

    @property
    def _hashed(self) -> Hashed | None:
        """The features, where contexts are dictionaries."""
        members = self._members()
        if not any(isinstance(member.features, Hashed) for member in members):
            return None
        if len(members) > 1 or members[0].policy is not None:
            raise InvalidInput("policy: found Hashed features among others, expected them alone and with policy=None")
        return members[0].features  # type: ignore[return-value]  # the only member's, which are

    def _make_engine(self, width: int, n_actions: int | None) -> Any:
        members, schedule = self._members(), as_schedule(self.schedule)
        check_number("sharpness", self.sharpness, 0, open_low=True)
        check_number("exploration", self.exploration, 0, 1)
        sets, hashed = self._takes_action_sets, self._hashed is not None
        log, stream = Log(width, action_sets=sets, sparse=hashed), UniformStream(self.random_state)
        acting = (self.sharpness, self.exploration)
        if sets:
            policies = [member.policy for member in members]
            return Online(members, policies, self._settings(control=False), schedule, log, stream, *acting)
        own = next((int(m.policy.n_actions) for m in members if m.policy is not None), None)
        self.n_actions_ = _agreed(own, self.n_actions, n_actions)
        if hashed:
            settings = self._settings(control=not isinstance(schedule, Replay))
            return SparseOnline(members[0], self.n_actions_, settings, schedule, log, stream, *acting)
        if isinstance(members[0].policy, FinitePolicies):
            settings = self._settings(control=False)
            return FiniteOnline(members[0].policy, settings, schedule.warm_start, log, stream, self.exploration)
        if isinstance(schedule, Replay) and len(members) == 1 and members[0].policy is None and is_flat(members[0]):
            settings = self._settings(control=False)
            return ReplaySoftmax(members[0], self.n_actions_, settings, schedule, log, stream, *acting)
        policies = [Softmax(self.n_actions_) if m.policy is None else m.policy for m in members]
        settings = self._settings(control=not isinstance(schedule, Replay))
        return Online(members, policies, settings, schedule, log, stream, *acting)

    # -- what comes in

    def _check_columns(self, contexts: Any, actions: Any) -> tuple[Any, Array]:
        width = self._engine.log.width if self._engine else None
        if self._takes_action_sets:
            rows: Any = check_action_sets(contexts, width)
            limit: Any = rows.sizes
        else:
            rows = self._check_rows(contexts, width)
            limit = self.n_actions_ if self._engine else self._given_actions()
        if actions is None:
            return rows, np.empty(0, np.int64)
        if len(np.atleast_1d(actions)) != len(rows):
            raise InvalidInput(
                f"actions: found {len(np.atleast_1d(actions))}, expected one for each of {len(rows)} contexts"
            )
        return rows, check_actions(actions, limit)

    def _check_rows(self, contexts: Any, width: int | None) -> Any:
        hashed = self._hashed
        if hashed is None:
            return check_contexts(contexts, width)
        return (self._engine.reader if self._engine else Reader(hashed)).rows(contexts)

    def _given_actions(self) -> int | None:
        return None if self.n_actions is None else check_count("n_actions", self.n_actions)

    def _most(self, actions: Array) -> int | None:
        return int(actions.max()) + 1

    def _action_bounds(self) -> tuple[float, float]:
        return 0, math.inf if self._takes_action_sets else self.n_actions_  # sets differ: the engine looks

    def _losses(self, contexts: Floats, rewards: Any) -> LossTable:
        reward_range = check_reward_range(self.reward_range)
        if callable(rewards):
            known = self.n_actions_ if self._engine else self.n_actions
            if known is None:
                raise InvalidInput("n_actions: found None, expected a number, to run in an environment")
            rows = np.arange(len(contexts))
            rewards = np.stack([rewards(rows, np.full(len(rows), a)) for a in range(known)], axis=1)
        table = np.asarray(rewards, np.float64)[: len(contexts)]
        if table.ndim != 2 or len(table) != len(contexts):
            raise InvalidInput(f"rewards: found shape {table.shape}, expected ({len(contexts)}, number of actions)")
        expected = self.n_actions_ if self._engine else self._given_actions()
        if expected is not None and table.shape[1] != expected:
            raise InvalidInput(f"rewards: found {table.shape[1]} actions, expected {expected}")
        check_rewards(table.reshape(-1), reward_range)
        return LossTable(table, reward_range)


def _is_actionwise(policy: Any) -> bool:
    return isinstance(_innermost(policy), ActionWise)


def _innermost(policy: Any) -> Any:
    return policy.policy if isinstance(policy, UniformMixture) else policy


def _features_for(policy: Any) -> FeatureMap:
    """A constant says nothing where weights are shared by all actions; finite classes read contexts as given."""
    if isinstance(_innermost(policy), FinitePolicies):
        return Chain(())
    return Standardise() if _is_actionwise(policy) else LINEAR


def _agreed(of_policy: int | None, given: int | None, seen: int | None) -> int:
    """The number of actions: what the policy brings, what the constructor was told, what the data showed."""
    known = of_policy if of_policy is not None else given
    if known is None:
        known = seen
    if known is None:
        raise InvalidInput("n_actions: found None, expected a number (or data before the first decision)")
    if given is not None and given != known:
        raise InvalidInput(f"n_actions: found {given}, expected {known}, the number of actions of the policy")
    return check_count("n_actions", known)
