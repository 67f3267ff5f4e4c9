"""The pessimistic objective of all members of a finite class, updated as rows arrive: O(J) per row."""

from __future__ import annotations

import numpy as np

from o2pl import _core
from o2pl.kernels.registry import MemberProblem
from o2pl.objectives.penalty import Phi
from o2pl.objectives.terms import baseline_at
from o2pl.policies.finite import FinitePolicies
from o2pl.protocols import Floats, Ints

_STRETCH = 2**12  # rows per block of likelihoods


class ClassSums:
    """Sums that give the exact objective of all J members after every row.

    Σ over rows of (min(w, α) - 1)(y - b) and of (min(w, α) - 1)² are kept for weights below α; a weight above it adds
    to a count and a sum of losses instead, and is kept in a heap. α may only increase: each weight leaves the heap at
    most once.
    """

    def __init__(self, size: int) -> None:
        # per member: Σ(w-1)y, Σ(w-1), Σ(w-1)² over free rows; number and Σy of the clipped ones
        self.sums = np.zeros((5, size))
        self.heap = np.empty((16, 3))  # (weight, member, loss) of clipped pairs, smallest weight on top
        self.counts = np.zeros(2, np.int64)  # rows, heap size
        self.total = 0.0  # Σ losses

    def add(
        self, likelihoods: Floats, losses: Floats, propensities: Floats, numbers: Floats, members: Ints | None = None
    ) -> None:
        """Add rows: π_j(a_s|x_s) of all members [n, J], losses and propensities [n]. numbers: `Pessimistic.numbers`.

        members [n]: gets the best member after each row.
        """
        self.reserve(likelihoods.size)
        rows = likelihoods, losses, propensities, numbers
        self.total = _core.add_rows(self.sums, self.heap, self.counts, *rows, self.total, members)

    def reserve(self, pairs: int) -> None:
        """Reserve room in the heap for `pairs` more clipped pairs."""
        size = int(self.counts[1])
        if size + pairs > len(self.heap):
            grown = np.empty((2 * len(self.heap) + pairs, 3))
            grown[:size] = self.heap[:size]
            self.heap = grown

    def values(self, baseline: float, penalty: Phi) -> Floats:
        """V_j of every member, [J]."""
        return _core.class_values(self.sums, float(self.counts[0]), baseline, *penalty)


class FiniteValue:
    """`PolicyValue.values` of a finite class, updated as rows arrive."""

    incremental = True

    def __init__(self) -> None:
        self._sums: ClassSums | None = None
        self._values: Floats = np.empty(0)

    def sums_of(self, size: int) -> ClassSums:
        """Return the sums so far, for a class of `size` members."""
        if self._sums is None:
            self._sums = ClassSums(size)
        return self._sums

    def upto(self, problem: MemberProblem) -> FiniteValue:
        """Return the value updated with the problem's new rows."""
        policy, log = problem.policy, problem.log
        assert isinstance(policy, FinitePolicies)
        sums = self.sums_of(policy.size)
        known = int(sums.counts[0])
        for first in range(known, len(log.actions), _STRETCH):
            rows = slice(first, min(first + _STRETCH, len(log.actions)))
            likelihoods = policy.likelihoods(problem.featurise(rows), log.actions[rows])
            new = log.losses[rows], log.propensities[rows]
            sums.add(np.ascontiguousarray(likelihoods), *new, problem.objective.numbers)
        baseline = baseline_at(problem.objective.numbers, sums.total, float(len(log.actions)))
        self._values = sums.values(baseline, problem.objective.phi(len(log.actions)))
        return self

    def values(self) -> Floats:
        return self._values

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        raise TypeError("a finite class has no gradient: use the oracle Exhaustive")
