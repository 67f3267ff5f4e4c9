"""Linear softmax on sparse rows: π(a|x) ∝ exp(w_a0 + Σ_j x_j w_aj), the sum over the features that the row has.

All weights of a feature lie side by side, W [slots, K]; slot 0 is the constant. A *slot* is a feature that has weights:
those of 2^bits that never occurred have none. To solve, rows are padded to whole groups of lanes: W [slots, L].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from o2pl.compiled import compiled, exp
from o2pl.lanes import LANES, add8, load8, store8
from o2pl.protocols import Floats, Ints

_NEVER = np.float32(-1e30)  # the logit of an action that is padding


@compiled
def acting_sparse(
    indices: Ints, values: Floats, first: int, last: int, slot_of: Ints, scale: Floats, clip: Any, W: Floats,
    sharpness: float, exploration: float, out: Floats,
) -> None:  # fmt: skip
    """out = π(·|x) of entries first to last, logits times `sharpness`, mixed with the uniform policy. out [K], double.

    slot_of [2^bits]: the slot of a feature, 0 where it has none. scale [slots, 2]: x becomes (x - shift) * scale.
    """
    K = len(out)
    for k in range(K):
        out[k] = W[0, k]
    for j in range(first, last):
        slot = slot_of[indices[j]]
        if slot:
            x = scaled(values[j], scale, slot, clip)
            for k in range(K):
                out[k] += x * W[slot, k]
    top = -math.inf
    for k in range(K):
        top = max(top, out[k])
    total = 0.0
    for k in range(K):
        out[k] = math.exp(sharpness * (out[k] - top))
        total += out[k]
    for k in range(K):
        out[k] = min((1 - exploration) * out[k] / total + exploration / K, 1.0)


@compiled
def scaled(value: Any, scale: Floats, slot: int, clip: Any) -> Any:
    return min(max((value - scale[slot, 0]) * scale[slot, 1], -clip), clip)


@compiled
def pad_weights(params: Floats, W: Floats) -> None:
    """W [slots, L] from params [slots, K]."""
    slots, K = params.shape
    for i in range(slots):
        for k in range(K):
            W[i, k] = params[i, k]
    W[0, K:] = _NEVER


@compiled
def sparse_softmax(W: Floats, K: int, L: int, slots: Ints, values: Floats, offsets: Ints, P: Floats) -> None:
    """P = softmax of every row's logits. W [slots · L] as `pad_weights` made it, P [n · L]; L a multiple of LANES."""
    for r in range(len(offsets) - 1):
        for b in range(0, L, LANES):
            z = load8(W, b)
            for j in range(offsets[r], offsets[r + 1]):
                z = add8(z, values[j], load8(W, slots[j] * L + b))
            store8(P, r * L + b, z)
        row = P[r * L : (r + 1) * L]
        top = row[0]
        for k in range(1, L):
            top = max(top, row[k])
        total = np.float32(0)
        for b in range(L // LANES):
            for k in range(LANES):  # a known number of turns: vectorised
                e = exp(row[LANES * b + k] - top)
                row[LANES * b + k] = e
                total += e
        share = np.float32(1) / total
        for k in range(K):
            row[k] *= share
        row[K:] = 0  # near 0 as they are, they would be denormal, and slow


@compiled
def pull_to_sparse(
    P: Floats, L: int, actions: Ints, cotangent: Floats, control: Floats, slots: Ints, values: Floats, offsets: Ints,
    G: Floats,
) -> float:  # fmt: skip
    """G [slots · L] = Σ_s c_s ∇ log π(a_s|x_s) + ∇ mean_s Σ_a π m, and that mean. control: m [n, K], or empty.

    P [n · L], which holds π, becomes c_s (1{a = a_s} - π) + π (m - Σ_a π m) / n: ∂/∂logits. Without control, rows whose
    cotangent is 0, as of all clipped ones, cost nothing.
    """
    G[:] = 0
    n, controlled = len(offsets) - 1, control.size > 0
    constant, modelled = np.zeros(L), 0.0  # every row adds to them: too many for single precision
    share = np.float32(1 / n)
    for r in range(n):
        c = cotangent[r]
        row = P[r * L : (r + 1) * L]
        if controlled:
            mean = np.float32(0)
            for k in range(control.shape[1]):
                mean += row[k] * control[r, k]
            modelled += float(mean)
            for k in range(control.shape[1]):
                row[k] *= (control[r, k] - mean) * share - c
        elif c == 0:
            continue
        else:
            for b in range(L // LANES):
                for k in range(LANES):
                    row[LANES * b + k] *= -c
        row[actions[r]] += c
        for k in range(L):
            constant[k] += row[k]
        for b in range(0, L, LANES):
            d = load8(P, r * L + b)
            for j in range(offsets[r], offsets[r + 1]):
                at = slots[j] * L + b
                store8(G, at, add8(load8(G, at), values[j], d))
    for k in range(L):
        G[k] = constant[k]
    return modelled / n
