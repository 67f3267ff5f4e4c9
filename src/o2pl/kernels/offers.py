"""Scores of items for a user in one compiled call: first the user's weights, then a product with each item.

A member is one row of numbers: clip, shift and scale of the inputs, then `UserItems.weights`. Sums keep their order, in
double precision: a decision is bitwise the same alone and in a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from o2pl.compiled import compiled_in_order, compiled_within
from o2pl.features.standardise import Standardise
from o2pl.features.user_items import HEAD, LAST, UserItems
from o2pl.policies.sampling import acting_row, draw_one
from o2pl.protocols import Floats, Ints, State


class PackedOffers:
    """Members whose scores are linear in `UserItems`."""

    def __init__(self, members: Sequence[tuple[UserItems, State, Floats]]) -> None:
        rows = []
        for features, state, params in members:
            own, cross = features.weights(state, params)
            rows.append(np.concatenate([[Standardise().clip], state["shift"], state["scale"], own, cross.reshape(-1)]))
        self.numbers: Floats = np.array(rows, np.float64)  # [M, ·]

    def scores(self, sets: Any) -> Floats:
        """Return the scores of `ActionSets` with shared features, [M, total]."""
        out = np.empty((len(self.numbers), len(sets.values)))
        slots = np.zeros(len(sets), np.int64) if sets.slots is None else sets.slots
        scores_of_offers(slots, sets.shared, sets.values, sets.offsets, self.numbers, out)
        return out


@compiled_within
def _scores_of_offer(slot: int, user: Floats, items: Floats, numbers: Floats, weights: Floats, out: Floats) -> None:
    """Compute out [M, K]. user [d_user], items [K, d_item]; weights [d_item] is a work array."""
    a, b = len(user), items.shape[1]
    d = a + b
    for m in range(len(numbers)):
        row = numbers[m]
        clip, shift, scale = row[0], row[1 : 1 + d], row[1 + d : 1 + 2 * d]
        own = row[1 + 2 * d : 1 + 3 * d + HEAD]
        cross = row[1 + 3 * d + HEAD : 1 + 3 * d + HEAD + a * b]
        level = own[0]
        if slot > 0:
            level += own[min(slot, LAST)]
        for j in range(b):
            weights[j] = own[HEAD + a + j]
        for i in range(a):
            u = min(max((np.float64(user[i]) - shift[i]) * scale[i], -clip), clip)
            level += own[HEAD + i] * u
            for j in range(b):
                weights[j] += u * cross[i * b + j]
        for k in range(len(items)):
            total = level
            for j in range(b):
                x = (np.float64(items[k, j]) - shift[a + j]) * scale[a + j]
                total += weights[j] * min(max(x, -clip), clip)
            out[m, k] = total


@compiled_in_order
def scores_of_offers(
    slots: Ints, users: Floats, items: Floats, offsets: Ints, numbers: Floats, out: Floats
) -> None:  # fmt: skip
    """Compute the scores of offers. users [n, d_user], items [total, d_item], out [M, total]"""
    weights = np.empty(items.shape[1])
    for s in range(len(slots)):
        own = slice(offsets[s], offsets[s + 1])
        _scores_of_offer(slots[s], users[s], items[own], numbers, weights, out[:, own])


@compiled_in_order
def decide_item(
    slot: int, user: Floats, items: Floats, numbers: Floats, acting: Floats, uniform: float
) -> tuple[int, float]:
    """Return an item for this user and list slot, and its probability. user [1, d_user], items [K, d_item]"""
    scores, pi = np.empty((len(numbers), len(items))), np.empty(len(items))
    _scores_of_offer(slot, user[0], items, numbers, np.empty(items.shape[1]), scores)
    acting_row(scores, acting, pi)
    action = draw_one(pi, uniform)
    return action, pi[action]
