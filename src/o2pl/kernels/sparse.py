"""The softmax on sparse rows: its objective and gradient."""

from __future__ import annotations

import numpy as np

from o2pl import _core
from o2pl.data.contexts import SparseRows
from o2pl.kernels.linear import inverse_propensities
from o2pl.objectives.outcome import OutcomeLog
from o2pl.objectives.pessimistic import VARIANCE, PessimisticLog
from o2pl.protocols import Floats, Ints
from o2pl.threads import side_by_side

PANEL = 2**14  # rows of a panel, at least
PANELS = 4  # at most: each has a gradient of its own


class SparseValue:
    """`PolicyValue` of `SparseSoftmax` and the pessimistic objective. Parameters [d, K], flattened."""

    incremental = False

    def __init__(self, log: PessimisticLog, rows: SparseRows, n_actions: int) -> None:
        control = None if log.control is None else np.ascontiguousarray(log.control.by_action, np.float32)
        residuals = (log.losses - log.subtracted).astype(np.float32)
        self._log = log
        self._risk = _core.SparseRisk(
            *_columns(rows), np.ascontiguousarray(log.actions, np.int64), residuals,
            inverse_propensities(log, np.float32), float(log.alpha), control,
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
        self._log = log
        self._room: Floats | None = None  # gradients of several panels
        (indices, values, offsets), n = _columns(rows), len(rows)
        actions, rewards = np.ascontiguousarray(log.actions, np.int64), log.rewards.astype(np.float32)
        weights = None if log.weights is None else log.weights.astype(np.float32)
        self._panels = [
            (
                indices, values, offsets[own.start : own.stop + 1], actions[own], rewards[own],
                None if weights is None else weights[own], log.competing, n_actions,
            )
            for own in panels(n)
        ]  # fmt: skip

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        log, tau, count = self._log, float(params[-1]), len(self._panels)
        sums, gradient, shrink = np.zeros((count, 2)), np.zeros(len(params)), log.l2 / log.size
        W, gradients = params[:-1], self._gradients(gradient[:-1])

        def panel(own: int) -> None:
            sums[own] = _core.sparse_outcome(*self._panels[own], W, tau, gradients[own])

        if count == 1:
            panel(0)
        else:
            side_by_side(panel, count)
            gradients.sum(axis=0, out=gradient[:-1])
        (loss, pulled), squares = sums.sum(axis=0), _core.shrunk(W, log.size, shrink, gradient[:-1])
        of_level, gradient[-1] = log.of_level(tau, float(pulled))
        return float(loss) / log.size + 0.5 * shrink * squares + of_level, gradient

    def _gradients(self, total: Floats) -> Floats:
        """Return zeros for the gradients of all panels: that of a single panel is the total."""
        if len(self._panels) == 1:
            return total[None]
        if self._room is None:
            self._room = np.empty((len(self._panels), len(total)))
        self._room.fill(0)
        return self._room


def panels(n: int) -> list[slice]:
    """Return at most `PANELS` panels of n rows."""
    size = max(PANEL, -(-n // PANELS))
    return [slice(first, min(first + size, n)) for first in range(0, max(n, 1), size)]


def _columns(rows: SparseRows) -> tuple[Ints, Floats, Ints]:
    """Return the columns in the types of the core."""
    return (
        np.ascontiguousarray(rows.indices, np.int32),
        np.ascontiguousarray(rows.values, np.float32),
        np.ascontiguousarray(rows.offsets, np.int64),
    )
