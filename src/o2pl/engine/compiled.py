"""Learning in the compiled core: what an engine's members have learned, to there and back.

The core learns if all parts are its own: the outcome objective, linear softmax policies on built-in features of numeric
rows or on hashed features, L-BFGS; the same for independent actions of sets with hashed features; a reward curve on
built-in features, recursive least squares; or a normal policy of fixed scale with the pessimistic objective and its
control variate, L-BFGS. It does what `Engine.learn` composes of Python parts, to the last bit, in one call a
checkpoint. Schedules and exploration rules are Python objects that it asks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl import _core
from o2pl.engine.acting import draws_of, split
from o2pl.engine.change import Changed
from o2pl.engine.mean_reward import MeanReward
from o2pl.engine.member import LINEAR, MemberState
from o2pl.engine.schedules import Exact, Geometric, next_solve_of_schedule
from o2pl.features.basic import Chain
from o2pl.features.hashing import SLOT, Hashed
from o2pl.features.plan import has_feature_plan
from o2pl.features.quadratic import Quadratic
from o2pl.features.settled import Settled
from o2pl.features.standardise import Standardise
from o2pl.kernels.dense import HELD
from o2pl.kernels.linear import linear_panel_rows
from o2pl.kernels.sparse import PANEL
from o2pl.objectives.outcome import Outcome
from o2pl.objectives.penalty import Phi
from o2pl.objectives.pessimistic import Pessimistic
from o2pl.objectives.squares import LeastSquares
from o2pl.objectives.terms import BASELINE
from o2pl.oracles.lbfgs import LBFGS
from o2pl.oracles.recursive import Recursive, unlearned_recursive_state
from o2pl.policies.actionwise import ActionWise
from o2pl.policies.curve import Curve
from o2pl.policies.gaussian import Gaussian
from o2pl.policies.sampling import BY_EXCESS, acting_numbers, check_explored
from o2pl.policies.softmax import Softmax
from o2pl.policies.sparse import SparseSoftmax
from o2pl.protocols import Array, Floats, Ints, State
from o2pl.threads import thread_count

if TYPE_CHECKING:
    from o2pl.engine.engine import Engine

_SMALL = 2048  # rows of the smallest panel: fewer are learned from by one thread
_MOMENTS = ("count", "mean", "squares", "binary", "shift", "scale")
_NO_MOMENTS = (
    np.zeros(1),
    np.empty(0),
    np.empty(0),
    np.empty(0, bool),
    np.empty(0, np.float32),
    np.empty(0, np.float32),
)
_NOTHING_WATCHED: Floats = np.zeros((6, 0))
_KEPT = {  # names of an oracle's arrays
    LBFGS: ("steps", "changes", "inner", "at"),
    Recursive: ("first_row", "rows", "covariance", "centre", "deviations", "noise"),
}


def compiled_learner(engine: Engine) -> _core.CompiledLearner | None:
    """Return a learner on the engine's log; None if one of the parts is not of the compiled core."""
    log, spec, columns = engine.log, engine.spec, engine.log.columns_in_place
    if columns is None or log.reward_range is None:
        return None
    ends = float(log.reward_range[0]), float(log.reward_range[1])
    if log.continuous:
        return _of_real(engine, columns, ends)
    if spec.control is not None:
        return None
    if type(spec.objective) is not Outcome or not all(map(_is_known, engine.members)):
        return None
    watch = None
    if engine.watch is not None:
        change = engine.watch.change
        watch = (
            engine.watch.place, float(change.memory), float(change.block), float(change.threshold), change.kept,
            change.apart,
        )  # fmt: skip
    members = [_settings(engine, member) for member in engine.members]
    given = columns, log.n_actions or 0, ends, members, watch, Choices(engine)
    seen = [each.features for each in engine.seen]
    made: _core.CompiledLearner
    if log.sparse:
        if len(seen) > 1:
            return None
        made = _core.CompiledHashed(*given, PANEL)
    else:
        width = [linear_panel_rows(features.width(log.width)) for features in seen]
        made = _core.CompiledDense(*given, _forms(engine), width, HELD)
    made.dispersion = 1.0 if engine.scale is None else engine.scale.dispersion
    return made


