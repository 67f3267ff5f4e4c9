"""Feature hashing: sparse rows of 2^bits features; only features that occurred have weights.

A feature that occurred has a *slot*, numbered in order of appearance after slot 0, the constant. Parameters belong to
slots, so a solve costs O(nonzeros) for any number of bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl import _core
from o2pl.data.contexts import SparseRows
from o2pl.errors import InvalidInput
from o2pl.features.standardise import Standardise
from o2pl.protocols import Array, Ints, State
from o2pl.storage import storable

CLIP = np.float32(Standardise().clip)  # limit of standardised numbers
MOST_BITS = 26
SLOT: dict[str, Array] = {  # initial state of slots
    "feature": np.zeros(1, np.int32),  # not used for the constant
    "count": np.zeros(1),
    "mean": np.zeros(1),
    "squares": np.zeros(1),
    "plain": np.ones(1, np.bool_),  # only 0, 1 and -1 so far: an indicator, not scaled
    "scale": np.array([[0, 1]], np.float32),  # x becomes (x - scale[0]) scale[1]
}


@storable
@dataclass(frozen=True)
class Hashed:
    """Features of dictionaries, hashed to 2^bits indices. `DictionaryReader` reads them.

    A string is a separate feature with value 1; `True` and `False` are treated as strings. A number is the value of the
    feature named by its key. A list contributes its strings and its numbers, the latter by position. A dictionary is
    nested; within a list it has the name of the list. None is dropped. Numbers are standardised over the rows that have
    them. A number that identifies a category should be a string.

    Parameters
    ----------
    bits
        At most 2^bits weights per action; only used ones take memory.
    signed
        Half of the features, by hash, have a negative sign, so that collisions cancel on average.
    interactions
        Pairs of top-level keys, such as `(("user", "hour"),)`: adds the products of all features of both.
    """

    bits: int = 18
    signed: bool = False
    interactions: tuple[tuple[str, str], ...] = ()

    @property
    def encoding(self) -> tuple[int, bool, tuple[tuple[str, str], ...]]:
        """The settings as an `Encoder` takes them."""
        return self.bits, self.signed, self.interactions

    def __post_init__(self) -> None:
        if isinstance(self.bits, bool) or not isinstance(self.bits, int) or not 1 <= self.bits <= MOST_BITS:
            raise InvalidInput(f"bits: found {self.bits!r}, expected an integer from 1 to {MOST_BITS}")
        fine = isinstance(self.interactions, tuple | list) and all(
            isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(key, str) for key in pair)
            for pair in self.interactions
        )
        if not fine:
            raise InvalidInput(
                f"interactions: found {self.interactions!r}, expected pairs of keys: (('user', 'hour'),)"
            )
        object.__setattr__(self, "interactions", tuple(tuple(pair) for pair in self.interactions))

    def width(self, n_inputs: int, state: State | None = None) -> int:
        return 1 if state is None else len(state["feature"])

    def init(self, n_inputs: int) -> State:
        return {**SLOT, "_slot_of": np.zeros(1 << self.bits, np.int32)}

    def observe(self, state: State, rows: SparseRows) -> State:
        """Assign slots to new features, and update the running scale of slots.

        `_slot_of` is shared with the old state: later slots are unknown there, which does no harm.
        """
        slot_of, known = self.slot_of(state), len(state["feature"])
        slots = _core.number_features(rows.indices, slot_of, known)
        new: dict[str, Array] = {"_slot_of": slot_of}
        for name, first in SLOT.items():
            new[name] = np.concatenate([state[name], np.repeat(first, slots - known, axis=0)])
        moments = (new[name] for name in ("feature", "count", "mean", "squares", "plain", "scale"))
        _core.scale_features(rows.indices, rows.values, slot_of, *moments)
        return new

    def transform(self, state: State, rows: SparseRows) -> SparseRows:
        """Return slots and scaled values; each row starts with the constant. Features without a slot are dropped."""
        columns = _core.to_slots(rows.indices, rows.values, rows.offsets, self.slot_of(state), state["scale"])
        return SparseRows(*columns, len(state["feature"]))

    def slot_of(self, state: State) -> Ints:
        """Return the slot of each index, 0 if it has none. [2^bits]"""
        if "_slot_of" in state:
            return state["_slot_of"]
        slot_of = np.zeros(1 << self.bits, np.int32)  # files omit it
        slot_of[state["feature"][1:]] = np.arange(1, len(state["feature"]))
        return slot_of
