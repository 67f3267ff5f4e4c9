"""The control variate of an engine, shared by members that learn from the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl import _core
from o2pl.data.interactions import Interactions
from o2pl.engine.member import LINEAR
from o2pl.kernels.fused_values import feature_rows_for_fused  # importing it registers the fused values
from o2pl.kernels.registry import MemberProblem
from o2pl.objectives.control import ridge_baseline, ridge_control
from o2pl.objectives.running_control import RunningControl
from o2pl.objectives.terms import BASELINE, Totals
from o2pl.protocols import Floats, State

if TYPE_CHECKING:
    from o2pl.engine.engine import Engine


def observe_control(engine: Engine, rows: Interactions) -> State | None:
    """Return the running control of sparse rows with the new rows; None without one."""
    running, ridge = engine.running, engine.spec.control
    if running is None or ridge is None:
        return running
    member, new = engine.members[0], rows[len(running["predicted"]) :]
    control = RunningControl(ridge, engine.log.n_actions or 0)
    features = member.seen.features.transform(member.seen.state, new.contexts)
    return control.observe(running, features, new.actions, new.losses, member.objective.numbers)


def control_of(engine: Engine, rows: Interactions, start: int, weights: Floats | None, shared: dict[Any, Any]) -> Any:
    """Return the control variate of the log's rows, which begin at `start`; None without one. weights: of the rows"""
    ridge, objective, n_actions = engine.spec.control, engine.spec.objective, engine.log.n_actions
    if ridge is None or rows.encoded.items is not None:
        return None
    if engine.running is not None:
        own = slice(start, start + len(rows))
        baseline = objective.level(rows.losses, weights)
        return RunningControl(ridge, n_actions or 0).control(engine.running, own, rows.actions, baseline)
    member = engine.members[0]
    seen = engine.seen_by(LINEAR, member.schedule)
    seen.observe(engine.log.columns)
    problem = MemberProblem(
        member.policy, objective, LINEAR, seen.state, rows, start, None, None, {"held": 0}, plan=seen.plan
    )  # each feature is needed once or twice: made as they are used, they take no memory
    if engine.passes is not None and n_actions is not None:
        baseline = objective.level_of(Totals.of(rows))
        return engine.passes.control(problem.featurise, rows, n_actions, baseline, ridge)
    losses = rows.losses
    if n_actions is None:
        plan: Any = problem.feature_plan()
        if plan is None:
            return ridge_baseline(problem.featurise(), losses, objective.level(losses, weights), ridge)
        baseline = objective.numbers[BASELINE] if weights is None else objective.level(losses, weights)
        contexts = np.ascontiguousarray(rows.contexts, np.float32)
        return _core.ridge_baseline(contexts, plan, losses, float(baseline), ridge)
    features, baseline = feature_rows_for_fused(problem), objective.level(losses, weights)
    return ridge_control(features, rows.actions, losses, n_actions, baseline, ridge)
