"""Composition, the constant feature, and linear maps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from o2pl.protocols import Array, FeatureMap, Floats, State
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class Chain:
    """Applies feature maps in sequence; `Chain(())` returns contexts unchanged."""

    maps: tuple[FeatureMap, ...] = ()

    def width(self, n_inputs: int, state: State | None = None) -> int:
        for each in self.maps:
            n_inputs = each.width(n_inputs)
        return n_inputs

    def init(self, n_inputs: int) -> State:
        state: dict[str, Array] = {}
        for k, each in enumerate(self.maps):
            state |= {f"{k}.{name}": array for name, array in each.init(n_inputs).items()}
            n_inputs = each.width(n_inputs)
        return state

    def observe(self, state: State, rows: Floats) -> State:
        """Update each map with the rows as transformed by the updated maps before it."""
        seen: dict[str, Array] = {}
        parts = self.parts(state)
        for k, (each, before) in enumerate(zip(self.maps, parts, strict=True)):
            own = each.observe(before, rows)
            seen |= {f"{k}.{name}": array for name, array in own.items()}
            if any(parts[k + 1 :]):  # a later map has a state
                rows = each.transform(own, rows)
        return seen

    def transform(self, state: State, rows: Floats) -> Floats:
        for each, own in zip(self.maps, self.parts(state), strict=True):
            rows = each.transform(own, rows)
        return rows

    def parts(self, state: State) -> list[dict[str, Array]]:
        """Return the state of each map."""
        parts: list[dict[str, Array]] = [{} for _ in self.maps]
        for (place, own), array in zip(_places_in_basic_chain(tuple(state)), state.values(), strict=True):
            parts[place][own] = array
        return parts


@lru_cache
def _places_in_basic_chain(names: tuple[str, ...]) -> list[tuple[int, str]]:
    """Split names at the first dot: the index of the map, and the name within the map."""
    split = (name.partition(".") for name in names)
    return [(int(place), own) for place, _, own in split]


@storable
@dataclass(frozen=True)
class Intercept:
    """Adds a constant 1 before the other features."""

    def width(self, n_inputs: int, state: State | None = None) -> int:
        return n_inputs + 1

    def init(self, n_inputs: int) -> State:
        return {}

    def observe(self, state: State, rows: Floats) -> State:
        return state

    def transform(self, state: State, rows: Floats) -> Floats:
        out = np.empty((rows.shape[0], rows.shape[1] + 1), rows.dtype)
        out[:, 0] = 1
        out[:, 1:] = rows
        return out
