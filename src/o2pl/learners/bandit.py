"""`Bandit`, the recommended learner: members that model rewards, weighted by their predictive likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from o2pl._core import Curvature
from o2pl.engine.change import Change
from o2pl.engine.member import LINEAR, QUADRATIC, Member
from o2pl.engine.schedules import SELDOM, Geometric, Schedule, as_schedule
from o2pl.errors import InvalidInput
from o2pl.features import Hashed, Standardise, UserItems
from o2pl.learners.discrete import DiscreteEstimator, discrete_exploration
from o2pl.learners.params import refusing_params
from o2pl.objectives.outcome import Outcome
from o2pl.policies import ActionWise, Neural, NeuralSets
from o2pl.policies.sampling import BY_EXCESS, CountBonus, UniformExploration
from o2pl.protocols import Exploration, FeatureMap
from o2pl.validation import RewardRange

_LATER = 1000.0  # rows per action from which a log counts as long: see Geometric
_LATE = -3.0  # log prior of members with independent actions: they need more rows
_LATEST, _LONG = -20.0, 1000  # log prior of networks, and the number of rows from which they learn


def _pair_of_bandit(features: FeatureMap, l2: float, joins: int = 0) -> tuple[Member, Member]:
    """Return two members: one with competing actions, one with independent actions."""
    return (
        Member(features, objective=Outcome(True), joins=joins),
        Member(features, objective=Outcome(False, l2), joins=joins, prior=_LATE),
    )


# The last one is strongly shrunk: it predicts best while rows are few for the features, or rewards noisy or rare.
_LINEAR = (*_pair_of_bandit(LINEAR, 3.0), Member(LINEAR, objective=Outcome(False, 30.0), prior=-1.0))
_UNION = (*_LINEAR, *_pair_of_bandit(QUADRATIC, 10.0, joins=100))


def _bandit_network(policy: Any, competing: bool) -> Member:
    objective = Outcome(competing, 1.0)
    return Member(Standardise(), policy, objective=objective, joins=_LONG, schedule=SELDOM, prior=_LATEST)


_CLASSES: dict[str, tuple[Member, ...]] = {
    "union": _UNION,
    "linear": _LINEAR,
    "quadratic": _pair_of_bandit(QUADRATIC, 10.0),
    "actionwise": (Member(Standardise(), ActionWise(), objective=Outcome(False)),),
    "items": (Member(UserItems(), ActionWise(), objective=Outcome(False, 3.0)),),
    "neural": (*_UNION, _bandit_network(Neural(), True)),
    "neural actionwise": (
        Member(Standardise(), ActionWise(), objective=Outcome(False)),
        _bandit_network(NeuralSets(), False),
    ),
    "neural items": (
        Member(UserItems(), ActionWise(), objective=Outcome(False, 3.0)),
        _bandit_network(NeuralSets(), False),
    ),
    "hashed": _pair_of_bandit(Hashed(), 3.0),
    "hashed actionwise": (Member(Hashed(), ActionWise(), objective=Outcome(False)),),
}


_BEFORE: dict[str, tuple[Member, ...]] = {  # without the strongly shrunk member
    "union": (*_pair_of_bandit(LINEAR, 3.0), *_pair_of_bandit(QUADRATIC, 10.0, joins=100)),
    "linear": _pair_of_bandit(LINEAR, 3.0),
    "neural": (*_pair_of_bandit(LINEAR, 3.0), *_CLASSES["neural"][3:]),
}


@refusing_params(
    sharpness="Bandit explores where predictions are uncertain, and plays the best action elsewhere;"
    " exploration=0.05 mixes in uniform choice; O2PL has a sharpness"
)
@dataclass(eq=False, repr=False)
class Bandit(DiscreteEstimator):
    """A contextual bandit for discrete actions: the recommended learner.

    Its members fit the reward of the played action by a logistic likelihood and act by a softmax. They are weighted by
    how well they predicted rewards before learning from them. Propensities are exact. `O2PL` has the paper's objective,
    which needs no reward model: use it to improve on the policy that made a log.

    Parameters
    ----------
    n_actions
        Number of actions K. None: taken from the first batch. Not used if contexts contain their actions.
    actions
        Names of the actions, in the order of `predict_proba`. `act` and `predict` return them; `update` and `fit`
        accept them. None: taken from the first batch (strings in alphabetical order), or integers from 0.
    policy
        The policy class: "union" (competing and independent actions, linear and quadratic), "linear", "quadratic",
        "actionwise" (varying action sets: a context is a matrix with one feature row per action), "items" (a user and
        such a matrix, with their products), "neural" (adds networks to the other members, extra `jax`; for rows, action
        sets or users with items), "hashed" (a context is a dictionary), "hashed actionwise" (a list of dictionaries,
        one per action), or one or more `Member(objective=Outcome(...))`. They may be combined with members with O2PL's
        pessimistic objective, `Member(objective=Pessimistic(...))`. "union" becomes "actionwise", "items" or "hashed
        actionwise" if the first context is of that kind, and "hashed" if it is a dictionary with strings or lists.
    schedule
        When to re-learn, as for `O2PL`.
    reward_range
        Lowest and highest possible reward. Rewards in between count as fractions. None: 0 to 1, as long as all rewards
        are; then from the .5 % to the 99.5 % quantile of the rewards so far, and rewards beyond are clipped to it, in
        what is learned, not in the log. `reward_range_` is the range that is used.
    exploration
        "auto": actions are tried where their predicted reward is less certain than that of the best action
        (`policies.sampling`); among more than ten, those that were rarely played get a bonus instead (`CountBonus`). A
        number ε: the uniform policy is mixed in as well, so that every action has probability at least ε/K. Or a rule
        with a method `at`.
    changes
        "auto": change detection. A member with a short memory detects that the world has changed, and the others
        restart (`changes_` says when). It is off if the `schedule` forgets, such as `Geometric(half_life=500)` or
        `Geometric(window=1000)`: use these if you know how your world changes. A `Change` configures the detection;
        None switches it off. Rows are taken in the order of their updates. A batch of `partial_fit` is checked with the
        members from before the batch, so a change within it is detected with the next batch. `fit` assumes no change in
        its log.
    device
        Where objectives are evaluated: "cpu", "gpu" (the log is copied to the GPU; extra `jax`), or "xla" (JAX's
        default device). Useful for long logs.
    random_state
        Seed, numpy Generator or None.
    """

    n_actions: int | None = None
    _: KW_ONLY
    actions: Sequence[str] | None = None
    policy: Any = "union"
    schedule: Any = "geometric"
    reward_range: tuple[float, float] | None = None
    exploration: float | str | Exploration = "auto"
    changes: str | Change | None = "auto"
    device: str = "cpu"
    random_state: Any = None
    _classes_of_policies = _CLASSES
    _classes_before = _BEFORE
    _earlier: ClassVar[dict[str, Any]] = {"changes": None}

    def _members(self, kind: str, shared: int | None = None) -> tuple[Member, ...]:
        members = super()._members(kind, shared)
        if not any(isinstance(member.objective or Outcome(), Outcome) for member in members):
            raise InvalidInput(
                "policy: found no member with an outcome objective, expected at least one Member(objective=Outcome());"
                " for pessimistic members only, use O2PL"
            )
        return members

    def _objective(self) -> Outcome:
        return Outcome()

    def _ends(self) -> RewardRange | None:
        return None if self.reward_range is None else super()._ends()

    def _change(self, members: tuple[Member, ...]) -> Change | None:
        if self.changes is None or isinstance(self.changes, Change):
            return self.changes
        if not isinstance(self.changes, str) or self.changes != "auto":
            raise InvalidInput(f'changes: found {self.changes!r}, expected "auto", a Change or None')
        shared = as_schedule(self.schedule)
        schedules = [member.schedule or shared for member in members]
        return Change() if all(each.start(10**9) == 0 for each in schedules) else None

    def _schedule(self, n_actions: int | None) -> Schedule:
        if self.schedule == "geometric" and n_actions is not None:
            return Geometric(later=_LATER * n_actions)
        return as_schedule(self.schedule)

    def _sharpness(self) -> float:
        return BY_EXCESS

    def _exploration(self, n_actions: int | None) -> Exploration:
        given = 0.0 if isinstance(self.exploration, str) and self.exploration == "auto" else self.exploration
        rule = discrete_exploration(given, instead='"auto", ')
        many = n_actions is not None and n_actions > Curvature.most_actions
        if isinstance(rule, UniformExploration) and rule is not given and many:
            return CountBonus(epsilon=rule.epsilon)
        return rule
