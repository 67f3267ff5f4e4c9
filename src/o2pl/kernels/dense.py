"""Objectives of a linear softmax on dense rows, in the compiled core: rows in lanes, products of features in registers.

Rows are summed up in panels, and these in order, so the result does not depend on the number of threads.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from o2pl import _core
from o2pl.features.plan import FeaturePlan
from o2pl.kernels.linear import linear_panel_rows
from o2pl.objectives.outcome import OutcomeLog
from o2pl.objectives.pessimistic import PessimisticLog
from o2pl.protocols import Floats
from o2pl.threads import thread_count

HELD = 32 * 2**20  # bytes of laid out rows that are kept between evaluations
_NONE = np.empty(0, np.float32)


def dense_plan(width: int) -> FeaturePlan:
    """Return the plan of rows that are features already."""
    shift, scale = np.zeros(width, np.float32), np.ones(width, np.float32)
    return FeaturePlan(shift, scale, math.inf, np.empty((width, 0), np.float32), _NONE, _NONE, False)


def dense_layout(
    log: OutcomeLog | PessimisticLog, contexts: Floats, plan: FeaturePlan, n_actions: int, held: int | None = None
) -> _core.DenseRows:
    """Return the rows of a log in lanes, with what the objective needs of each. held: bytes; None: `HELD`."""
    rows = np.ascontiguousarray(contexts, np.float32)
    outcome = isinstance(log, OutcomeLog)
    rewards: Any = log.rewards if isinstance(log, OutcomeLog) else log.losses
    subtracted: Any = 0.0 if isinstance(log, OutcomeLog) else log.subtracted
    if isinstance(subtracted, np.ndarray):
        subtracted = np.ascontiguousarray(subtracted, np.float32)
    propensities = None if isinstance(log, OutcomeLog) else np.ascontiguousarray(log.propensities, np.float64)
    weights = None if log.weights is None else np.ascontiguousarray(log.weights, np.float64)
    actions, step = np.ascontiguousarray(log.actions, np.int64), linear_panel_rows(plan.width)
    return _core.dense_rows(
        rows, plan, actions, np.ascontiguousarray(rewards, np.float64), subtracted, propensities, weights, n_actions,
        outcome, step, HELD if held is None else held,
    )  # fmt: skip


def dense_value(
    log: OutcomeLog | PessimisticLog, rows: _core.DenseRows, n: int, width: int, n_actions: int
) -> _core.DenseValue:
    """Return `PolicyValue` of `Softmax` on rows from `dense_layout`. n: their number"""
    threads = thread_count() if n > linear_panel_rows(width) else 1
    if isinstance(log, OutcomeLog):
        return _core.outcome_value(rows, log.competing, log.size, log.l2, log.level_l2, threads)
    control = None if log.control is None else np.ascontiguousarray(log.control.by_action, np.float32)
    baseline = 0.0 if log.control is None else float(log.baseline)
    penalty: Any = tuple(map(float, log.penalty))  # type: ignore[call-overload]  # a Phi in every fused objective
    return _core.pessimistic_value(rows, float(log.alpha), log.size, log.l2, baseline, penalty, control, threads)
