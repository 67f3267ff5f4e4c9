"""`Bandit`, the learner to begin with: members that explain rewards, weighed by how well they do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from o2pl.errors import InvalidInput
from o2pl.features import Hashed, Standardise, UserItems
from o2pl.learners.changes import Change
from o2pl.learners.discrete import DiscreteEstimator, as_exploration
from o2pl.learners.member import LINEAR, QUADRATIC, Member
from o2pl.learners.schedules import SELDOM, Geometric, Schedule, as_schedule
from o2pl.objectives.outcome import Outcome
from o2pl.policies import ActionWise, Neural, NeuralSets
from o2pl.policies.sampling import CountBonus, UniformExploration
from o2pl.protocols import Exploration, FeatureMap

_LATER = 1000.0  # rows of each action on which a log is long: see Geometric
_LATE = -3.0  # prior of members with independent actions: they need more rows to be right
_LATEST, _LONG = -20.0, 1000  # prior of networks, and the rows from which on they learn


def _pair(features: FeatureMap, l2: float, joins: int = 0) -> tuple[Member, Member]:
    """One member with competing actions, one with independent ones."""
    return (
        Member(features, objective=Outcome(True), joins=joins),
        Member(features, objective=Outcome(False, l2), joins=joins, prior=_LATE),
    )


def _network(policy: Any, competing: bool) -> Member:
    objective = Outcome(competing, 1.0)
    return Member(Standardise(), policy, objective=objective, joins=_LONG, schedule=SELDOM, prior=_LATEST)


_CLASSES: dict[str, tuple[Member, ...]] = {
    "union": (*_pair(LINEAR, 3.0), *_pair(QUADRATIC, 10.0, joins=100)),
    "linear": _pair(LINEAR, 3.0),
    "quadratic": _pair(QUADRATIC, 10.0),
    "actionwise": (Member(Standardise(), ActionWise(), objective=Outcome(False)),),
    "items": (Member(UserItems(), ActionWise(), objective=Outcome(False, 3.0)),),
    "neural": (*_pair(LINEAR, 3.0), *_pair(QUADRATIC, 10.0, joins=100), _network(Neural(), True)),
    "neural actionwise": (
        Member(Standardise(), ActionWise(), objective=Outcome(False)),
        _network(NeuralSets(), False),
    ),
    "neural items": (
        Member(UserItems(), ActionWise(), objective=Outcome(False, 3.0)),
        _network(NeuralSets(), False),
    ),
    "hashed": _pair(Hashed(), 3.0),
    "hashed actionwise": (Member(Hashed(), ActionWise(), objective=Outcome(False)),),
}


@dataclass(eq=False, repr=False)
class Bandit(DiscreteEstimator):
    """A contextual bandit for discrete actions: the learner to begin with.

    Its members fit the reward of the action played, by a logistic likelihood, and act by a softmax. They are weighed by
    how well they predicted rewards before they learned from them. Propensities are exact. `O2PL` has the paper's
    objective, which needs no model of the rewards: take it to improve on the policy that made a log.

    Parameters
    ----------
    n_actions
        K. None: as many as the first batch of data shows; not used by policies that bring their own actions.
    actions
        The names of the actions, in the order of `predict_proba`: they come out of `act` and `predict`, and go into
        `update` and `fit`. None: those of the first batch (words, in alphabetical order), or numbers from 0.
    policy
        "union" (competing and independent actions, linear and quadratic), "linear", "quadratic", "actionwise" (action
        sets that vary: a context is a matrix of one feature row per action), "items" (a user and such a matrix, with
        their products), "neural" (networks beside them, extra `jax`; for rows, sets or users and items as they come),
        "hashed" (a context is a dictionary), "hashed actionwise" (a list of dictionaries, one per
        action), or one or more `Member(objective=Outcome(...))`; members with the pessimistic objective of `O2PL` may
        stand beside them, `Member(objective=Pessimistic(...))`. "union" takes "actionwise", "items" or "hashed
        actionwise" where the first context is of that kind.
    schedule
        When to re-learn, as for `O2PL`.
    reward_range
        The lowest and the highest reward there can be; rewards in between count as shares.
    sharpness
        Decisions are drawn from π^sharpness, normalised. The propensities are the sharpened ones.
    exploration
        "auto": actions that were hardly played are tried (`CountBonus`; not among items, unless they have ids and
        you say `CountBonus()`, nor with two actions). ε: the uniform policy is mixed in too, so that every action
        keeps at least ε/K. Or a rule with a method `at`.
    changes
        "auto": a member with a short memory notices when the world changes, and the others begin anew (`changes_` says
        when). Not with a `schedule` that forgets, such as `Geometric(half_life=500)` or `Geometric(window=1000)`: that
        is for those who know their world. A `Change` sets how it is noticed, None switches it off. Rows are taken in
        the order they are told; a batch of `partial_fit` is watched with the members as they were before it, so a
        change within it shows in the next; `fit` takes its log as one world.
    device
        Where objectives are evaluated: "cpu", "gpu" (the log is copied to the card; extra `jax`), or "xla" (JAX's own
        device). For long logs.
    random_state
        Seed, numpy Generator or None.
    """

    n_actions: int | None = None
    _: KW_ONLY
    actions: Sequence[str] | None = None
    policy: Any = "union"
    schedule: Any = "geometric"
    reward_range: tuple[float, float] = (0.0, 1.0)
    sharpness: float = 30.0
    exploration: float | str | Exploration = "auto"
    changes: str | Change | None = "auto"
    device: str = "cpu"
    random_state: Any = None
    _classes_of_policies = _CLASSES
    _earlier: ClassVar[dict[str, Any]] = {"changes": None}

    def _members(self) -> tuple[Member, ...]:
        members = super()._members()
        if not any(isinstance(member.objective or Outcome(), Outcome) for member in members):
            raise InvalidInput(
                "policy: found no member with an outcome objective, expected Member(objective=Outcome()) among them;"
                " for pessimistic members alone: O2PL"
            )
        return members

    def _objective(self) -> Outcome:
        return Outcome()

    def _change(self) -> Change | None:
        if self.changes is None or isinstance(self.changes, Change):
            return self.changes
        if not isinstance(self.changes, str) or self.changes != "auto":
            raise InvalidInput(f'changes: found {self.changes!r}, expected "auto", a Change or None')
        shared = as_schedule(self.schedule)
        schedules = [member.schedule or shared for member in self._members()]
        return Change() if all(each.start(10**9) == 0 for each in schedules) else None

    def _schedule(self, n_actions: int | None) -> Schedule:
        if self.schedule == "geometric" and n_actions is not None:
            return Geometric(later=_LATER * n_actions)
        return as_schedule(self.schedule)

    def _exploration(self) -> Exploration:
        given = 0.0 if isinstance(self.exploration, str) and self.exploration == "auto" else self.exploration
        rule = as_exploration(given, instead='"auto", ')
        if isinstance(rule, UniformExploration) and rule is not given and not self._action_sets:
            return CountBonus(epsilon=rule.epsilon)
        return rule
