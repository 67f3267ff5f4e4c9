"""Exact minimisation over a finite class: by brute force, and by sums that are kept as rows arrive."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from o2pl.compiled import compiled
from o2pl.objectives.penalty import Phi, phi
from o2pl.objectives.pessimistic import Pessimistic
from o2pl.policies.finite import FinitePolicies
from o2pl.protocols import Array, Floats, Ints, Solution


def exhaustive(policies: FinitePolicies, features: Floats, objective: Pessimistic) -> Solution:
    """The member with the lowest objective, found by asking every one of them."""
    with np.errstate(divide="ignore"):  # log 0 = -∞: a weight of 0
        log_prob = np.log(policies.likelihoods(features, objective.actions))  # [n, J]
    values = [objective(log_prob[:, j])[0] for j in range(policies.size)]
    best = int(np.argmin(values))
    return Solution(policies.vertex(best), float(values[best]), True, policies.size)


class ClassSums:
    """The objective of all J members, exact after every row, at O(J) a row and not O(n J).

    Σ over rows of (min(w, α) - 1)(y - b) and of (min(w, α) - 1)² are kept for weights below α; a weight above it adds
    to a count and a sum of losses instead, and waits in a heap. α may only rise: each weight leaves the heap at most
    once.
    """

    def __init__(self, size: int) -> None:
        # per member: Σ(w-1)y, Σ(w-1), Σ(w-1)² over free rows; number and Σy of the clipped ones
        self.sums = np.zeros((5, size))
        self.heap = np.empty((16, 3))  # (weight, member, loss) of clipped pairs, the smallest weight on top
        self.counts = np.zeros(2, np.int64)  # rows, heap size
        self.alpha = 0.0

    def reserve(self, pairs: int) -> None:
        """Room in the heap for so many more clipped pairs."""
        size = self.counts[1]
        if size + pairs > len(self.heap):
            grown = np.empty((2 * len(self.heap) + pairs, 3))
            grown[:size] = self.heap[:size]
            self.heap = grown

    def add(self, likelihoods: Floats, loss: float, propensity: float, alpha: float) -> None:
        """One row: π_j(a|x) of every member [J], and the clipping level from now on."""
        if alpha < self.alpha:
            raise ValueError(f"clipping level: found {alpha} after {self.alpha}, expected it not to fall")
        self.alpha = alpha
        self.reserve(len(likelihoods))
        add_row(self.sums, self.heap, self.counts, likelihoods, loss, propensity, alpha)

    def values(self, baseline: float, penalty: Phi) -> Floats:
        """V_j of every member, [J]."""
        bounded = penalty.alpha if math.isfinite(penalty.alpha) else 0.0
        numbers = (bounded, float(penalty.t), penalty.log_inv_delta, float(penalty.p), float(penalty.scale))
        return class_values(self.sums, float(self.counts[0]), baseline, numbers)

    def state(self) -> dict[str, Array]:
        return {
            "sums": self.sums,
            "heap": self.heap[: self.counts[1]],
            "counts": self.counts,
            "alpha": np.array([self.alpha]),
        }

    @classmethod
    def restore(cls, state: dict[str, Any]) -> ClassSums:
        own = cls(state["sums"].shape[1])
        own.sums, own.heap, own.counts = state["sums"].copy(), state["heap"].copy(), state["counts"].copy()
        own.alpha = float(state["alpha"][0])
        return own


@compiled
def add_row(
    sums: Floats, heap: Floats, counts: Ints, likelihoods: Floats, loss: float, propensity: float, alpha: float
) -> None:
    counts[0] += 1
    while counts[1] > 0 and heap[0, 0] <= alpha:  # these are clipped no longer
        weight, member, y = heap[0, 0], int(heap[0, 1]), heap[0, 2]
        _pop(heap, counts)
        sums[3, member] -= 1
        sums[4, member] -= y
        _add_free(sums, member, weight, y)
    for j in range(len(likelihoods)):
        weight = likelihoods[j] / propensity
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
def _push(heap: Floats, counts: Ints, weight: float, member: int, loss: float) -> None:
    at = counts[1]
    counts[1] += 1
    while at > 0 and heap[(at - 1) // 2, 0] > weight:
        heap[at] = heap[(at - 1) // 2]
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
        heap[at] = heap[child]
        at = child
    heap[at] = heap[size]


@compiled
def class_values(sums: Floats, n: float, baseline: float, penalty: tuple[float, float, float, float, float]) -> Floats:
    """V_j of every member; penalty: α (0 without clipping), t, log 1/δ, p, λ. [J]"""
    excess = penalty[0] - 1
    out = np.empty(sums.shape[1])
    for j in range(len(out)):
        clipped = sums[3, j]
        risk = sums[0, j] + excess * sums[4, j] - baseline * (sums[1, j] + excess * clipped)
        variance = (sums[2, j] + excess**2 * clipped) / n
        pessimism, _ = phi(max(variance, 0.0), penalty[0], penalty[1], penalty[2], penalty[3], penalty[4])
        out[j] = risk / n + pessimism
    return out
