"""`O2PL`, the object users hold for discrete actions."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from o2pl.contexts import ContextReader, make_reader
from o2pl.errors import InvalidInput
from o2pl.features import Chain, Fourier, Hashed, Intercept, Standardise
from o2pl.learners.base import BanditEstimator
from o2pl.learners.engine import Engine, Parts, Rewards
from o2pl.learners.incumbent import SafeImprovement, Verdict
from o2pl.learners.member import LINEAR, QUADRATIC, Member
from o2pl.learners.schedules import Replay, Schedule, as_schedule
from o2pl.learners.stream import UniformStream
from o2pl.log import Log
from o2pl.objectives.pessimistic import Pessimistic
from o2pl.policies import ActionWise, Softmax, SparseSoftmax, UniformMixture
from o2pl.policies.finite import FiniteClass, FinitePolicies
from o2pl.policies.sampling import UniformExploration
from o2pl.protocols import Array, Exploration, FeatureMap, Floats, Policy
from o2pl.rows import ActionSets
from o2pl.validation import check_actions, check_count, check_number, check_reward_range, check_rewards, to_loss

CONTROL = 5.0  # the ridge of the control variate where there is one

_CLASSES: dict[str, tuple[Member, ...]] = {
    "union": (Member(LINEAR), Member(QUADRATIC, joins=100)),
    "linear": (Member(LINEAR),),
    "quadratic": (Member(QUADRATIC),),
    "fourier": (Member(Chain((Standardise(), Fourier(), Intercept()))),),
    "actionwise": (Member(Standardise(), ActionWise()),),
    "hashed": (Member(Hashed()),),
    "hashed actionwise": (Member(Hashed(), ActionWise()),),
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
        and numbers; `Hashed(...)` for its settings), "hashed actionwise" (a context is a list of dictionaries, one per
        action), a policy such as `ThresholdClass(...)`, a `Member`, or a sequence of members.
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
        "auto": 5 where actions are fixed and the schedule solves, None for action sets, finite classes and replay.
    l2
        Weight decay: l2 |W|² / (2n) is added to the objective; finite classes have no weights.
    sharpness
        Decisions are drawn from π^sharpness, normalised: logits times this. The propensities are the sharpened ones.
    exploration
        ε: decisions are mixed with the uniform policy; every action keeps at least ε/K. Or a rule with a method `at`,
        such as `UniformExploration(0.05)`.
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
        control: float | str | None = "auto",
        l2: float = 0.1,
        sharpness: float = 5.0,
        exploration: float | Exploration = 0.0,
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
        actions: Any = None,
        rewards: Any = None,
        propensities: Any = None,
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

        The log is four columns, or one object: `Interactions` or a `Log`.
        Where the log supports an improvement with this confidence, the learner acts by the improved policy; where it
        does not, by a clone of the incumbent. `improvement_` says which (`deploy`) and why; see `SafeImprovement`.
        From there it goes on learning like any other.
        """
        found = SafeImprovement(n_actions, confidence=confidence, reward_range=reward_range, random_state=random_state)
        found.fit(contexts, actions, rewards, propensities, incumbent)
        learner = cls(
            found.n_actions_,
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
        engine = learner._make_engine(rows.contexts.shape[1], None)
        engine.begin_at(rows, found.params_)
        learner._adopt(engine)
        learner.improvement_ = found.verdict_
        return learner

    # -- the acting policy

    def predict_proba(self, contexts: Any) -> Floats:
        """The acting policy, [n, K]; for action sets one probability per (context, action), set after set."""
        return self._begun().decider.probabilities(self._reader.rows(contexts))

    def predict(self, contexts: Any) -> Array:
        """The likeliest action of each context, [n]."""
        rows = self._reader.rows(contexts)
        probabilities = self._begun().decider.probabilities(rows)
        if isinstance(rows, ActionSets):
            return np.array([int(np.argmax(one)) for one in np.split(probabilities, rows.offsets[1:-1])])
        return np.asarray(probabilities.argmax(axis=1))

    # -- how an engine is put together

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

    @property
    def _action_sets(self) -> bool:
        """Whether contexts are action sets; refuses members that disagree."""
        sets = {m.policy is not None and isinstance(_innermost(m.policy), ActionWise) for m in self._members()}
        if len(sets) > 1:
            raise InvalidInput("policy: found members with and without action sets, expected one kind of context")
        return sets.pop()

    @property
    def _hashed(self) -> Hashed | None:
        """The features, where contexts are dictionaries; refuses members that disagree."""
        features = [member.features for member in self._members()]
        hashed = [each for each in features if isinstance(each, Hashed)]
        if hashed and (len(hashed) < len(features) or any(each != hashed[0] for each in hashed)):
            raise InvalidInput("policy: found Hashed features among others, expected the same for all members")
        return hashed[0] if hashed else None

    @property
    def _numbered(self) -> int | None:
        """Contexts that the tables of finite classes know; None where no table is looked up by the context itself."""
        raw = [_innermost(member.policy) for member in self._members() if member.features == Chain(())]
        return min((policy.table.shape[1] for policy in raw if isinstance(policy, FiniteClass)), default=None)

    def _new_reader(self, width: int | None) -> ContextReader:
        hashed = self._hashed
        settings = None if hashed is None else (hashed.bits, hashed.signed, hashed.interactions)
        return make_reader(width, self._action_sets, settings, self._numbered)

    def _make_engine(self, width: int, n_actions: int | None) -> Engine:
        members, schedule = self._members(), as_schedule(self.schedule)
        sets, sparse = self._action_sets, self._hashed is not None
        if not sets:
            own = next((int(m.policy.n_actions) for m in members if m.policy is not None), None)  # type: ignore[attr-defined]
            self.n_actions_ = n_actions = _agreed(own, self.n_actions, n_actions)
        else:
            n_actions = None
        policies = [_policy_of(member, n_actions) for member in members]
        objective = Pessimistic(
            self.penalty, self.clip, self.baseline, self.l2, p=self.p, beta=self.beta, delta=self.delta
        )
        parts = Parts(
            members, policies, objective, schedule, self._ridge(policies, schedule, sets),
            check_number("sharpness", self.sharpness, 0, open_low=True), as_exploration(self.exploration),
        )  # fmt: skip
        ends = check_reward_range(self.reward_range)
        log = Log(width, action_sets=sets, sparse=sparse, n_actions=n_actions, reward_range=ends)
        return Engine(parts, self._new_reader(width), log, UniformStream(self.random_state))

    def _ridge(self, policies: list[Policy], schedule: Schedule, sets: bool) -> float | None:
        finite = any(isinstance(policy, FinitePolicies) for policy in policies)
        if self.control == "auto":
            return None if sets or finite or isinstance(schedule, Replay) else CONTROL
        if self.control is None:
            return None
        ridge = check_number("control", self.control, 0, open_low=True, instead="'auto', None or ")
        if sets:
            raise InvalidInput(
                f"control: found {ridge:g} with action sets, which have no control variate; expected None or 'auto'"
            )
        return ridge

    # -- what comes in

    def _check_actions(self, rows: Any, actions: Any) -> Array:
        if len(np.atleast_1d(actions)) != len(rows):
            raise InvalidInput(
                f"actions: found {len(np.atleast_1d(actions))}, expected one for each of {len(rows)} contexts"
            )
        return check_actions(actions, rows.sizes if isinstance(rows, ActionSets) else self._known_actions())

    def _known_actions(self) -> int | None:
        if self._engine is not None:
            return self.n_actions_
        return None if self.n_actions is None else check_count("n_actions", self.n_actions)

    def _action_bounds(self) -> tuple[float, float]:
        return 0, math.inf if self._action_sets else self.n_actions_  # sets differ: the engine looks

    def _rewards(self, rounds: int, rewards: Any) -> tuple[Rewards, int | None]:
        if callable(rewards):
            known = self.n_actions_ if self._engine else self.n_actions
            if known is None:
                raise InvalidInput("n_actions: found None, expected a number, to run in an environment")
            rows = np.arange(rounds)
            rewards = np.stack([rewards(rows, np.full(rounds, a)) for a in range(known)], axis=1)
        table = np.asarray(rewards, np.float64)[:rounds]
        if table.ndim != 2 or len(table) != rounds:
            raise InvalidInput(f"rewards: found shape {table.shape}, expected ({rounds}, number of actions)")
        expected = self._known_actions()
        if expected is not None and table.shape[1] != expected:
            raise InvalidInput(f"rewards: found {table.shape[1]} actions, expected {expected}")
        check_rewards(table.reshape(-1), check_reward_range(self.reward_range))
        return Rewards(lambda rows, actions: table[rows, actions], table), table.shape[1]


def as_exploration(given: Any) -> Exploration:
    """ε of the uniform policy, or a rule as it is."""
    if hasattr(given, "at"):
        rule: Exploration = given
        return rule
    return UniformExploration(check_number("exploration", given, 0, 1, instead="a rule with a method `at`, or "))


def _policy_of(member: Member, n_actions: int | None) -> Policy:
    """The member's own, or a linear softmax; refuses one that cannot read the features."""
    sparse = isinstance(member.features, Hashed)
    if member.policy is None:
        return (SparseSoftmax if sparse else Softmax)(n_actions or 0)
    if member.policy.continuous:
        raise InvalidInput(f"policy: found {member.policy!r}, whose actions are real numbers; expected GaussianO2PL")
    if sparse and not isinstance(_innermost(member.policy), SparseSoftmax | ActionWise):
        raise InvalidInput(
            f"policy: found {type(member.policy).__name__} with Hashed features, expected SparseSoftmax or ActionWise"
        )
    return member.policy


def _innermost(policy: Any) -> Any:
    return policy.policy if isinstance(policy, UniformMixture) else policy


def _features_for(policy: Any) -> FeatureMap:
    """A constant says nothing where weights are shared by all actions; finite classes read contexts as given."""
    if isinstance(_innermost(policy), FinitePolicies):
        return Chain(())
    return Standardise() if isinstance(_innermost(policy), ActionWise) else LINEAR


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
