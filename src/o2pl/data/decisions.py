"""Decisions and their ids.

An id is 16 hexadecimal digits, a number below 2^63. Every process, forks included, counts from its own random start:
ids of different processes collide with a probability of about (number of decisions)² / 2^63.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from o2pl._core import next_number, numbers_of_words, renew_numbers
from o2pl.data.contexts import ActionSets
from o2pl.errors import InvalidInput
from o2pl.protocols import Array, Ints

_DIGITS = 16
_PLAIN = frozenset((str, int, float, bool, type(None)))  # immutable types


class _Pair(NamedTuple):
    action: Any
    propensity: float


class Decision(_Pair):
    """An action and its propensity: the probability (density, for continuous actions) with which it was drawn.

    It unpacks to `(action, propensity)`. `id` is unique across processes. `context` is a copy of the context at
    decision time. `update(decision, reward)` needs nothing else.
    """

    # Number, context, and of one stored as bytes the dtype; of a sparse set the number of actions and the width.
    kept: tuple[int, Any, Any] | None = None
    place: int | None = None  # index of the item among the allowed ones, if the action is an item id

    @property
    def played(self) -> Any:
        """The action as stored in a log: for items, the index instead of the id."""
        return self.action if self.place is None else self.place

    @property
    def number(self) -> int:
        """The id as an integer. For a decision that you construct yourself, it is drawn at first access."""
        if self.kept is None:
            self.kept = next_number(), None, None
        return self.kept[0]

    @property
    def id(self) -> str:
        """The id of the decision: 16 hexadecimal digits."""
        return decision_id_of(self.number)

    @property
    def context(self) -> Any:
        """The context of the decision; None for a decision that you construct yourself."""
        if self.kept is None:
            return None
        _, context, kind = self.kept
        if type(kind) is tuple:
            return ActionSets.in_bytes(context, *kind)
        return context if kind is None else np.frombuffer(context, kind)

    def keep(self, context: object, number: int | None = None) -> Self:
        """Store a copy of the context. Returns self."""
        self.kept = next_number() if number is None else number, copied_for_decision(context), None
        return self


class ListDecision(Decision):
    """A list of distinct items in order, and the probability of the whole list. It unpacks to these two.

    Slots are filled in order; each draws from the policy among the remaining items. So the propensity is the product of
    the slots' `propensities`. `update(decision, rewards)` takes one reward per slot, or one for the whole list.
    """

    decisions: tuple[Decision, ...] = ()  # one per slot

    @classmethod
    def of(cls, decisions: Sequence[Decision]) -> Self:
        made = cls([one.action for one in decisions], math.prod(one.propensity for one in decisions))
        made.decisions = tuple(decisions)
        return made

    @property
    def actions(self) -> list[Any]:
        return [one.action for one in self.decisions]

    @property
    def propensities(self) -> list[float]:
        """The propensity of each slot's item among the remaining items."""
        return [one.propensity for one in self.decisions]

    @property
    def id(self) -> str:
        """The ids of the slots' decisions, joined."""
        return _JOINED.join(one.id for one in self.decisions)


_JOINED = "+"


def listed_decision_ids(given: object) -> list[str] | None:
    """Return the slots' ids if `given` is the id of a list, else None."""
    return given.split(_JOINED) if isinstance(given, str) and _JOINED in given else None


# -- ids


def _random_decision_number() -> int:
    """Return a random start below 2^63, with room for all later decisions."""
    return int.from_bytes(os.urandom(8), "big") >> 2


def _renew_decision_numbers() -> None:
    renew_numbers(_random_decision_number())


_renew_decision_numbers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_decision_numbers)


def decision_numbers_for(rows: int, seed: bytes | None = None) -> Ints:
    """Return numbers for rows without ids, [rows]. The same seed gives the same numbers."""
    start = (
        _random_decision_number()
        if seed is None
        else int.from_bytes(hashlib.blake2b(seed, digest_size=8).digest(), "big") >> 2
    )
    return np.arange(start, start + rows, dtype=np.int64)


def decision_id_of(number: int) -> str:
    return f"{number:0{_DIGITS}x}"


def decision_number_of(given: object) -> int:
    """Return the number of an o2pl id, or of any other string or integer used as an event id."""
    if isinstance(given, str):
        if len(given) == _DIGITS and given[0] in "01234567":
            try:
                return int(given, 16)
            except ValueError:
                pass
        return int(numbers_of_words(np.array([given]))[0])
    if isinstance(given, int | np.integer) and not isinstance(given, bool) and 0 <= given < 2**63:
        return int(given)
    raise InvalidInput(f"id: found {given!r}, expected a string, or an integer from 0 below 2^63")


def check_decision_ids(ids: object) -> Ints:
    """Convert ids (strings or integers) to integers, [n]."""
    given: Array = np.asarray(ids)
    if given.ndim != 1:
        raise InvalidInput(f"ids: found shape {given.shape}, expected one id per row")
    if given.dtype == np.int64 and (len(given) == 0 or given.min() >= 0):
        return given
    if given.dtype.kind == "U" and not (np.char.str_len(given) == _DIGITS).any():  # no o2pl ids
        return numbers_of_words(np.ascontiguousarray(given))
    numbers = np.empty(len(given), np.int64)
    for row, one in enumerate(given.tolist()):
        try:
            numbers[row] = decision_number_of(one)
        except InvalidInput as error:
            raise InvalidInput(f"{error}, in row {row}") from None
    return numbers


def copied_for_decision(context: Any) -> Any:
    """Copy the mutable parts of a context, so that later changes by the caller have no effect."""
    kind = type(context)
    if kind is np.ndarray:
        return context.copy()
    if kind is dict:
        return {key: value if type(value) in _PLAIN else copied_for_decision(value) for key, value in context.items()}
    if kind is list or kind is tuple:
        return kind([value if type(value) in _PLAIN else copied_for_decision(value) for value in context])
    copy = getattr(context, "copy", None)  # pandas Series or DataFrame
    return copy() if callable(copy) else context