def _of_real(engine: Engine, columns: _core.LogColumns, ends: tuple[float, float]) -> _core.CompiledLearner | None:
    control, member = engine.spec.control, engine.members[0]
    if control is None:
        return _curve(engine, columns, ends) if all(map(_is_curve, engine.members)) else None
    if not all(map(_is_normal, engine.members)) or len(engine.seen) > 1:
        return None
    policy: Any = member.policy
    normal = float(policy.centre), float(policy.scale), float(control), float(member.objective.numbers[BASELINE])
    settings = [_settings(engine, member)], Choices(engine), _forms(engine)
    panel = linear_panel_rows(member.seen.features.width(engine.log.width))
    return _core.CompiledGaussian(columns, ends, *settings, (*normal, panel, HELD))


def _curve(engine: Engine, columns: _core.LogColumns, ends: tuple[float, float]) -> _core.CompiledCurve:
    (member,), width = engine.members, engine.seen[0].features.width(engine.log.width)
    policy: Any = member.policy
    cells, terms = policy.cells, policy.terms(width)
    settings = cells.count, cells.numbers, policy.degree, policy.draws, float(policy.spread), float(policy.sharpness)
    begun = unlearned_recursive_state(policy, width, member.objective.l2, np.empty(0))
    return _core.CompiledCurve(
        columns, ends, [_settings(engine, member)], Choices(engine), _forms(engine),
        (*settings, *terms, policy.basis(cells.count), width), tuple(begun[name] for name in _KEPT[Recursive]),
    )  # fmt: skip


def _is_known(member: MemberState) -> bool:
    features = member.seen.features
    if (type(member.objective), type(member.oracle), member.device) != (Outcome, LBFGS, "cpu"):
        return False
    if type(features) is Hashed:
        of_sets = type(member.policy) is ActionWise and not member.objective.competing
        return of_sets or type(member.policy) is SparseSoftmax
    return type(member.policy) is Softmax and has_feature_plan(_inner(features))


def _is_curve(member: MemberState) -> bool:
    known = type(member.policy), type(member.objective), type(member.oracle)
    return known == (Curve, LeastSquares, Recursive) and has_feature_plan(_inner(member.seen.features))


def _is_normal(member: MemberState) -> bool:
    policy: Any = member.policy
    schedule: Any = member.schedule
    if (type(policy), type(member.objective), type(member.oracle)) != (Gaussian, Pessimistic, LBFGS):
        return False
    equal = isinstance(schedule, Exact) or (isinstance(schedule, Geometric) and schedule.half_life is None)
    return equal and not policy.learn_scale and member.seen.features == LINEAR and member.device == "cpu"


def _settings(engine: Engine, member: MemberState) -> tuple[Any, ...]:
    objective, oracle = member.objective, member.oracle
    place = next(k for k, seen in enumerate(engine.seen) if seen is member.seen)
    prior = engine.spec.members[next(k for k, each in enumerate(engine.members) if each is member)].prior
    minimised, descent = (False, 0.0, 0.0), (0, 0, 0.0)
    if isinstance(objective, Outcome):
        minimised = objective.competing, objective.decay(engine.log.n_actions), objective.level_decay
    if isinstance(objective, Pessimistic):
        minimised = False, objective.l2, 0.0
    if isinstance(oracle, LBFGS):
        descent = oracle.iterations, oracle.memory, float(oracle.tolerance)
    return (*minimised, place, member.joins, float(prior), *descent, not _remembers(member.schedule))


def _remembers(schedule: object) -> bool:
    """Return whether all rows are learned from, equally."""
    return isinstance(schedule, Exact) or (isinstance(schedule, Geometric) and not schedule.forgets)


def learned_field(name: str) -> Any:
    """Return a field of an engine that changes when it learns: the compiled learner gives it back before it is used."""

    def get(engine: Engine) -> Any:
        engine.compiled.take_back(engine)
        return engine.__dict__[name]

    def put(engine: Engine, value: object) -> None:
        engine.compiled.take_back(engine)
        engine.__dict__[name] = value

    return property(get, put)


