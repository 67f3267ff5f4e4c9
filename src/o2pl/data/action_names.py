"""Action names: conversion of names to indices, and of indices between two lists of names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from o2pl.errors import InvalidInput, nearest
from o2pl.protocols import Array, Ints

Names = tuple[str, ...]


def check_action_names(names: object) -> Names:
    """Check that the names are distinct strings."""
    if isinstance(names, str) or not isinstance(names, Sequence | np.ndarray):
        raise InvalidInput(f"actions: found {names!r}, expected a list of strings, such as ['news', 'sport']")
    found = [name.item() if isinstance(name, np.generic) else name for name in names]
    for place, name in enumerate(found):
        if not isinstance(name, str):
            raise InvalidInput(f"actions, place {place}: found {name!r}, expected a string, such as 'news'")
        if name in found[:place]:
            raise InvalidInput(f"actions, place {place}: found {name!r} again, expected each name once")
    if not found:
        raise InvalidInput("actions: found no names, expected at least one")
    return tuple(found)


def are_action_names(actions: object) -> bool:
    """Return whether actions are given by name."""
    if isinstance(actions, np.ndarray) and actions.dtype.kind in "biuf":
        return False
    given = np.asarray(actions)
    return given.ndim == 1 and len(given) > 0 and (given.dtype.kind == "U" or isinstance(given[0], str))


def action_names_in(actions: object) -> Names:
    """Return the distinct names in alphabetical order."""
    return check_action_names(sorted(set(_listed_action_names(actions))))


def numbers_of_action_names(actions: object, names: Names) -> Ints:
    """Return the index of each action in `names`, [n]."""
    places = {name: place for place, name in enumerate(names)}
    given = _listed_action_names(actions)
    try:
        return np.array([places[word] for word in given], np.int64)
    except (KeyError, TypeError):
        row = next(row for row, word in enumerate(given) if not isinstance(word, str) or word not in places)
        raise InvalidInput(
            f"action, row {row}: found {given[row]!r}, {_meant_action_name(given[row], names)}"
        ) from None


def renumbered_by_action_names(actions: Array, names: Names, own: Names) -> Ints:
    """Convert indices into `names` to indices into `own`, [n]. A played action that is not in `own` is an error."""
    if names == own:
        return actions
    places = places_of_action_names(names, own)
    found = places[actions]
    if len(found) and found.min() < 0:
        row = int(np.argmin(found))
        name = names[int(actions[row])]
        raise InvalidInput(f"action, row {row}: found {name!r}, {_meant_action_name(name, own)}")
    return found


def places_of_action_names(names: Names, own: Names) -> Ints:
    """Return the index of each name in `own`; -1 if it is missing."""
    places = {name: place for place, name in enumerate(own)}
    return np.array([places.get(name, -1) for name in names], np.int64)


def _listed_action_names(actions: Any) -> list[Any]:
    return np.asarray(actions).tolist() if isinstance(actions, np.ndarray) else list(actions)


def _meant_action_name(name: object, names: Names) -> str:
    if isinstance(name, str):
        return nearest(name, names)
    some = ", ".join(repr(one) for one in names[:8]) + (", …" if len(names) > 8 else "")
    return f"expected a name: {some}"
