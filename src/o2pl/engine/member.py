"""`Member`, one of the policy classes that learn from a log: its parts, and its learned state."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.engine.schedules import Exact, Geometric, Schedule, next_solve_of_schedule
from o2pl.errors import InvalidInput
from o2pl.features import Chain, Intercept, Quadratic, Settled, Standardise
from o2pl.features.plan import FeaturePlan, feature_plan
from o2pl.kernels.registry import MemberProblem, find_value
from o2pl.kernels.replay import replay_adam
from o2pl.objectives.control import Control
from o2pl.objectives.outcome import Outcome
from o2pl.objectives.pessimistic import Pessimistic, PolicyValue
from o2pl.oracles.adam import Adam
from o2pl.oracles.exhaustive import Exhaustive
from o2pl.oracles.lbfgs import LBFGS, Alone
from o2pl.oracles.minibatch import Minibatch
from o2pl.oracles.recursive import Recursive
from o2pl.policies.curve import Curve
from o2pl.policies.finite import FinitePolicies
from o2pl.policies.neural import is_neural
from o2pl.policies.softmax import Softmax
from o2pl.policies.sparse import SparseSoftmax
from o2pl.protocols import Array, FeatureMap, Floats, Function, Ints, Objective, Oracle, Policy, PreparedLog, State
from o2pl.storage import storable
from o2pl.validation import check_number

_OFFLINE = 0.1
BLOCK_ROWS = 2**14  # rows per block
LINEAR = Chain((Standardise(), Intercept()))
QUADRATIC = Chain((Standardise(), Quadratic(), Intercept()))
_FEW_STEPS = LBFGS(iterations=5, tolerance=1e-4, memory=6)  # warm-started by the previous solve
_STEPS = LBFGS(iterations=15, tolerance=1e-4, memory=6)
# A solve goes on at the next checkpoint. Fewer steps cost reward on sets of thousands of rows; more steps earn none.
_COMPETING = LBFGS(iterations=6, tolerance=1e-5, memory=6)
_INDEPENDENT = LBFGS(iterations=4, tolerance=1e-5, memory=6)
# For hashed features, most of which are rare: a more exact minimum does not increase the reward.
_SPARSE_COMPETING = LBFGS(iterations=1, tolerance=2e-3, memory=3)
_SPARSE_INDEPENDENT = LBFGS(iterations=5, tolerance=2e-3, memory=3)
_NETWORK = Minibatch()
_DENSITY = Minibatch(step_size=1e-3)  # small steps: far from all logged actions, weights and gradient are 0
_LINEAR_SOFTMAX = Softmax | SparseSoftmax


class Passes(Protocol):
    """Repeated passes over a log that are not done in memory in this process."""

    def prepared(self, problem: MemberProblem, control: Any) -> tuple[PreparedLog, Function]:
        """Return the prepared log and the objective as a function. The problem's own log is empty."""

    def control(self, features: Any, rows: Interactions, n_actions: int, baseline: float, ridge: float) -> Control:
        """Return `ridge_control` of all rows."""


def _refuse_finite_member(policy: FinitePolicies) -> None:
    raise InvalidInput(
        f"objective: found Outcome with {type(policy).__name__}, which needs the pessimistic objective,"
        " expected Member(objective=Pessimistic(...))"
    )


