"""One policy class among those that learn from a log: the parts it is made of, and what it has learned."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from o2pl.features import Chain, Intercept, Quadratic, Standardise
from o2pl.features.plan import FeaturePlan, feature_plan
from o2pl.interactions import Interactions
from o2pl.kernels.registry import Problem, find_value, n_inputs
from o2pl.kernels.replay import adam_on_a_window
from o2pl.learners.schedules import Schedule
from o2pl.objectives.pessimistic import Pessimistic, PolicyValue
from o2pl.oracles.adam import Adam
from o2pl.oracles.exhaustive import Exhaustive
from o2pl.oracles.lbfgs import LBFGS
from o2pl.policies.finite import FinitePolicies
from o2pl.policies.softmax import Softmax
from o2pl.policies.sparse import SparseSoftmax
from o2pl.protocols import Array, FeatureMap, Floats, Ints, Oracle, Policy, State
from o2pl.rows import ActionSets
from o2pl.storage import storable

STRETCH = 2**14  # rows that are gone through at a time
LINEAR = Chain((Standardise(), Intercept()))
QUADRATIC = Chain((Standardise(), Quadratic(), Intercept()))
_FEW_STEPS = LBFGS(iterations=5, tolerance=1e-4, memory=6)  # the solve before has done most of the work
_STEPS = LBFGS(iterations=15, tolerance=1e-4, memory=6)


@storable
@dataclass(frozen=True)
class Member:
    """A policy class. `policy=None`: a linear softmax over the learner's actions; None elsewhere: as the learner.

    A rich class has little to say of a short log: it joins the others when the log has `joins` rows.
    """

    features: FeatureMap = LINEAR
    policy: Policy | None = None
    penalty: float | None = None
    l2: float | None = None
    joins: int = 0
    schedule: Schedule | None = None
    oracle: Any = None


@dataclass
class Seen:
    """What a feature map has seen; members with the same map and schedule share it."""

    features: FeatureMap
    schedule: Schedule
    state: State
    rows: int = 0  # of the log, so far
    _planned: tuple[State, FeaturePlan | None] | None = None

    def plan(self, n_inputs: int) -> FeaturePlan | None:
        """The features of this state as one pass; None where the maps are not of the shipped kinds."""
        if self._planned is None or self._planned[0] is not self.state:
            self._planned = self.state, feature_plan(self.features, self.state, n_inputs)
        return self._planned[1]

    def observe(self, rows: Interactions) -> None:
        """The rows of the log that are new."""
        for start in range(self.rows, len(rows), STRETCH):
            contexts = rows.contexts[start : start + STRETCH]
            self.state = self.features.observe(
                self.state, contexts.values if isinstance(contexts, ActionSets) else contexts
            )
        self.rows = len(rows)


@dataclass
class MemberState:
    """A member at work."""

    policy: Policy
    objective: Pessimistic
    schedule: Schedule
    oracle: Oracle
    seen: Seen
    joins: int
    params: Floats
    checkpoint: int  # rows at which it learns next
    kept: State = field(default_factory=dict)  # what the oracle keeps from one step to the next
    effort: Ints = field(default_factory=lambda: np.zeros(2, np.int64))  # solves, evaluations of the objective
    function: Any = None  # that of the last solve, where it is brought up to date

    @classmethod
    def start(
        cls, member: Member, policy: Policy, objective: Pessimistic, seen: Seen, width: int, generator: Any = None
    ) -> MemberState:
        schedule = seen.schedule
        params = policy.init(seen.features.width(width, seen.state), generator)
        oracle = member.oracle or oracle_for(policy, schedule)
        return cls(
            policy, own_objective(member, objective), schedule, oracle, seen, member.joins, params, schedule.after(0),
            oracle.init(len(params)),
        )  # fmt: skip

    def learn(self, rows: Interactions, start: int, control: Any, oracle: Oracle | None = None) -> None:
        """From the log's rows, which begin at `start`; with another `oracle`, that one from scratch."""
        n = start + len(rows)
        width = self.seen.features.width(n_inputs(rows.contexts), self.seen.state)
        if (size := self.policy.n_params(width)) > len(self.params):  # features that are new come last
            self.params = np.append(self.params, np.zeros(size - len(self.params)))
        weights = self.schedule.weights(n) if oracle is None else None
        if oracle is None and isinstance(self.oracle, Adam) and control is None and weights is None:
            dense = isinstance(rows.contexts, np.ndarray)
            plan = self.seen.plan(rows.contexts.shape[1]) if dense else None
            moved = adam_on_a_window(self.policy, self.objective, plan, self.oracle, rows, self.params, self.kept)
            if moved is not None:
                self.params, self.kept = moved
                self.effort += (1, self.oracle.steps)
                return
        log = self.objective.prepare(rows, control, weights)
        problem = Problem(
            self.policy, self.objective, self.seen.features, self.seen.state, rows, start, log, self.function
        )
        with_oracle = oracle or self.oracle
        function: Any = None if with_oracle.plain else find_value(problem)
        if function is None:
            function = PolicyValue(self.policy, problem.featurise(), log)
        self.function = function if function.incremental else None  # the others hold features
        found, kept = with_oracle.step(function, self.params, self.kept if oracle is None else with_oracle.init(size))
        if oracle is None:
            self.kept = kept
        self.params = found.params
        self.effort += (1, found.evaluations)

    def arrays(self) -> dict[str, Array]:
        return {"params": self.params, "effort": self.effort, **{f"kept.{n}": a for n, a in self.kept.items()}}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.params, self.effort = arrays["params"], arrays["effort"]
        self.kept = {name.removeprefix("kept."): a for name, a in arrays.items() if name.startswith("kept.")}


def own_objective(member: Member, shared: Pessimistic) -> Pessimistic:
    own = {name: value for name in ("penalty", "l2") if (value := getattr(member, name)) is not None}
    return replace(shared, **own)


def oracle_for(policy: Policy, schedule: Schedule) -> Oracle:
    """The schedule's; a finite class is searched, and a linear softmax needs few steps."""
    if isinstance(policy, FinitePolicies):
        return Exhaustive()
    if schedule.oracle is not None:
        return schedule.oracle
    return _FEW_STEPS if isinstance(policy, Softmax | SparseSoftmax) else _STEPS
