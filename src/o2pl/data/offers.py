"""`Offer`: the user and the items of one round, and which items are excluded.

An item may have an id. Decisions then return the id, and what was learned about an item is kept independently of its
position among the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from o2pl.data.decisions import decision_number_of
from o2pl.data.frames import as_frame, as_mapping, is_frame
from o2pl.errors import InvalidInput, nearest
from o2pl.protocols import Array, Ints

NO_ID = -1
_LARGEST = 2**63
_MOST = 2**18  # largest number of cached codes
_CODES: dict[Any, int] = {}


class Offer:
    """The user and the items of one round, as a context. Accepted wherever a pair (user, items) is.

    Parameters
    ----------
    user
        Features shared by all items: a numeric row, a dictionary, or a row of a data frame; None: none.
    items
        One numeric row per item (a matrix or a data frame), or a list of dictionaries.
    ids
        Ids of the items, strings or integers; or the name of the field that contains them. Actions are then these ids
        instead of indices.
    exclude
        Items that must not be chosen: ids (unknown ids are ignored) or indices.
    slot
        The list slot of the decision, from 0.
    """

    __slots__ = ("ids", "items", "kept", "slot", "user")

    def __init__(self, user: Any, items: Any, *, ids: Any = None, exclude: Any = None, slot: int | None = None) -> None:
        self.user, self.slot = user, slot
        if is_frame(items):
            items = as_frame(items)
        try:
            n = len(items)
        except TypeError:
            n = 0
        if n == 0 or isinstance(items, str | bytes | Mapping):
            raise InvalidInput(
                f"items: found {_said_of_offer(items)}, expected a matrix with one row per item, or a list of"
                " dictionaries"
            )
        self.items, self.ids = _offered_without_ids(items, n, ids)
        self.kept: Ints | None = None if exclude is None else self._kept(n, exclude)

    def _kept(self, n: int, exclude: object) -> Ints | None:
        if self.ids is None:
            kept = allowed_in_offer(n, exclude, "indices of items")
        else:
            names = set(_excluded_from_offer(exclude))
            kept = np.flatnonzero([one not in names for one in self.ids])
            _check_left_in_offer(len(kept), n)
        return kept if len(kept) < n else None

    def __len__(self) -> int:
        """Return the number of allowed items."""
        return len(self.items) if self.kept is None else len(self.kept)

    @property
    def actions(self) -> list[Any]:
        """The allowed items, by id, or by index if they have no ids."""
        places = range(len(self.items)) if self.kept is None else self.kept.tolist()
        return list(places) if self.ids is None else [self.ids[place] for place in places]

    def action(self, place: int) -> int:
        """Return the id (or the index among all items) of the item at an index among the allowed ones."""
        at = place if self.kept is None else int(self.kept[place])
        return at if self.ids is None else self.ids[at]

    def place(self, action: object) -> Any:
        """Return the index of an item among the allowed ones."""
        if self.ids is None and self.kept is None:
            return action  # checked later, with all other actions
        try:
            return self.actions.index(action)
        except ValueError:
            what = "a place" if self.ids is None else "an id"
            some = ", ".join(repr(one) for one in self.actions[:5]) + (", …" if len(self) > 5 else "")
            raise InvalidInput(f"action: found {action!r}, expected {what} of an allowed item: {some}") from None

    def without(self, actions: Sequence[object], slot: int | None) -> Offer:
        """Return the offer for the next list slot, without the items already taken."""
        made = Offer.__new__(Offer)
        made.user, made.items, made.ids, made.slot = self.user, self.items, self.ids, slot
        places = np.arange(len(self.items)) if self.kept is None else self.kept
        made.kept = np.delete(places, [self.place(action) for action in actions]) if len(actions) else self.kept
        return made

    @property
    def codes(self) -> Ints | None:
        """The codes of the ids of the allowed items."""
        if self.ids is None:
            return None
        codes = offer_codes_of(self.ids)
        return codes if self.kept is None else codes[self.kept]

    @property
    def dictionaries(self) -> bool:
        """Whether items are dictionaries, for hashed features."""
        if isinstance(self.items, np.ndarray) or is_frame(self.items):
            return False
        return as_mapping(self.items[0]) is not None

    def copy(self) -> Offer:
        """Return a copy that later changes by the caller do not affect."""
        made = self.without((), self.slot)
        made.user, made.items = deepcopy(self.user), deepcopy(self.items)
        return made

    def __repr__(self) -> str:
        return f"Offer({_said_of_offer(self.user)}, {len(self.items)} items, {len(self)} allowed)"


def allowed_in_offer(n: int, exclude: object, what: str = "actions", names: Sequence[str] = ()) -> Ints:
    """Return the indices, of n, that are not excluded. names: action names, to exclude by name."""
    allowed = np.ones(n, bool)
    for given in _excluded_from_offer(exclude):
        place = given
        if names and isinstance(given, str):
            if given not in names:
                raise InvalidInput(f"exclude: found {given!r}, {nearest(given, names)}")
            place = names.index(given)
        if not isinstance(place, int | np.integer) or isinstance(place, bool) or not 0 <= place < n:
            raise InvalidInput(f"exclude: found {place!r}, expected {what}, integers from 0 to {n - 1}")
        allowed[place] = False
    _check_left_in_offer(int(allowed.sum()), n)
    return np.flatnonzero(allowed)


def _excluded_from_offer(exclude: Any) -> list[Any]:
    return [exclude] if isinstance(exclude, str | int | np.integer) else list(exclude)


def _check_left_in_offer(left: int, n: int) -> None:
    if not left:
        raise InvalidInput(f"exclude: found all {n}, expected at least one allowed")


def _offered_without_ids(items: Any, n: int, ids: Any) -> tuple[Any, list[Any] | None]:
    """Return the items, and their ids: given, or taken from the named field of data frames and dictionaries."""
    if ids is None:
        return items, None
    if isinstance(ids, str):
        if is_frame(items) and ids in items.columns:
            columns = {name: column for name, column in items.columns.items() if name != ids}
            found = items[ids].tolist()
            items, ids = type(items)(columns, n), [int(one) if isinstance(one, float) else one for one in found]
        else:
            mappings = [as_mapping(item) for item in items] if not isinstance(items, np.ndarray) else [None]
            if any(one is None or ids not in one for one in mappings):
                raise InvalidInput(f"ids: found {ids!r}, expected a field that all items have, or one id per item")
            ids = [one[ids] for one in mappings if one is not None]
    names = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    if len(names) != n:
        raise InvalidInput(f"ids: found {len(names)}, expected one per item ({n})")
    for name in names:
        if not isinstance(name, str | int | np.integer) or isinstance(name, bool):
            raise InvalidInput(f"ids: found {name!r} of type {type(name).__name__}, expected strings or integers")
    if len(set(names)) < n:
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(f"ids: found {twice!r} twice, expected unique ids within a round")
    return items, names


def offer_codes_of(ids: Sequence[object]) -> Ints:
    """Return ids as integers ≥ 0, the same in every process. [K]"""
    try:
        return np.array([_CODES[one] for one in ids], np.int64)
    except KeyError:
        if len(_CODES) > _MOST:
            _CODES.clear()
        for one in ids:
            _CODES[one] = _offer_code(one)
        return np.array([_CODES[one] for one in ids], np.int64)


def _offer_code(one: object) -> int:
    return decision_number_of(str(one) if isinstance(one, int) and not 0 <= one < _LARGEST else one)


def placed_in_offers(contexts: Any, actions: Any) -> Any:
    """Convert item ids to indices among the items of their `Offer`."""
    if isinstance(contexts, np.ndarray) and contexts.dtype != object:
        return actions
    if isinstance(contexts, list | tuple | np.ndarray) and any(isinstance(one, Offer) for one in contexts):
        if len(contexts) != len(actions):
            raise InvalidInput(f"actions: found {len(actions)}, expected one per context ({len(contexts)})")
        made: Array = np.array(
            [c.place(a) if isinstance(c, Offer) else a for c, a in zip(contexts, actions, strict=True)]
        )
        return made
    return actions


def offered(contexts: object, places: Sequence[int]) -> Array:
    """Convert indices among the items of each context to actions of their `Offer`: undoes `placed_in_offers`."""
    if isinstance(contexts, list | tuple) and any(isinstance(one, Offer) for one in contexts):
        pairs = zip(contexts, places, strict=True)
        return np.array([one.action(place) if isinstance(one, Offer) else place for one, place in pairs])
    return np.array(places, np.int64)


def _said_of_offer(value: object) -> str:
    if value is None or (isinstance(value, Sequence | Mapping) and not len(value)):
        return "nothing"
    return f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