@storable
@dataclass(frozen=True)
class Member:
    """One policy class of a learner: its features, its policy, and how it learns.

    None takes the learner's own setting.

    Parameters
    ----------
    features
        The feature map. Default: standardised inputs and an intercept.
    policy
        The policy. None: a linear softmax over the learner's actions.
    penalty
        λ, the weight of pessimism. Not together with `objective`.
    l2
        Weight decay. Not together with `objective`.
    joins
        The number of rows from which on the member learns and acts. A rich class needs more rows.
    schedule
        When to retrain, such as `Geometric()`.
    oracle
        The solver, such as `o2pl.oracles.LBFGS(...)` or `o2pl.oracles.Minibatch(...)`.
    objective
        What is minimised: `Outcome(...)` or `Pessimistic(...)` of `o2pl.objectives`.
    prior
        Added to the logarithm of the member's weight among the members.
    """

    features: FeatureMap = LINEAR
    policy: Policy | None = None
    penalty: float | None = None
    l2: float | None = None
    joins: int = 0
    schedule: Schedule | None = None
    oracle: Oracle | None = None
    objective: Objective | None = None
    prior: float = 0.0  # added to the log weight among the members

    def __post_init__(self) -> None:
        check_number("prior", self.prior)
        for name in ("penalty", "l2"):
            if self.objective is not None and getattr(self, name) is not None:
                raise InvalidInput(
                    f"{name}: found {getattr(self, name)} together with an objective, expected it as a setting of the"
                    " objective"
                )
        if isinstance(self.objective, Outcome) and isinstance(self.policy, FinitePolicies):
            _refuse_finite_member(self.policy)


@dataclass
class FeatureState:
    """The state of a feature map; members with the same map and schedule share it."""

    features: FeatureMap
    schedule: Schedule
    state: State
    rows: int = 0  # rows of the log observed so far
    _planned: tuple[State, FeaturePlan | None] | None = None

    def plan(self, n_inputs: int) -> FeaturePlan | None:
        """Return the features of this state as one fused pass; None for custom feature maps."""
        if self._planned is None or self._planned[0] is not self.state:
            self._planned = self.state, feature_plan(self.features, self.state, n_inputs)
        return self._planned[1]

    def observe(self, rows: Interactions) -> None:
        """Observe the new rows of the log; settled features wait until there are enough."""
        if isinstance(self.features, Settled) and not self.features.due(self.state, len(rows)):
            return
        for start in range(self.rows, len(rows), BLOCK_ROWS):
            self.state = self.features.observe(self.state, rows.encoded[start : start + BLOCK_ROWS].inputs)
        self.rows = len(rows)


