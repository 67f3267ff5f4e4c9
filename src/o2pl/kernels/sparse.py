"""The softmax on sparse rows: its objective and gradient, and single decisions."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.compiled import compiled, compiled_for_threads, compiled_in_order, compiled_within
from o2pl.compiled.threads import side_by_side
from o2pl.contexts.expanding import expand, expanded_size
from o2pl.features.hashing import scaled
from o2pl.kernels.outcome import competing_partial
from o2pl.kernels.softmax import softmax_rows
from o2pl.objectives.outcome import OutcomeLog
from o2pl.objectives.pessimistic import VARIANCE, PessimisticLog
from o2pl.policies.sampling import acting_row, draw_one
from o2pl.protocols import Array, Floats, Ints
from o2pl.rows import SparseRows

PANEL = 2**14  # rows of a panel, at least
PANELS = 4  # at most: each has a gradient of its own


class SparseValue:
    """`PolicyValue` of `SparseSoftmax` and the pessimistic objective. Parameters [d, K], flattened."""

    incremental = False

    def __init__(self, log: PessimisticLog, rows: SparseRows, n_actions: int) -> None:
        self._log, self._columns, self._partial = log, (rows.indices, rows.values, rows.offsets), softmax_rows(log)
        self._scores: Floats = np.empty((n_actions, len(rows)), np.float32)
        self._cotangents: Floats = np.empty((2, n_actions, len(rows)), np.float32)

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        (K, n), log, sums, gradient = self._scores.shape, self._log, np.zeros(3), np.zeros(len(params))
        sparse_scores(*self._columns, params.reshape(-1, K), self._scores)
        of_risk, of_variance = self._cotangents
        self._partial(self._scores, slice(0, n), params, self._cotangents.reshape(2 * K, n), sums)
        of_risk += np.float32(log.penalty(float(sums[VARIANCE]) / log.size)[1]) * of_variance
        sparse_pull(*self._columns, of_risk, gradient.reshape(-1, K))
        shrink = log.l2 / log.size
        return log.value(sums) + 0.5 * shrink * shrunk(params, log.size, shrink, gradient), gradient


class SparseOutcome:
    """`PolicyValue` of `SparseSoftmax` and the outcome objective. Parameters [d, K], flattened, then τ.

    For independent actions, only the played one enters the likelihood. Long logs are split into panels, each with sums
    and a gradient of its own, so the result does not depend on the number of threads.
    """

    incremental = False

    def __init__(self, log: OutcomeLog, rows: SparseRows, n_actions: int) -> None:
        self._log, self._K = log, n_actions
        actions = log.actions if log.competing else np.zeros_like(log.actions)  # index among the computed scores
        weights = np.empty(0, np.float32) if log.weights is None else log.weights.astype(np.float32)
        places, rewards = actions.astype(np.int32), log.rewards.astype(np.float32)
        computed = n_actions if log.competing else 1
        self._panels = [
            (
                (rows.indices, rows.values, rows.offsets[own.start : own.stop + 1]),
                log.actions[own],
                (places[own], rewards[own], weights[own]),
                np.empty((2, computed, own.stop - own.start), np.float32),
            )
            for own in panels(len(rows))
        ]

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        log, tau, count = self._log, float(params[-1]), len(self._panels)
        sums, gradient, shrink = np.zeros((count, 2)), np.zeros(len(params)), log.l2 / log.size
        if count == 1:
            self._panel(0, params, sums, gradient[None, :-1])
        else:
            gradients = np.zeros((count, len(params) - 1))
            side_by_side(lambda panel: self._panel(panel, params, sums, gradients), count)
            gradients.sum(axis=0, out=gradient[:-1])
        (loss, pulled), squares = sums.sum(axis=0), shrunk(params[:-1], log.size, shrink, gradient)
        of_level, gradient[-1] = log.of_level(tau, float(pulled))
        return float(loss) / log.size + 0.5 * shrink * squares + of_level, gradient

    def _panel(self, panel: int, params: Floats, sums: Floats, gradients: Floats) -> None:
        """Add up the rows of a panel."""
        columns, actions, came, (scores, cotangents) = self._panels[panel]
        W, G, tau = params[:-1].reshape(-1, self._K), gradients[panel].reshape(-1, self._K), float(params[-1])
        if self._log.competing:
            sparse_scores(*columns, W, scores)
            competing_partial(scores, *came, tau, cotangents, sums[panel])
            sparse_pull(*columns, cotangents, G)
        else:
            played_scores(*columns, actions, W, scores[0])
            competing_partial(scores, *came, -tau, cotangents, sums[panel])
            played_pull(*columns, actions, cotangents[0], G)


def panels(n: int) -> list[slice]:
    """Return at most `PANELS` panels of n rows."""
    size = max(PANEL, -(-n // PANELS))
    return [slice(first, min(first + size, n)) for first in range(0, max(n, 1), size)]


@compiled
def shrunk(params: Floats, size: float, shrink: float, gradient: Floats) -> float:
    """Turn sums of gradients into means, and add shrink · params. Returns |params|²."""
    squares = 0.0
    for i in range(len(params)):
        gradient[i] = gradient[i] / size + shrink * params[i]
        squares += params[i] * params[i]
    return squares


@compiled_within
def row_scores(indices: Ints, values: Floats, first: int, last: int, W: Floats, out: Floats) -> None:
    """Compute out [K] = Σ_j values_j W[indices_j] over the entries from first to last.

    Four actions at a time are kept in registers: a loop over K, unknown at compile time, takes twice as long.
    """
    K, k = W.shape[1], 0
    while k + 4 <= K:
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for j in range(first, last):
            x, i = np.float64(values[j]), np.uint32(indices[j])
            a += x * W[i, k]
            b += x * W[i, k + 1]
            c += x * W[i, k + 2]
            d += x * W[i, k + 3]
        out[k], out[k + 1], out[k + 2], out[k + 3] = a, b, c, d
        k += 4
    while k < K:
        a = 0.0
        for j in range(first, last):
            a += np.float64(values[j]) * W[np.uint32(indices[j]), k]
        out[k] = a
        k += 1


@compiled_within
def pull_row(indices: Ints, values: Floats, first: int, last: int, cotangent: Floats, G: Floats) -> None:
    """Compute G[indices_j] += values_j cotangent, the pullback of `row_scores`. cotangent [K]"""
    K, k = G.shape[1], 0
    while k + 4 <= K:
        a, b, c, d = cotangent[k], cotangent[k + 1], cotangent[k + 2], cotangent[k + 3]
        for j in range(first, last):
            x, i = np.float64(values[j]), np.uint32(indices[j])
            G[i, k] += x * a
            G[i, k + 1] += x * b
            G[i, k + 2] += x * c
            G[i, k + 3] += x * d
        k += 4
    while k < K:
        a = cotangent[k]
        for j in range(first, last):
            G[np.uint32(indices[j]), k] += np.float64(values[j]) * a
        k += 1


@compiled_for_threads
def sparse_scores(indices: Ints, values: Floats, offsets: Ints, W: Floats, out: Floats) -> None:
    """Compute out [K, n] = (rows · W)ᵀ. W [d, K]"""
    K = W.shape[1]
    row = np.empty(K)
    for r in range(len(offsets) - 1):
        row_scores(indices, values, offsets[r], offsets[r + 1], W, row)
        for k in range(K):
            out[k, r] = row[k]


@compiled_for_threads
def sparse_pull(indices: Ints, values: Floats, offsets: Ints, cotangents: Floats, G: Floats) -> None:
    """Add rowsᵀ · cotangents to G [d, K]. cotangents [K, n]

    Rows with zero cotangents, such as clipped ones, are skipped.
    """
    K = G.shape[1]
    own = np.empty(K)
    for r in range(len(offsets) - 1):
        any_part = False
        for k in range(K):
            own[k] = cotangents[k, r]
            any_part = any_part or own[k] != 0
        if any_part:
            pull_row(indices, values, offsets[r], offsets[r + 1], own, G)


@compiled_for_threads
def played_scores(indices: Ints, values: Floats, offsets: Ints, actions: Ints, W: Floats, out: Floats) -> None:
    """Compute `sparse_scores` of the played actions only. out [n]"""
    for r in range(len(offsets) - 1):
        k, total = np.uint32(actions[r]), 0.0
        for j in range(offsets[r], offsets[r + 1]):
            total += np.float64(values[j]) * W[np.uint32(indices[j]), k]
        out[r] = total


@compiled_for_threads
def played_pull(indices: Ints, values: Floats, offsets: Ints, actions: Ints, cotangents: Floats, G: Floats) -> None:
    """Apply the pullback of `played_scores`. A separate loop: in one loop, loads would wait for stores."""
    for r in range(len(offsets) - 1):
        k, c = np.uint32(actions[r]), np.float64(cotangents[r])
        for j in range(offsets[r], offsets[r + 1]):
            G[np.uint32(indices[j]), k] += np.float64(values[j]) * c


@compiled_in_order
def decide_dictionary(
    hashes: Array, values: Floats, n: int, segments: Ints, pairs: Ints, mask: Any, signed: bool,
    slot_of: Ints, scale: Floats, W: Floats, members: int, acting: Floats, uniform: float,
) -> tuple[int, float]:  # fmt: skip
    """Return an action for a context from `DictionaryReader.entry`, and its probability. W [slots, members · K]"""
    size, (slots, columns) = expanded_size(n, segments, pairs), W.shape
    indices, numbers = np.empty(size, np.int32), np.empty(size, np.float32)
    expand(hashes, values, n, segments, pairs, mask, signed, 0, indices, numbers)
    scores, pi = np.empty(columns), np.empty(columns // members)
    for k in range(columns):
        scores[k] = W[0, k]
    for j in range(size):
        slot = slot_of[indices[j]]
        if 0 < slot < slots:
            x = np.float64(scaled(numbers[j], scale, slot))
            for k in range(columns):
                scores[k] += x * W[slot, k]
    acting_row(scores.reshape(members, -1), acting, pi)
    action = draw_one(pi, uniform)
    return action, pi[action]