class Compiled:
    """The compiled learner of an engine, or none, and which of them has what was learned last."""

    def __init__(self, learner: _core.CompiledLearner | None) -> None:
        self._learner = learner
        self._ahead = False  # whether it has learned since `take_back`
        self._handed_over = False  # whether it has all that was learned

    @property
    def learns(self) -> bool:
        return self._learner is not None

    def learn(self, engine: Engine) -> bool:
        """Learn what is due. Returns False, and does nothing, if that takes other parts."""
        learner = self._learner
        if learner is None or not learner.has_rows:
            return False
        if not self._handed_over:
            _hand_over(engine, learner)
            self._handed_over = True
        if not learner.learn(thread_count() if len(engine.log) > _SMALL else 1):
            return False
        self._ahead = True
        return True

    def act_in(self, rounds: _core.Rounds) -> None:
        """Let rounds act as it does, and know at which number of rows to learn next."""
        assert self._learner is not None
        rounds.decide_as(self._learner)

    def solve_at(self, engine: Engine) -> int:
        """Return the number of rows at which members learn next. The learner may be ahead of the engine's members."""
        if self._handed_over and self._learner is not None:
            return self._learner.solve_at
        return min(member.checkpoint for member in engine.present)

    def take_back(self, engine: Engine) -> None:
        """Let the engine's members have what was learned. It is handed over again, since they may change it."""
        self._handed_over = False
        if engine.rounds is not None:
            engine.rounds.looks = False
        if self._ahead and self._learner is not None:
            with engine.lock:  # another thread may learn
                if self._ahead:
                    self._ahead = False
                    _take_back(engine, self._learner)

    @contextmanager
    def only_looked_at(self) -> Iterator[None]:
        """In this context, what was learned does not change."""
        before = self._handed_over
        yield
        self._handed_over = before


class Choices:
    """When members learn, from which rows, and how actions are explored. Rows are counted from a member's base."""

    def __init__(self, engine: Engine) -> None:
        self._schedules = [member.schedule for member in engine.members]
        self._added = [member.added for member in engine.members]
        self._objective = engine.members[0].objective
        self._rule, self._sharpness = engine.spec.exploration, engine.spec.sharpness
        self._n_actions, self._draws = engine.log.n_actions, [draws_of(member.policy) for member in engine.members]
        self._of_draws = max(self._draws) > 1

    def after(self, member: int, rows: int, faint: bool) -> int:
        """Return the number of rows at which a member learns next; `faint`: it has little weight."""
        return next_solve_of_schedule(self._schedules[member], rows, faint, self._added[member])

    def start(self, member: int, rows: int) -> int:
        return self._schedules[member].start(rows)

    def weights(self, member: int, rows: int) -> Floats | None:
        return self._schedules[member].weights(rows)

    def pessimism(self, rows: int) -> tuple[float, Phi]:
        """Return α and Φ of the only member's objective."""
        return self._objective.alpha(rows), self._objective.phi(rows)

    def acting(self, weights: Floats, plays: Ints, mean_reward: float, rewards: Floats) -> Floats:
        """Return `acting_numbers` for these weights of the members."""
        explored = check_explored(self._rule.at(plays, mean_reward, rewards), self._n_actions)
        if self._of_draws:
            weights = split(weights, self._draws[: len(weights)])
        predicting = np.zeros((len(weights) if self._sharpness == BY_EXCESS else 0, 4))  # the learner knows them
        return acting_numbers(weights, self._sharpness, explored, predicting)


# -- states of features


def _parts(features: object, state: State) -> list[tuple[Any, str, State]]:
    """Return each map with the prefix of its names and its state."""
    if isinstance(features, Settled):
        return _parts(features.features, features.inner(state))
    if not isinstance(features, Chain):
        return [(features, "", state)]
    return [
        (each, f"{k}.", own) for k, (each, own) in enumerate(zip(features.maps, features.parts(state), strict=True))
    ]


def _inner(features: object) -> Any:
    return features.features if type(features) is Settled else features


