"""The softmax on sparse rows: its objective and gradient."""

from __future__ import annotations

import numpy as np

from o2pl import _core
from o2pl.data.contexts import SparseRows
from o2pl.kernels.linear import linear_inverse_propensities
from o2pl.objectives.outcome import OutcomeLog
from o2pl.objectives.pessimistic import VARIANCE, PessimisticLog
from o2pl.protocols import Floats, Ints
from o2pl.threads import thread_count

PANEL = 2**14  # rows of a panel, at least


class SparseValue:
    """`PolicyValue` of `SparseSoftmax` and the pessimistic objective. Parameters [d, K], flattened."""

    incremental = False

    def __init__(self, log: PessimisticLog, rows: SparseRows, n_actions: int) -> None:
        control = None if log.control is None else np.ascontiguousarray(log.control.by_action, np.float32)
        residuals = (log.losses - log.subtracted).astype(np.float32)
        self._log = log
        self._risk = _core.SparseRisk(
            *_sparse_columns(rows), np.ascontiguousarray(log.actions, np.int64), residuals,
            linear_inverse_propensities(log, np.float32), float(log.alpha), control,
            0.0 if control is None else float(log.baseline), n_actions,
        )  # fmt: skip

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        log, gradient, sums = self._log, np.zeros(len(params)), np.array([*self._risk.sums(params)])
        self._risk.add_gradient(log.penalty(float(sums[VARIANCE]) / log.size)[1], gradient)
        shrink = log.l2 / log.size
        return log.value(sums) + 0.5 * shrink * _core.shrunk(params, log.size, shrink, gradient), gradient


class SparseOutcome:
    """`PolicyValue` of `SparseSoftmax` and the outcome objective. Parameters [d, K], flattened, then τ.

    For independent actions, only the played one enters the likelihood. Long logs are split into panels, each with sums
    and a gradient of its own, so the result does not depend on the number of threads.
    """

    incremental = False

    def __init__(self, log: OutcomeLog, rows: SparseRows, n_actions: int) -> None:
        actions, rewards = np.ascontiguousarray(log.actions, np.int64), log.rewards.astype(np.float32)
        weights = None if log.weights is None else log.weights.astype(np.float32)
        settings = float(log.size), float(log.l2), float(log.level_l2)
        self._value = _core.SparseOutcome(
            *_sparse_columns(rows), actions, rewards, weights, log.competing, n_actions, settings, PANEL
        )
        self._threads = thread_count() if len(rows) > PANEL else 1

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        gradient = np.empty(len(params))
        return self._value.value(params, gradient, self._threads), gradient

    def descend(
        self, params: Floats, steps: Floats, changes: Floats, inner: Floats, at: Ints, iterations: int,
        tolerance: float, negligible: float,
    ) -> tuple[Floats, float, bool, int]:  # fmt: skip
        """Minimise like `_core.descend`, from its arguments without the function."""
        settings = iterations, tolerance, negligible, self._threads
        return self._value.descend(params, steps, changes, inner, at, *settings)


def _sparse_columns(rows: SparseRows) -> tuple[Ints, Floats, Ints]:
    """Return the columns in the types of the core."""
    return (
        np.ascontiguousarray(rows.indices, np.int32),
        np.ascontiguousarray(rows.values, np.float32),
        np.ascontiguousarray(rows.offsets, np.int64),
    )
