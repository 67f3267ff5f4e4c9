"""The pessimistic objective of all members of a finite class, updated as rows arrive: O(J) per row."""

from __future__ import annotations

import math

import numpy as np

from o2pl.compiled import compiled, compiled_in_order, compiled_within
from o2pl.kernels.registry import Problem
from o2pl.objectives.penalty import Phi, phi
from o2pl.objectives.terms import baseline_at, clip_at, penalty_at
from o2pl.objectives.weights import weight_of
from o2pl.policies.finite import FinitePolicies
from o2pl.policies.sampling import acting_row, draw_one
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

    def add(self, likelihoods: Floats, losses: Floats, propensities: Floats, numbers: Floats) -> None:
        """Add rows: π_j(a_s|x_s) of all members [n, J], losses and propensities [n]. numbers: `Pessimistic.numbers`."""
        self.reserve(likelihoods.size)
        self.total = add_rows(self.sums, self.heap, self.counts, likelihoods, losses, propensities, numbers, self.total)

    def reserve(self, pairs: int) -> None:
        """Reserve room in the heap for `pairs` more clipped pairs."""
        size = int(self.counts[1])
        if size + pairs > len(self.heap):
            grown = np.empty((2 * len(self.heap) + pairs, 3))
            grown[:size] = self.heap[:size]
            self.heap = grown

    def values(self, baseline: float, penalty: Phi) -> Floats:
        """V_j of every member, [J]."""
        return class_values(self.sums, float(self.counts[0]), baseline, Phi(*map(float, penalty)))


@compiled
def add_rows(
    sums: Floats, heap: Floats, counts: Ints, likelihoods: Floats, losses: Floats, propensities: Floats,
    numbers: Floats, total: float,
) -> float:  # fmt: skip
    """Add rows one by one with their clipping levels: independent of batching. Returns Σ losses."""
    for s in range(len(losses)):
        alpha = clip_at(numbers, float(counts[0] + 1))
        add_row(sums, heap, counts, likelihoods[s], losses[s], propensities[s], alpha)
        total += losses[s]
    return total


@compiled
def add_row(
    sums: Floats, heap: Floats, counts: Ints, likelihoods: Floats, loss: float, propensity: float, alpha: float
) -> None:
    counts[0] += 1
    while counts[1] > 0 and heap[0, 0] <= alpha:  # no longer clipped
        weight, member, y = heap[0, 0], int(heap[0, 1]), heap[0, 2]
        _pop(heap, counts)
        sums[3, member] -= 1
        sums[4, member] -= y
        _add_free(sums, member, weight, y)
    for j in range(len(likelihoods)):
        weight = weight_of(likelihoods[j], propensity)
        if weight <= alpha:
            _add_free(sums, j, weight, loss)
        else:
            sums[3, j] += 1
            sums[4, j] += loss
            _push(heap, counts, weight, j, loss)


@compiled
def _add_free(sums: Floats, member: int, weight: float, loss: float) -> None:
    sums[0, member] += (weight - 1) * loss
    sums[1, member] += weight - 1
    sums[2, member] += (weight - 1) ** 2


@compiled
def _copy(heap: Floats, source: int, target: int) -> None:
    for i in range(3):
        heap[target, i] = heap[source, i]


@compiled
def _push(heap: Floats, counts: Ints, weight: float, member: int, loss: float) -> None:
    at = counts[1]
    counts[1] += 1
    while at > 0 and heap[(at - 1) // 2, 0] > weight:
        _copy(heap, (at - 1) // 2, at)
        at = (at - 1) // 2
    heap[at, 0], heap[at, 1], heap[at, 2] = weight, member, loss


@compiled
def _pop(heap: Floats, counts: Ints) -> None:
    counts[1] -= 1
    size = counts[1]
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1, 0] < heap[child, 0]:
            child += 1
        if heap[size, 0] <= heap[child, 0]:
            break
        _copy(heap, child, at)
        at = child
    _copy(heap, size, at)


@compiled
def class_values(sums: Floats, n: float, baseline: float, penalty: Phi) -> Floats:
    """V_j of every member, [J]."""
    excess = penalty.alpha - 1 if penalty.alpha < math.inf else 0.0
    out = np.empty(sums.shape[1])
    for j in range(len(out)):
        clipped = sums[3, j]
        risk = sums[0, j] + excess * sums[4, j] - baseline * (sums[1, j] + excess * clipped)
        variance = (sums[2, j] + excess**2 * clipped) / n
        pessimism, _ = phi(max(variance, 0.0), penalty)
        out[j] = risk / n + pessimism
    return out


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

    def upto(self, problem: Problem) -> FiniteValue:
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


@compiled_in_order
def finite_rounds(
    L: Floats, losses: Floats, uniforms: Floats, params: Floats, acting: Floats, warm_start: int,
    sums: Floats, heap: Floats, counts: Ints, total: float, numbers: Floats, actions: Ints, propensities: Floats,
) -> float:  # fmt: skip
    """Simulate rounds: decide, add the row, take the best member. Returns Σ losses.

    L [m, K, J]: every action under every member; losses [m, K] of all actions; params [J] are overwritten: the log
    weights of the members, 0 and -∞.
    """
    m, K, J = L.shape
    scores, pi = np.empty((1, K)), np.empty(K)
    for r in range(m):
        acting_scores(L[r], params, scores[0])
        acting_row(scores, acting, pi)
        action = draw_one(pi, uniforms[r])
        actions[r], propensities[r] = action, pi[action]
        add_row(sums, heap, counts, L[r, action], losses[r, action], pi[action], clip_at(numbers, float(counts[0] + 1)))
        total += losses[r, action]
        n = float(counts[0])
        if n >= warm_start:
            best = np.argmin(class_values(sums, n, baseline_at(numbers, total, n), penalty_at(numbers, n)))
            for j in range(J):
                params[j] = 0.0 if j == best else -math.inf
    return total


@compiled_within
def acting_scores(L: Floats, params: Floats, out: Floats) -> None:
    """Compute log Σ_j ω_j L_j of all actions; for a single member, or for equal weights at the start. L [K, J]"""
    K, J = L.shape
    alone, likely = 0, 0
    for j in range(J):
        if params[j] > -math.inf:
            alone, likely = j, likely + 1
    for k in range(K):
        mixed = L[k, alone] if likely == 1 else 0.0
        if likely > 1:
            for j in range(J):
                mixed += (1.0 / J) * L[k, j]
        out[k] = math.log(mixed) if mixed > 0 else -math.inf