@dataclass
class MemberState:
    """The learned state of a member."""

    policy: Policy
    objective: Any  # an Objective
    schedule: Schedule
    oracle: Oracle
    seen: FeatureState
    joins: int
    params: Floats
    checkpoint: int  # number of rows at which it learns next
    kept: State = field(default_factory=dict)  # state of the oracle between steps
    effort: Ints = field(default_factory=lambda: np.zeros(2, np.int64))  # number of solves and of evaluations
    function: Any = None  # objective of the last solve, if it can be updated
    base: int = 0  # row at which its history starts
    known: int = 0  # rows of the log that it has learned from
    added: int | None = None  # rows of its history when an action was added
    is_monitor: bool = False  # the monitor: it forgets by its schedule, offline too
    device: str = "cpu"  # where its objective is evaluated
    calibration: tuple[float, float] = (0.0, 1.0)  # level and slope without an outcome model: `calibrated_member`
    _own: tuple[Floats, Floats] | None = None

    @classmethod
    def start(
        cls, member: Member, policy: Policy, shared: Any, seen: FeatureState, schedule: Schedule, width: int,
        generator: Any = None,
    ) -> MemberState:  # fmt: skip
        objective = member.objective or objective_of_member(member, shared)
        params = policy.init(seen.features.width(width, seen.state), generator)
        params = np.append(params, np.zeros(objective.extra)) if objective.extra else params
        oracle = member.oracle or oracle_of_member(policy, schedule, objective)
        kept = oracle.init(len(params))
        return cls(policy, objective, schedule, oracle, seen, member.joins, params, schedule.after(0), kept)

    def restart(self, base: int, width: int) -> None:
        """Reset the parameters, and start at a row of the log. The features keep their state."""
        features = self.seen.features.width(width, self.seen.state)
        self.params = np.append(self.policy.init(features), np.zeros(self.objective.extra))
        self.kept, self.function, self.base = self.oracle.init(len(self.params)), None, base
        self.calibration = (0.0, 1.0)

    def first(self, n: int) -> int:
        """Return the first of n rows that it learns from."""
        return self.base + self.schedule.start(n - self.base)

    def after(self, n: int, faint: bool) -> int:
        """Return the number of rows at which it learns next; with little weight (`faint`), at doubled history."""
        return self.base + next_solve_of_schedule(self.schedule, n - self.base, faint, self.added)

    @property
    def schedule_forgets(self) -> bool:
        """Whether it learns from some rows only, or from rows of different weights."""
        schedule: Any = self.schedule
        return not (isinstance(schedule, Exact) or (isinstance(schedule, Geometric) and not schedule.forgets))

    def weights(self, rows: Interactions, start: int, forgets: bool = True) -> Floats | None:
        """Return the weights of the log's rows from `start` on: what its schedule forgets, times the rows' own."""
        faded = self.schedule.weights(start + len(rows) - self.base) if forgets else None
        own = rows.effective_weights
        return faded if own is None else own if faded is None else faded * own

    @property
    def own_params(self) -> Floats:
        """The policy's parameters, without the objective's; the same array until it learns again."""
        if self._own is None or self._own[0] is not self.params:
            self._own = self.params, self.params[: len(self.params) - self.objective.extra]
        return self._own[1]

    def acting(self, width: int) -> list[tuple[Policy, Floats]]:
        """Return what acts, in equal shares: the policy, or its posterior draws. width: of the contexts."""
        if not isinstance(self.policy, Curve):
            return [(self.policy, self.own_params)]
        return [*self.policy.acting(self.own_params, self.seen.features.width(width, self.seen.state))]

    @property
    def _by_parameter(self) -> set[str]:
        """Names of the oracle's state arrays with one entry per parameter."""
        of_one, of_two = self.oracle.init(1), self.oracle.init(2)
        return {name for name, array in of_one.items() if array.shape != of_two[name].shape}

    def learn(
        self, rows: Interactions, start: int, control: object, shared: dict[Any, Any], oracle: Oracle | None = None,
        passes: Passes | None = None,
    ) -> None:  # fmt: skip
        """Learn from the log's rows, which begin at `start`. With another `oracle`, solve with it from scratch.

        shared: intermediate results shared by the members that learn now, by name. passes: None: all rows at once.
        """
        self.widen(rows.encoded.n_inputs)
        weights = self.weights(rows, start, oracle is None or self.is_monitor)
        fused = isinstance(self.oracle, Adam) and type(self.objective) is Pessimistic
        if oracle is None and fused and isinstance(self.oracle, Adam) and control is None and weights is None:
            dense = rows.encoded.kind == "dense"
            plan = self.seen.plan(rows.contexts.shape[1]) if dense else None
            moved = replay_adam(self.policy, self.objective, plan, self.oracle, rows, self.params, self.kept)
            if moved is not None:
                self.params, self.kept = moved
                self.effort += (1, self.oracle.steps)
                return
        with_oracle = self.oracle if oracle is None else offline_oracle_of_member(self, oracle)
        # weighted rows are the last few; a network uses rows in any order
        if passes is not None and weights is None and not with_oracle.plain and not is_neural(self.policy):
            log, function = passes.prepared(self._problem(None, rows, start, shared), control)
        else:
            log = self.objective.prepare(rows, control, weights)
            function = self.value(log, rows, start, shared, with_oracle.plain)
        self.function = function if function.incremental else None  # the others hold features in memory
        before = self.kept if oracle is None else with_oracle.init(len(self.params))
        share = 1.0 if oracle is None else _OFFLINE  # factor of the tolerance: an offline solve is more exact
        found, kept = with_oracle.step(function, log.started(self.params), before, share * log.negligible)
        if oracle is None:
            self.kept = kept
        self.params = found.params
        self.effort += (1, found.evaluations)

    def widen(self, n_inputs: int) -> None:
        """Add parameters for new features: after the policy's, before the objective's."""
        width, extra = self.seen.features.width(n_inputs, self.seen.state), self.objective.extra
        more = self.policy.n_params(width) + extra - len(self.params)
        if more > 0:
            self.params = _widened_member(self.params, more, extra)
            if extra:  # otherwise new parameters are appended, as oracles expect
                own = self._by_parameter
                self.kept = {n: _widened_member(a, more, extra) if n in own else a for n, a in self.kept.items()}

    def value(
        self, log: object, rows: Interactions, start: int, shared: dict[Any, Any], plain: bool = False
    ) -> Function:
        """Return the objective on rows (prepared as `log`) as a function of the parameters."""
        problem = self._problem(log, rows, start, shared)
        function = None if plain else find_value(problem)
        return (
            PolicyValue(self.policy, problem.featurise(), log, self.objective.extra) if function is None else function
        )

    def _problem(self, log: object, rows: Interactions, start: int, shared: dict[Any, Any]) -> MemberProblem:
        return MemberProblem(
            self.policy, self.objective, self.seen.features, self.seen.state, rows, start, log, self.function, shared,
            self.device, self.seen.plan,
        )  # fmt: skip

    def arrays(self) -> dict[str, Array]:
        return {"params": self.params, "effort": self.effort, **{f"kept.{n}": a for n, a in self.kept.items()}}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.params, self.effort = arrays["params"], arrays["effort"]
        self.kept = {name.removeprefix("kept."): a for name, a in arrays.items() if name.startswith("kept.")}


