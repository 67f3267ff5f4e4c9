"""The action-wise softmax on dense rows, in the compiled core: see `native/core/action_sets.hpp`."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl import _core
from o2pl.features.plan import FeaturePlan
from o2pl.kernels.dense import HELD
from o2pl.kernels.linear import linear_inverse_propensities, linear_panel_rows
from o2pl.objectives.pessimistic import PessimisticLog
from o2pl.protocols import Floats, Ints
from o2pl.threads import thread_count

_LANES = 16


def actionwise_value(log: PessimisticLog, rows: Floats, plan: FeaturePlan, offsets: Ints) -> _core.DenseValue:
    """Return `PolicyValue` of `ActionWise` without a control variate. rows: of all actions of all sets."""
    n, step = len(rows), -(-linear_panel_rows(plan.width) // _LANES) * _LANES
    rows, actions = np.ascontiguousarray(rows, np.float32), np.ascontiguousarray(log.actions, np.int64)
    laid = _core.dense_rows(rows, plan, np.zeros(n, np.int64), np.zeros(n), 0.0, None, None, 1, False, step, HELD)
    penalty: Any = tuple(map(float, log.penalty))  # type: ignore[call-overload]  # a Phi in every fused objective
    return _core.action_sets_value(
        laid, offsets, actions, log.residuals, linear_inverse_propensities(log, np.float64), float(log.alpha), log.size,
        log.l2, penalty, thread_count() if n > step else 1,
    )  # fmt: skip
