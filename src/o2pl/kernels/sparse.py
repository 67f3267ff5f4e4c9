"""The softmax on sparse rows: its objective and gradient, and single decisions."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.compiled import compiled, compiled_in_order
from o2pl.contexts.dictionaries import expand, expanded_size
from o2pl.features.hashing import scaled
from o2pl.kernels.linear import combine
from o2pl.kernels.softmax import softmax_rows
from o2pl.objectives.penalty import Phi
from o2pl.objectives.pessimistic import PessimisticLog
from o2pl.policies.sampling import acting_row, draw_one
from o2pl.protocols import Array, Floats, Ints
from o2pl.rows import SparseRows


class SparseValue:
    """`PolicyValue` of `SparseSoftmax`. Parameters [d, K], flattened."""

    incremental = False

    def __init__(self, log: PessimisticLog, rows: SparseRows, n_actions: int) -> None:
        self._log, self._rows, self._K, self._partial = log, rows, n_actions, softmax_rows(log)
        self._penalty = Phi(*map(float, log.penalty))  # type: ignore[call-overload]  # a Phi in every fused objective

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        rows, K = self._rows, self._K
        W = params.reshape(-1, K).astype(np.float32)
        scores, cotangents = np.empty((K, len(rows)), np.float32), np.empty((2 * K, len(rows)), np.float32)
        sparse_scores(rows.indices, rows.values, rows.offsets, W, scores)
        sums = np.zeros((1, 3))
        self._partial(scores, slice(0, len(rows)), params, cotangents, sums[0])
        parts = np.zeros((2, len(W), K))
        sparse_pull(rows.indices, rows.values, rows.offsets, cotangents, parts)
        gradient = np.empty(len(params))
        log = self._log
        value = combine(params, sums, parts.reshape(1, -1), len(params), log.size, self._penalty, log.l2, gradient)
        return value, gradient


@compiled
def sparse_scores(indices: Ints, values: Floats, offsets: Ints, W: Floats, out: Floats) -> None:
    """out [K, n] = (rows · W)ᵀ. W [d, K]"""
    K = W.shape[1]
    row = np.empty(K, np.float32)
    for r in range(len(offsets) - 1):
        for k in range(K):
            row[k] = 0
        for j in range(offsets[r], offsets[r + 1]):
            x, weights = values[j], W[indices[j]]
            for k in range(K):
                row[k] += x * weights[k]
        for k in range(K):
            out[k, r] = row[k]


@compiled
def sparse_pull(indices: Ints, values: Floats, offsets: Ints, cotangents: Floats, out: Floats) -> None:
    """Both parts of the gradient, out [2, d, K]; a row whose cotangents are 0, as of clipped ones, costs nothing."""
    K = out.shape[2]
    risk, variance = np.empty(K), np.empty(K)
    for r in range(len(offsets) - 1):
        any_part = False
        for k in range(K):
            risk[k], variance[k] = cotangents[k, r], cotangents[K + k, r]
            any_part = any_part or risk[k] != 0 or variance[k] != 0
        if not any_part:
            continue
        for j in range(offsets[r], offsets[r + 1]):
            x, of_risk, of_variance = values[j], out[0, indices[j]], out[1, indices[j]]
            for k in range(K):
                of_risk[k] += x * risk[k]
                of_variance[k] += x * variance[k]


@compiled_in_order
def decide_dictionary(
    hashes: Array, values: Floats, n: int, segments: Ints, pairs: Ints, mask: Any, signed: bool,
    slot_of: Ints, scale: Floats, W: Floats, acting: Floats, uniform: float,
) -> tuple[int, float]:  # fmt: skip
    """An action for a context as `DictionaryReader.read` left it, and its probability. W [slots, K]"""
    size, (slots, K) = expanded_size(n, segments, pairs), W.shape
    indices, numbers = np.empty(size, np.int32), np.empty(size, np.float32)
    expand(hashes, values, n, segments, pairs, mask, signed, 0, indices, numbers)
    scores, pi = np.empty((1, K)), np.empty(K)
    for k in range(K):
        scores[0, k] = W[0, k]
    for j in range(size):
        slot = slot_of[indices[j]]
        if 0 < slot < slots:
            x = np.float64(scaled(numbers[j], scale, slot))
            for k in range(K):
                scores[0, k] += x * W[slot, k]
    acting_row(scores, acting, pi)
    action = draw_one(pi, uniform)
    return action, pi[action]
