"""The Gaussian policy on dense rows, in the compiled core: see `native/core/gaussian.hpp`."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl import _core
from o2pl.features.plan import FeaturePlan
from o2pl.kernels.dense import HELD
from o2pl.kernels.linear import linear_panel_rows
from o2pl.objectives.pessimistic import PessimisticLog
from o2pl.policies.gaussian import Gaussian
from o2pl.protocols import Floats
from o2pl.threads import thread_count


def gaussian_value(log: PessimisticLog, contexts: Floats, plan: FeaturePlan, policy: Gaussian) -> _core.DenseValue:
    """Return `PolicyValue` of `Gaussian`."""
    n, step, residuals = (
        len(log.actions),
        linear_panel_rows(plan.width),
        np.ascontiguousarray(log.residuals, np.float64),
    )
    rows = np.ascontiguousarray(contexts, np.float32)
    laid = _core.dense_rows(rows, plan, np.zeros(n, np.int64), residuals, 0.0, None, None, 1, False, step, HELD)
    penalty: Any = tuple(map(float, log.penalty))  # type: ignore[call-overload]  # a Phi in every fused objective
    return _core.gaussian_value(
        laid, log.actions - policy.centre, residuals, log.propensities, float(log.alpha), log.size, log.l2,
        penalty, policy.scale, policy.learn_scale, thread_count() if n > step else 1,
    )  # fmt: skip
