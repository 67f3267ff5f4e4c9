"""Warning about item columns that are equal for all items of a round: they matter only in products."""

from __future__ import annotations

import warnings

import numpy as np

from o2pl.data.contexts import ActionSets
from o2pl.protocols import Array, Floats

_ENOUGH = 20  # rounds after which it is no coincidence
_NAMED = 6  # columns named in the warning


class SharedColumns:
    """Checks new action sets until every column has differed between two items of a round. Warns once."""

    def __init__(self) -> None:
        self.rounds = 0
        self._alike: Array | None = None  # columns that were equal for all items in every round
        self._first: Floats | None = None  # the first round's values
        self._varied: Array | None = None  # columns that differ between rounds

    @property
    def settled(self) -> bool:
        return self._alike is not None and not self._alike.any()

    def observe(self, sets: ActionSets) -> None:
        sizes = sets.sizes
        if self.settled or not (sizes > 1).any():
            return
        several = sets if (sizes > 1).all() else sets[np.flatnonzero(sizes > 1)]
        lowest = np.minimum.reduceat(several.values, several.offsets[:-1])
        alike = (lowest == np.maximum.reduceat(several.values, several.offsets[:-1])).all(axis=0)
        if self._alike is None or self._first is None:
            self._alike, self._first, self._varied = alike, lowest[0].copy(), np.zeros(len(alike), bool)
        self._alike = self._alike & alike
        self._varied = self._varied | (lowest != self._first).any(axis=0)
        before, self.rounds = self.rounds, self.rounds + len(several)
        columns = np.flatnonzero(self._alike & self._varied)
        if before < _ENOUGH <= self.rounds and len(columns):
            named = ", ".join(map(str, columns[:_NAMED])) + (", …" if len(columns) > _NAMED else "")
            warnings.warn(
                f"items, column {named}: found the same value for all items in each of {self.rounds} rounds, so it"
                " cannot"
                " distinguish items. If it describes the user, call act(user, items): the products of user and item"
                " features"
                " are then learned",
                UserWarning,
                stacklevel=2,
            )