def _forms(engine: Engine) -> list[Any]:
    return [_form(seen.features, seen.state, engine.log.width) for seen in engine.seen]


def _form(features: object, state: State, n_inputs: int) -> tuple[Any, ...]:
    """Return d, whether inputs are standardised, the clip, whether there is a constant, directions [m, d], growth."""
    standardised, clip, intercept, directions = False, math.inf, False, np.empty((0, n_inputs), np.float32)
    for each, _, own in _parts(features, state):
        if isinstance(each, Standardise):
            standardised, clip = True, each.clip
        elif isinstance(each, Quadratic):
            directions = own["directions"] if len(own["directions"]) < n_inputs else directions
        else:
            intercept = True
    growth = float(features.growth) if isinstance(features, Settled) else 0.0
    return n_inputs, standardised, float(clip), intercept, directions, growth


def _learned_of(features: object, state: State) -> tuple[Any, ...]:
    """Return the moments of the inputs, and those of the products; of hashed features, of slots, and the table."""
    if isinstance(features, Hashed):
        return (*(state[name] for name in SLOT), features.slot_of(state))
    found: dict[type, tuple[Array, ...]] = {
        type(each): tuple(own[name] for name in _MOMENTS)
        for each, _, own in _parts(features, state)
        if isinstance(each, Standardise | Quadratic)
    }
    return found.get(Standardise, _NO_MOMENTS), found.get(Quadratic, _NO_MOMENTS)


def _with_learned(features: object, state: State, rows: int, learned: tuple[Any, ...]) -> State:
    if isinstance(features, Hashed):
        return dict(zip((*SLOT, "_slot_of"), learned, strict=True))
    new, (inputs, products) = dict(state), learned
    if isinstance(features, Settled):
        new |= features.counted(rows)
    for each, prefix, _ in _parts(features, state):
        if isinstance(each, Standardise | Quadratic):
            moments = inputs if isinstance(each, Standardise) else products
            new |= {prefix + name: array for name, array in zip(_MOMENTS, moments, strict=True)}
    return new


# -- what was learned


def _hand_over(engine: Engine, learner: _core.CompiledLearner) -> None:
    """Let the compiled learner continue from what the engine's members have learned."""
    seen = [(each.rows, *_learned_of(each.features, each.state)) for each in engine.seen]
    members = []
    for m in engine.members:
        kept = tuple(m.kept[name] for name in _KEPT[type(m.oracle)] if m.kept)
        members.append((m.params, np.array([m.checkpoint, m.base, m.known, *m.effort]), kept))
    watched, found = _NOTHING_WATCHED, []
    if engine.watch is not None:
        watched, found = engine.watch.seen, [tuple(each) for each in engine.watch.found]
    learner.load(
        (seen, members, engine.gains, engine.learned, watched, found, tuple(engine.mean_reward), _sums_of(engine))
    )


def _sums_of(engine: Engine) -> tuple[Any, ...] | None:
    sums = engine.curvature
    return None if sums is None or sums.rows < 0 else sums.state


def _take_back(engine: Engine, learner: _core.CompiledLearner) -> None:
    """Let the engine's members have what the compiled learner has learned."""
    seen, members, gains, learned, watched, found, mean, sums = learner.state()
    if engine.curvature is not None:
        engine.curvature.load(sums)
    for own, (rows, *learned_of) in zip(engine.seen, seen, strict=True):
        own.state, own.rows = _with_learned(own.features, own.state, rows, tuple(learned_of)), rows
    for m, (params, numbers, kept) in zip(engine.members, members, strict=True):
        m.params, m.kept = params, dict(zip(_KEPT[type(m.oracle)], kept, strict=bool(kept)))
        m.checkpoint, m.base, m.known = (int(number) for number in numbers[:3])
        m.effort, m.function = numbers[3:], None
    engine.gains, engine.learned, engine.mean_reward = gains, learned, MeanReward(*mean)
    if engine.watch is not None:
        moved = len(found) > len(engine.watch.found)
        engine.watch.restore([Changed(*each) for each in found], watched)
        if moved:
            engine.count_forgotten()
