"""Scores of items for a user in one compiled call: first the user's weights, then a product with each item.

A member is one row of numbers: clip, shift and scale of the inputs, then `UserItems.weights`. Sums keep their order, in
double precision: a decision is bitwise the same alone and in a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from o2pl import _core
from o2pl.features.standardise import Standardise
from o2pl.features.user_items import UserItems
from o2pl.protocols import Floats, State


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
        slots = np.zeros(len(sets), np.int64) if sets.slots is None else sets.slots
        return _core.scores_of_offers(slots, sets.shared, sets.values, sets.offsets, self.numbers)
