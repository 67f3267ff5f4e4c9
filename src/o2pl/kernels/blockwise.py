"""An objective evaluated block by block: on a log on disk, or on a shard of one.

The blocks are the panels of `DenseRows`, so the sums equal those of a log in memory, term by term.
"""

from __future__ import annotations

from typing import Any

from o2pl import _core
from o2pl.kernels.linear import linear_panel_rows
from o2pl.kernels.registry import MemberProblem, find_value
from o2pl.objectives.control import Control
from o2pl.objectives.pessimistic import PolicyValue
from o2pl.objectives.terms import Totals
from o2pl.protocols import Floats
from o2pl.threads import in_threads

_SETS = 2**14  # rows per block of action sets
_AT_ONCE = 64  # blocks whose sums are kept until they are added in order

Sums = tuple[Floats, list[Floats]]  # sums over rows, and the parts of the gradient


class BlockwiseValue:
    """The function θ -> V(π_θ) and its gradient. `totals`: of the whole log; the problem's rows may be a part of it."""

    incremental = False

    def __init__(self, problem: MemberProblem, control: Control | None, totals: Totals) -> None:
        self.problem, self.totals, self.control = problem, totals, control
        self.log: Any = problem.objective.prepare(problem.rows[:0], totals=totals)
        dense = problem.rows.encoded.kind == "dense"
        self._step = linear_panel_rows(problem.width) if dense else _SETS

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        value, gradient = self.log.combine(params, *self.sums(params))
        return value, gradient

    def sums(self, params: Floats) -> Sums:
        blocks, total = self.blocks, None
        for first in range(0, len(blocks), _AT_ONCE):
            some = blocks[first : first + _AT_ONCE]
            found: list[Any] = [None] * len(some)

            def work(place: int, some: list[slice] = some, found: list[Any] = found) -> None:
                found[place] = self.block(some[place]).sums(params)

            in_threads(work, len(some))
            total = added_blockwise(found if total is None else [total, *found])
        assert total is not None
        return total

    @property
    def blocks(self) -> list[slice]:
        n = len(self.problem.rows)
        return [slice(start, min(start + self._step, n)) for start in range(0, n, self._step)]

    def block(self, rows: slice) -> _core.DenseValue | PolicyValue:
        """Return the objective on these rows, by a kernel if there is one."""
        some, control = self.problem.rows[rows], None if self.control is None else self.control.part(rows)
        log = self.problem.objective.prepare(some, control, totals=self.totals)
        problem = self.problem._replace(rows=some, log=log, shared={"held": 0}, previous=None)
        function = find_value(problem)
        if isinstance(function, _core.DenseValue):
            return function
        return PolicyValue(problem.policy, problem.featurise(), log, problem.objective.extra)


def added_blockwise(parts: list[Sums]) -> Sums:
    """Add the parts in order, so that the result does not depend on which worker computed them."""
    sums, gradients = parts[0][0].copy(), [each.copy() for each in parts[0][1]]
    for more, others in parts[1:]:
        sums += more
        for total, other in zip(gradients, others, strict=True):
            total += other
    return sums, gradients
