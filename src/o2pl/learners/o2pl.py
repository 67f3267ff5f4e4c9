"""`O2PL`: the paper's learner for discrete actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np

from o2pl.engine.member import LINEAR, QUADRATIC, Member
from o2pl.engine.schedules import SELDOM, Replay, Schedule
from o2pl.errors import InvalidInput
from o2pl.features import Chain, Fourier, Hashed, Intercept, Standardise, UserItems
from o2pl.learners.discrete import DiscreteEstimator
from o2pl.learners.improvement_candidates import Verdict
from o2pl.learners.incumbent import SafeImprovement
from o2pl.objectives.pessimistic import Pessimistic
from o2pl.policies import ActionWise, Neural, NeuralSets
from o2pl.policies.finite import FinitePolicies
from o2pl.protocols import Exploration, Policy
from o2pl.validation import check_number, to_loss

CONTROL = 5.0  # default ridge of the control variate

_CLASSES: dict[str, tuple[Member, ...]] = {
    "union": (Member(LINEAR), Member(QUADRATIC, joins=100)),
    "linear": (Member(LINEAR),),
    "quadratic": (Member(QUADRATIC),),
    "fourier": (Member(Chain((Standardise(), Fourier(), Intercept()))),),
    "actionwise": (Member(Standardise(), ActionWise()),),
    "items": (Member(UserItems(), ActionWise()),),
    "neural": (Member(LINEAR), Member(Standardise(), Neural(), joins=1000, schedule=SELDOM)),
    "neural actionwise": (
        Member(Standardise(), ActionWise()),
        Member(Standardise(), NeuralSets(), joins=1000, schedule=SELDOM),
    ),
    "neural items": (
        Member(UserItems(), ActionWise()),
        Member(Standardise(), NeuralSets(), joins=1000, schedule=SELDOM),
    ),
    "hashed": (Member(Hashed()),),
    "hashed actionwise": (Member(Hashed(), ActionWise()),),
}


@dataclass(eq=False, repr=False)
class O2PL(DiscreteEstimator):
    """Online pessimistic policy learning for discrete actions.

    Pass raw contexts and rewards: the learner adds standardisation, the intercept and the policy classes.

    Parameters
    ----------
    n_actions
        Number of actions K. None: taken from the first batch. Not used if contexts contain their actions.
    actions
        Names of the actions, in the order of `predict_proba`. `act` and `predict` return them; `update` and `fit`
        accept them. None: taken from the first batch (strings in alphabetical order), or integers from 0.
    policy
        The policy class: "union" (linear and quadratic softmax on one log), "linear", "quadratic", "fourier",
        "actionwise" (varying action sets: a context is a matrix with one feature row per action), "items" (a user and
        such a matrix, with their products), "neural" (a network and a linear policy, extra `jax`; `Neural(hidden=(128,
        128))` for a network only), "hashed" (a context is a dictionary of strings and numbers; `Hashed(...)` for its
        settings), "hashed actionwise" (a context is a list of dictionaries, one per action), a policy such as
        `ThresholdClass(...)`, a `Member`, or a sequence of members. "union" becomes "items" or another class for action
        sets if the contexts are of that kind, and "hashed" if the first is a dictionary with strings or lists.
    schedule
        When to re-learn: "geometric", "near-exact" (more often, to the minimum), "exact" (every round), "replay", or a
        schedule with its own settings, such as `Geometric(growth=1.1)`.
    reward_range
        Lowest and highest possible reward.
    penalty
        λ, the weight of the pessimistic penalty: 1 in the paper, 0 for none.
    clip
        The level α at which importance weights are clipped: "theory" (α_t of Theorem 1), a number ≥ 1, or None.
    baseline
        b in (min(w, α) - 1)(y - b): "mean" (of the losses so far), a loss in [-1, 0], or None (0, as in the paper).
    control
        The ridge of a control variate (one linear model per action; it reduces variance and never acts), or None.
        "auto": 5 for a fixed set of actions and a schedule that solves; None for action sets, finite classes and
        replay.
    l2
        Weight decay: l2 |W|² / (2n) is added to the objective; finite classes have no weights.
    sharpness
        Decisions are drawn from π^sharpness, normalised: logits times sharpness. Propensities include it.
    exploration
        A number ε: the uniform policy is mixed in, so that every action has probability at least ε/K. Or a rule with a
        method `at`, such as `UniformExploration(0.05)`.
    p, beta, delta
        Entropy exponent, error-bound exponent and confidence of the theory. They set the clip and the penalty.
    device
        Where objectives are evaluated: "cpu", "gpu" (the log is copied to the GPU; extra `jax`), or "xla" (JAX's
        default device). Useful for long logs.
    random_state
        Seed, numpy Generator or None.

    Attributes
    ----------
    log_
        The log of interactions so far.
    effort_
        Number of solves so far, and of their evaluations of the objective.
    n_actions_, n_features_in_
        Number of actions and of context features, set at the first use.
    """

    n_actions: int | None = None
    _: KW_ONLY
    actions: Sequence[str] | None = None
    policy: Any = "union"
    schedule: Any = "geometric"
    reward_range: tuple[float, float] = (0.0, 1.0)
    penalty: float = 0.1
    clip: float | str | None = "theory"
    baseline: float | str | None = "mean"
    control: float | str | None = "auto"
    l2: float = 0.1
    sharpness: float = 5.0
    exploration: float | Exploration = 0.0
    p: float = 0.0
    beta: float = 1.0
    delta: float = 0.05
    device: str = "cpu"
    random_state: Any = None
    improvement_: Verdict = field(init=False)  # set by `from_incumbent`
    improvements_: tuple[Verdict, ...] = field(init=False)  # of all candidates
    _classes_of_policies = _CLASSES

    def _sharpness(self) -> float:
        return check_number("sharpness", self.sharpness, 0, open_low=True)

    @classmethod
    def paper(
        cls, n_actions: int | None = None, *, policy: object = "linear", schedule: object = "exact", **settings: object
    ) -> Self:
        """Return the paper's Algorithm 1: solve every round, λ = 1, b = 0, theoretical α and δ, no control variate."""
        literal: dict[str, Any] = {"penalty": 1.0, "baseline": None, "control": None, "l2": 0.0, "sharpness": 1.0}
        return cls(n_actions, policy=policy, schedule=schedule, **(literal | settings))

    @classmethod
    def paper_replay(cls, n_actions: int | None = None, **settings: object) -> Self:
        """Return the paper's replay-Adam benchmark variant: last 200 rows, 5 steps every 5 rounds, after 50 rounds.

        The paper does not state its penalty weight there. At λ = 1 the terms in log(1/δ) dominate what 200 rows can
        show, and nothing is learned; λ = 0.1 is our choice.
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
        policy: str = "auto",
        confidence: float = 0.9,
        reward_range: tuple[float, float] = (0.0, 1.0),
        schedule: Any = "geometric",
        exploration: float = 0.0,
        random_state: Any = None,
        kept: Any = None,
    ) -> Self:
        """Learn a safe improvement on the incumbent policy from its log.

        The log is four columns, or one object: `Interactions` or a `Log`. Pass the incumbent if you have it: a learner,
        a function of contexts, or its probabilities of all actions, [n, K]. `policy`, `kept`: see `SafeImprovement`. If
        the log supports an improvement with this confidence, the learner acts by the improved policy. Otherwise the
        incumbent stays: a learner of this class that was given is returned, else a clone that acts like it on held-out
        rows; without such a clone there is an error. `improvement_` says which (`deploy`) and why. The learner then
        continues to learn as usual.
        """
        found = SafeImprovement(
            n_actions, policy=policy, confidence=confidence, reward_range=reward_range, random_state=random_state
        )
        found.fit(contexts, actions, rewards, propensities, incumbent, **({} if kept is None else {"kept": kept}))
        if not found.deploy_ and isinstance(incumbent, cls):
            incumbent.improvement_, incumbent.improvements_ = found.verdict_, found.verdicts_
            return incumbent
        if not found.deploy_ and not found.imitation_.good:
            found._incumbent = None  # a policy of another kind cannot be a learner of this class
        found.check_kept()
        learner = cls(
            found.n_actions_,
            actions=found.actions_ or None,
            policy=found.policy_,
            schedule=schedule,
            reward_range=reward_range,
            penalty=found.verdict_.penalty if found.deploy_ else max(found.penalties),
            baseline=float(np.clip(to_loss(found.baseline_, reward_range), -1, 0)),  # rounding errors
            control=None,
            l2=found.l2,
            sharpness=found.sharpness_,
            exploration=exploration if found.deploy_ else max(exploration, found.imitation_.explored),
            random_state=random_state,
        )
        encoder = learner._encoder_for(contexts, actions, rewards, propensities)
        rows = learner._checked(contexts, actions, rewards, propensities, encoder).with_ids()
        engine = learner._make_engine(encoder, None)
        engine.begin_at(rows, found.params_)
        learner._adopt(engine)
        learner.improvement_, learner.improvements_ = found.verdict_, found.verdicts_
        return learner

    # -- building the engine

    def _objective(self) -> Pessimistic:
        return Pessimistic(self.penalty, self.clip, self.baseline, self.l2, p=self.p, beta=self.beta, delta=self.delta)

    def _ridge(self, policies: list[Policy], schedule: Schedule, sets: bool) -> float | None:
        finite = any(isinstance(policy, FinitePolicies) for policy in policies)
        if self.control == "auto":
            return None if sets or finite or isinstance(schedule, Replay) else CONTROL
        if self.control is None:
            return None
        ridge = check_number("control", self.control, 0, open_low=True, instead="'auto', None or ")
        if sets:
            raise InvalidInput(
                f"control: found {ridge:g} with action sets, which have no control variate, expected None or 'auto'"
            )
        return ridge
