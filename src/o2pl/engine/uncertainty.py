"""How certain the predicted rewards of a fixed number of actions are, as rows arrive.

    s_a² = 1/A_a + c_a,   A_a = λ + Σ h,   B_ai = λ + Σ h (φ_i - φ̄_i)²,   over the rows with action a
    c_a = (1 - 2/K) min(1, 2/d)/d Σ_i (φ_i - φ̄_i)²/B_ai

φ: the d standardised inputs, h = m (1 - m) of the predicted reward m, λ = min(1, 8/K). An action also gains
.6 log(1 + n) max(0, 1 - 4 h̄) √c_a, which matters in contexts unlike those in which it was played. Sums and variances
are `_core.Curvature` and `_core.Uncertainty`; the compiled learner looks at its rows in the same way. Of hashed
features, φ are the d entries of a row, and φ̄ = 0.

The actions of action sets share their weights. Without ids (with them: `engine.item_memory`), an action has

    s_a² = min(1, 2/d)/d Σ_i φ_i²/B_i,   B_i = 3 + Σ h φ_i²   over the played actions, d: the φ_i that are not 0

where only features count that differ between the actions of a set: the item's, and their products with the user's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl import _core
from o2pl.data.interactions import Interactions
from o2pl.data.log import Log
from o2pl.engine.member import BLOCK_ROWS
from o2pl.engine.member_weights import predicted_log_odds
from o2pl.engine.spec import Spec
from o2pl.features.user_items import UserItems, item_inputs
from o2pl.policies.sampling import BY_EXCESS
from o2pl.protocols import FeatureMap, Floats

if TYPE_CHECKING:
    from o2pl.engine.engine import Engine

_SUMS = ("level", "spread", "centre")


def curvature_for(spec: Spec, log: Log) -> _core.Curvature | None:
    """Return the sums for an engine; None if it does not explore by them."""
    if spec.sharpness != BY_EXCESS:
        return None
    if log.action_sets:
        return _core.Curvature(1, 0 if log.sparse else _of_items(spec.members[0].features, log.width))
    K = log.n_actions
    if K is None or not 2 <= K <= _core.Curvature.most_actions:
        return None
    return _core.Curvature(K, 0 if log.sparse else log.width)


def _of_items(features: FeatureMap, width: int) -> int:
    """Return the number of inputs that differ between the actions of a set."""
    return features.width(width) - features.before_items if isinstance(features, UserItems) else width


def _sums(engine: Engine) -> _core.Curvature | None:
    """Return the engine's sums; None if it has none, or knows its items by id."""
    log = engine.log
    return None if log.action_sets and log.contexts.item_ids is not None else engine.curvature


def look_at_rows(engine: Engine, n: int, solved: bool) -> bool:
    """Let the engine's sums know the rows up to n. Returns whether they changed. solved: members have just learned"""
    sums, member = _sums(engine), engine.members[0]
    if sums is None or not (solved or _looks_often(engine)):
        return False
    first = member.first(n)
    fades = solved and member.schedule.weights(n - member.base) is not None
    if solved and (sums.rows < 0 or fades or sums.is_old(first, n)):
        _begin(engine, sums, first, n)
    if sums.rows < 0:
        return False
    _look_at_new_rows(engine, sums, n, member.weights(engine.log[first:n], first, solved), first)
    return True


def look_before_solve(engine: Engine, n: int) -> None:
    """Let the sums know the rows up to n by the present predictions; not if all are looked at after the solve."""
    sums, member = _sums(engine), engine.members[0]
    if sums is not None and not member.schedule_forgets and not sums.is_old(member.base, n):
        _look_at_new_rows(engine, sums, n, None, 0)


def _look_at_new_rows(engine: Engine, sums: _core.Curvature, n: int, weights: Floats | None, first: int) -> None:
    """weights: of rows from `first` on; None: one each."""
    while 0 <= sums.rows < n:
        start = sums.rows
        rows = engine.log[start : min(start + BLOCK_ROWS, n)]
        h = _core.mean_curvature(predicted_log_odds(engine.present, engine.decider, rows), engine.weights)
        _add(engine, sums, rows, h if weights is None else h * weights[start - first :][: len(rows)])


def _looks_often(engine: Engine) -> bool:
    """Return whether rows are looked at between two solves, too: if that costs little and all rows count alike."""
    log = engine.log
    return not log.sparse and not log.action_sets and not engine.members[0].schedule_forgets


def _begin(engine: Engine, sums: _core.Curvature, first: int, n: int) -> None:
    if engine.log.sparse or engine.log.action_sets:
        sums.begin_slots(first, n - first)
    else:
        sums.begin(first, _inputs(engine), np.ascontiguousarray(engine.log[first:n].contexts, np.float32))


def _add(engine: Engine, sums: _core.Curvature, rows: Interactions, h: Floats) -> None:
    actions, seen, contexts = np.asarray(rows.actions, np.int64), engine.members[0].seen, rows.contexts
    if engine.log.action_sets:
        contexts, actions = rows.encoded.played(actions), np.zeros_like(actions)
    if not engine.log.sparse:
        own = item_inputs(seen.features, seen.state, contexts)
        sums.add(_inputs(engine), own, actions, np.asarray(h, np.float64))
        return
    laid = seen.features.transform(seen.state, contexts)
    sums.add_slots(laid.indices, laid.values, laid.offsets, laid.width, actions, h)


def uncertainty_of(engine: Engine) -> _core.Uncertainty | None:
    """Return what the engine's sums say now."""
    sums = _sums(engine)
    return None if sums is None or sums.rows < 0 else sums.uncertainty(_inputs(engine))


def next_look(engine: Engine) -> float:
    """Return the number of rows at which to look again, between two solves."""
    sums = _sums(engine)
    return sums.next if sums is not None and sums.rows >= 0 and _looks_often(engine) else math.inf


def _inputs(engine: Engine) -> tuple[Any, ...]:
    """Return shift, scale and clip of the first member's inputs; custom features: as they are, hashed: none."""
    if engine.log.sparse:
        return np.empty(0, np.float32), np.empty(0, np.float32), math.inf
    seen, d = engine.members[0].seen, engine.log.width
    plan = seen.plan(d)
    if isinstance(seen.features, UserItems):
        plan, d = None, _of_items(seen.features, d)
    return (np.zeros(d, np.float32), np.ones(d, np.float32), math.inf) if plan is None else tuple(plan[:3])


# -- files


def saved_sums(sums: _core.Curvature | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a file keeps of the sums, header and arrays."""
    if sums is None or sums.rows < 0:
        return {}, {}
    numbers, total, *arrays = sums.state
    named = {f"curvature.{name}": array for name, array in zip(_SUMS, arrays, strict=True)}
    return {"curvature": [*numbers.tolist(), total]}, named


def restore_sums(sums: _core.Curvature | None, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Continue from what a file kept; older files kept nothing."""
    if sums is None:
        return
    if "curvature" not in header:
        sums.load(None)
        return
    *numbers, total = header["curvature"]
    sums.load((np.array(numbers, np.int64), float(total), *(arrays[f"curvature.{name}"] for name in _SUMS)))
