"""Actions that come and go: `add_action` and `remove_action` of learners with a fixed number of actions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from o2pl.data.action_names import Names, check_action_names
from o2pl.engine.engine import Engine
from o2pl.engine.offline import continue_offline
from o2pl.errors import InvalidInput, nearest
from o2pl.policies import Softmax, SparseSoftmax
from o2pl.protocols import Floats

if TYPE_CHECKING:
    from o2pl.learners.discrete import DiscreteEstimator


def add_action(learner: DiscreteEstimator, name: str | None, like: object) -> int | str:
    """Let a learner choose one more action. Returns its name or index."""
    engine, names = _engine_with_action_set(learner, "add_action"), learner.actions_
    if name is not None and name in learner._removed:  # what was learned of it is still there
        if like is not None:
            raise InvalidInput(f"like: found {like!r} for {name!r}, which has been an action before, expected None")
        _set_removed(learner, engine, tuple(each for each in learner._removed if each != name))
        return name
    if names and name is None:
        raise InvalidInput(
            f"add_action: found no name, expected one, as the other actions have: {', '.join(names[:8])}"
        )
    if name is not None and not names:
        raise InvalidInput(
            f"add_action: found {name!r} for numbered actions, expected none: the new one is {learner.n_actions_}"
        )
    if name in names:
        raise InvalidInput(f"add_action: found {name!r}, which is an action already, expected a new name")
    model = None if like is None else _index_in_action_set(learner, like, "like")
    more: Names = check_action_names([*names, name]) if names else ()
    grown = _grown_action_set(learner, engine, more)
    if model is not None:
        _imitate(grown, model)
    return more[-1] if more else learner.n_actions_ - 1


def remove_action(learner: DiscreteEstimator, action: int | str) -> None:
    """Let a learner never choose this action again."""
    engine = _engine_with_action_set(learner, "remove_action")
    _index_in_action_set(learner, action, "action")
    if action in learner._removed:
        raise InvalidInput(f"remove_action: found {action!r}, which was removed before")
    if len(learner._removed) + 1 == learner.n_actions_:
        raise InvalidInput(f"remove_action: found {action!r}, the last action, expected at least one that stays")
    _set_removed(learner, engine, (*learner._removed, action))


def _engine_with_action_set(learner: DiscreteEstimator, of: str) -> Engine:
    kind = type(learner).__name__
    if learner._engine is None:
        raise InvalidInput(f"{of}: found a learner that has seen no data, expected {kind}(actions=[...])")
    if learner._engine.encoder.items:
        raise InvalidInput(f"{of}: found contexts that contain their actions, expected others in the next call of act")
    return learner._engine


def _index_in_action_set(learner: DiscreteEstimator, action: object, what: str) -> int:
    """Return the index of an action, given by its name or, if actions have none, its index."""
    names: Names = learner.actions_
    if names:
        if action not in names:
            raise InvalidInput(f"{what}: found {action!r}, {nearest(str(action), names)}")
        return names.index(action)
    if isinstance(action, bool) or not isinstance(action, int | np.integer) or not 0 <= action < learner.n_actions_:
        raise InvalidInput(f"{what}: found {action!r}, expected an integer from 0 to {learner.n_actions_ - 1}")
    return int(action)


def _set_removed(learner: DiscreteEstimator, engine: Engine, removed: tuple[int | str, ...]) -> None:
    with engine.lock:
        learner._removed = removed
        engine.explore_by(learner._exploring(learner.n_actions_, learner.actions_))


def _grown_action_set(learner: DiscreteEstimator, before: Engine, names: Names) -> Engine:
    """Return the engine with one more action, the last. It has learned from the same rows."""
    with before.lock:
        known = learner.n_actions, learner.actions, learner.n_actions_
        learner.n_actions = None if learner.n_actions is None else learner.n_actions_ + 1
        learner.actions = None if learner.actions is None else list(names)
        try:
            engine = learner._make_engine(before.encoder, known[-1] + 1, names)
            if learner.n_actions_ == known[-1]:
                raise InvalidInput(f"policy: found one of {known[-1]} actions, expected one that is given by its name")
            for member in engine.members:
                member.added = len(before.log) - (0 if member.is_monitor else before.base)
            continue_offline(engine, before.log.columns, before)
        except ValueError:
            learner.n_actions, learner.actions, learner.n_actions_ = known
            raise
        learner._adopt(engine)
    return engine


def _imitate(engine: Engine, model: int) -> None:
    """Let the last action begin with what was learned of another."""
    for member in engine.members:
        own = len(member.params) - member.objective.extra
        if isinstance(member.policy, Softmax):  # [K, d]
            weights: Floats = member.params[:own].reshape(member.policy.n_actions, -1).copy()
            weights[-1] = weights[model]
        elif isinstance(member.policy, SparseSoftmax):  # [d, K]
            weights = member.params[:own].reshape(-1, member.policy.n_actions).copy()
            weights[:, -1] = weights[:, model]
        else:
            continue
        member.params = np.concatenate([weights.reshape(-1), member.params[own:]])
    engine.decider = engine.new_decider()
    engine.begin_rounds()
