"""A control variate for sparse rows: one linear model per action, updated as rows arrive, in O(nonzeros) per row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from o2pl import _core
from o2pl.data.contexts import SparseRows
from o2pl.objectives.control import Control
from o2pl.protocols import Array, Floats, Ints, State


class RunningControl(NamedTuple):
    """Recursive least squares with variances but no covariances; each row is predicted from earlier rows."""

    ridge: float
    n_actions: int

    def init(self) -> State:
        K = self.n_actions
        return {
            "model": np.zeros((0, K), np.float32),  # weights [slots, K]
            "spread": np.zeros((0, K), np.float32),  # their variances; 0 means the prior's
            "predicted": np.zeros((0, K), np.float32),  # y - b of every row and action, [n, K]
            "total": np.zeros(1),  # Σ losses
        }

    def observe(self, state: State, rows: SparseRows, actions: Ints, losses: Floats, numbers: Floats) -> State:
        """Return the state updated with more feature rows. numbers: `Pessimistic.numbers`"""
        known, more = len(state["predicted"]), len(rows)
        new: dict[str, Array] = {name: _longer_running_control(state[name], rows.width) for name in ("model", "spread")}
        new |= {"predicted": _longer_running_control(state["predicted"], known + more), "total": state["total"].copy()}
        new["total"][0] = _core.predict_losses(
            rows.indices, rows.values, rows.offsets, actions, losses, known, numbers, 1 / self.ridge,
            float(new["total"][0]), new["model"], new["spread"], new["predicted"][known:],
        )  # fmt: skip
        return new

    def control(self, state: State, rows: slice, actions: Ints, baseline: float) -> Control:
        by_action = np.clip(state["predicted"][rows].T, -1 - baseline, -baseline) + np.float32(baseline)
        return Control(np.ascontiguousarray(by_action), by_action[actions, np.arange(len(actions))])


def _longer_running_control(array: Array, size: int) -> Array:
    out = np.zeros((size, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out