def _widened_member(array: Array, more: int, extra: int) -> Array:
    """Insert `more` zeros along the last axis, before its last `extra` entries."""
    own = array.shape[-1] - extra
    zeros = np.zeros((*array.shape[:-1], more), array.dtype)
    return np.concatenate([array[..., :own], zeros, array[..., own:]], axis=-1)


def objective_of_member(member: Member, shared: Any) -> Any:
    """Return the learner's objective with the member's penalty or l2."""
    own = {name: value for name in ("penalty", "l2") if (value := getattr(member, name)) is not None}
    if isinstance(shared, Outcome) and "penalty" in own:
        raise InvalidInput(
            f"penalty: found {member.penalty} for a member with an outcome objective, expected None, or"
            " Member(objective=Pessimistic(penalty=...))"
        )
    if isinstance(shared, Outcome) and isinstance(member.policy, FinitePolicies):
        _refuse_finite_member(member.policy)
    return replace(shared, **own)


def oracle_of_member(policy: Policy, schedule: Schedule, objective: object) -> Oracle:
    """Return the schedule's oracle, or the default for this policy and objective."""
    if isinstance(policy, Curve):
        return Recursive()
    if is_neural(policy):
        return _DENSITY if policy.continuous else _NETWORK
    if schedule.oracle is not None:
        return solving_oracle_of_member(policy, schedule.oracle)
    if isinstance(objective, Outcome):
        if isinstance(policy, SparseSoftmax):
            return _SPARSE_COMPETING if objective.competing else _SPARSE_INDEPENDENT
        return _COMPETING if objective.competing else _INDEPENDENT
    few = isinstance(policy, FinitePolicies | Softmax | SparseSoftmax)
    return solving_oracle_of_member(policy, _FEW_STEPS) if few else _STEPS


def offline_oracle_of_member(member: MemberState, oracle: Oracle) -> Oracle:
    """Return an oracle for a whole log; a network keeps its own, with more passes."""
    return (
        member.oracle.offline()
        if isinstance(member.oracle, Minibatch)
        else solving_oracle_of_member(member.policy, oracle)
    )


def solving_oracle_of_member(policy: Policy, oracle: Oracle) -> Oracle:
    """Return a requested oracle in the form that the policy can use.

    L-BFGS keeps the curvature between solves for a linear softmax, not for other policies. A finite class is searched
    exhaustively. A curve is solved by least squares.
    """
    if isinstance(policy, FinitePolicies):
        return Exhaustive()
    if isinstance(policy, Curve):
        return Recursive()
    if isinstance(oracle, LBFGS) and not isinstance(policy, _LINEAR_SOFTMAX):
        return Alone(oracle)
    return oracle
