"""Solves in passes over a log on disk. Every pass is reported and checkpointed, so that a restart repeats none."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.data.log import Buffers
from o2pl.kernels.blockwise import BlockwiseValue
from o2pl.kernels.registry import MemberProblem
from o2pl.objectives.control import Control, RidgeSums
from o2pl.objectives.pessimistic import VARIANCE, PessimisticLog
from o2pl.objectives.terms import Totals
from o2pl.policies.sampling import log_softmax
from o2pl.protocols import Array, Floats, Function, PreparedLog

_LOOKED_AT = 10_000  # rows used to estimate the fraction of clipped weights
_STRETCH = 2**14  # rows per block of the control variate

Kept = Callable[[str, Callable[[], Array]], Array]


class Pass(NamedTuple):
    """One evaluation of an objective and its gradient over all rows."""

    solve: int  # number of the solve, from 1: members are solved in turn
    number: int  # number of the pass within the solve, from 1
    objective: float
    penalty: float | None  # Φ; None: a likelihood has none
    clipped: float | None  # fraction of clipped weights
    rows: int
    seconds: float  # 0: read from a checkpoint


Passed = Callable[[Pass], None]


class BlockPasses:
    """`Passes` over the blocks of a mapped log. `folder`: for arrays as long as the log."""

    def __init__(self, folder: Path, kept: Kept, passed: Passed | None = None) -> None:
        self.folder, self._kept, self._passed, self._solves = folder, kept, passed, 0

    def prepared(self, problem: MemberProblem, control: Control | None) -> tuple[PreparedLog, Function]:
        self._solves += 1
        totals = Totals.of(problem.rows)
        value = BlockwiseValue(problem, control, totals)
        return value.log, KeptPasses(value, self.summed(value), self._solves, self._kept, self._passed)

    def summed(self, value: BlockwiseValue) -> Any:
        """Return the function that adds up the blocks."""
        return value.sums

    def control(self, features: Any, rows: Interactions, n_actions: int, baseline: float, ridge: float) -> Control:
        sums = RidgeSums(n_actions, ridge)
        stretches = [slice(at, min(at + _STRETCH, len(rows))) for at in range(0, len(rows), _STRETCH)]
        for some in stretches:
            sums.add(features(some), rows.actions[some], rows[some].losses - baseline)
        model, made = sums.solved(), mapped_control_for_passes(self.folder, n_actions, len(rows), new=True)
        for some in stretches:
            own = model.control(features(some), rows.actions[some], rows[some].losses - baseline, baseline)
            made.by_action[:, some], made.played[some] = own
        return made


def mapped_control_for_passes(folder: Path, n_actions: int, rows: int, new: bool = False) -> Control:
    """Return a control variate in memory-mapped files; new: create them."""
    by_action = Buffers(folder, None if new else n_actions).make(f"control-{rows}", (n_actions, rows), np.float32)
    return Control(by_action, Buffers(folder, None if new else rows).make(f"played-{rows}", (rows,), np.float64))


class KeptPasses:
    """An objective whose values and gradients are checkpointed and reused after a restart."""

    incremental = False

    def __init__(
        self, value: BlockwiseValue, summed: Callable[[Floats], Any], solve: int, kept: Kept, passed: Passed | None
    ) -> None:
        self._value, self._summed, self._solve, self._kept, self._passed = value, summed, solve, kept, passed
        self._passes = 0
        problem = value.problem
        if isinstance(value.log, PessimisticLog) and passed is not None:
            step = max(1, len(problem.rows) // _LOOKED_AT)
            some = problem.rows[np.arange(0, len(problem.rows), step)]
            self._looked_at = some, problem.features.transform(problem.seen, some.contexts)

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        self._passes += 1
        digest, seconds = hashlib.sha256(np.ascontiguousarray(params).tobytes()).hexdigest()[:16], 0.0

        def found() -> Array:
            nonlocal seconds
            started = time.perf_counter()
            sums, gradients = self._summed(params)
            value, gradient = self._value.log.combine(params, sums, gradients)
            seconds = time.perf_counter() - started
            return np.concatenate([[value], gradient, sums])

        both = self._kept(f"solve {self._solve}, pass {self._passes}, parameters {digest}", found)
        value, gradient, sums = float(both[0]), both[1 : 1 + len(params)], both[1 + len(params) :]
        if self._passed is not None:
            penalty, clipped = self._pessimism(params, sums)
            rows = len(self._value.problem.rows)
            self._passed(Pass(self._solve, self._passes, value, penalty, clipped, rows, seconds))
        return value, gradient

    def _pessimism(self, params: Floats, sums: Floats) -> tuple[float | None, float | None]:
        log = self._value.log
        if not isinstance(log, PessimisticLog):
            return None, None
        penalty = log.penalty(float(sums[VARIANCE]) / log.size)[0]
        rows, features = self._looked_at
        scores, _ = self._value.problem.policy.forward(params, features, rows.actions)
        likelihoods = np.exp(log_softmax(scores)[np.arange(len(rows)), rows.actions])
        return penalty, float(np.mean(likelihoods / rows.propensities > log.alpha))
