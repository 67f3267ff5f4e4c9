"""Acting policy on action sets in JSON: the text is scanned, hashed and scored in one compiled call.

Unlike `json_sets`, it adds up scores without storing rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.compiled import compiled_in_order, compiled_within
from o2pl.contexts.expanding import crossed_hash, crossed_value
from o2pl.contexts.json_sets import scan_sets
from o2pl.features.hashing import scaled
from o2pl.policies.sampling import acting_row
from o2pl.protocols import Array, Floats, Ints

SLOW, WEIGHED, LARGE = 0, 1, 2


@compiled_within
def _add(
    h: Any, value: Any, mask: Any, signed: bool, slot_of: Ints, scale: Floats, W: Floats, scores: Floats, k: int
) -> None:
    """Add one feature of action k to the scores of all members."""
    slot = slot_of[h & mask]
    if 0 < slot < len(W):
        own = -value if signed and h >> np.uint32(31) else value
        x = np.float64(scaled(own, scale, slot))
        for m in range(W.shape[1]):
            scores[m, k] += x * W[slot, m]


@compiled_in_order
def weigh_set(
    text: Array, mask: Any, signed: bool, slot_of: Ints, scale: Floats, W: Floats, acting: Floats, most: int,
    out: Floats,
) -> int:  # fmt: skip
    """Write the acting policy of an action set to `out` [K]. Returns `WEIGHED`. W [slots, M]; acting: `acting_numbers`.

    Returns `SLOW`, and writes nothing, if the text needs the slow path or does not have K actions; `LARGE` if it has
    more than `most` features, products included.
    """
    K, M, room = len(out), W.shape[1], len(text) + 2
    hashes, values = np.empty(room, np.uint32), np.empty(room, np.float32)
    shared, rows, sizes = np.zeros((1, 2), np.int64), np.zeros(room, np.int64), np.zeros(2, np.int64)
    ends = np.array([0, len(text)])
    if not scan_sets(text, ends, hashes, values, shared, rows, sizes) or sizes[1] != K:
        return SLOW
    entries, common = 0, shared[0, 1] - shared[0, 0]
    for k in range(K):
        own = rows[2 * k + 1] - rows[2 * k]
        entries += own + common + own * common
    if entries > most:
        return LARGE
    scores = np.empty((M, K))
    for k in range(K):
        for m in range(M):
            scores[m, k] = W[0, m]  # the constant
        for i in range(rows[2 * k], rows[2 * k + 1]):
            _add(hashes[i], values[i], mask, signed, slot_of, scale, W, scores, k)
        for i in range(shared[0, 0], shared[0, 1]):
            _add(hashes[i], values[i], mask, signed, slot_of, scale, W, scores, k)
        for i in range(shared[0, 0], shared[0, 1]):
            for j in range(rows[2 * k], rows[2 * k + 1]):
                h, product = crossed_hash(hashes[i], hashes[j]), crossed_value(values[i], values[j])
                _add(h, product, mask, signed, slot_of, scale, W, scores, k)
    acting_row(scores, acting, out)
    return WEIGHED
