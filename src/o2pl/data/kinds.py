"""What kind of context is given, and its parts: users, items, what a set's actions share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from o2pl.data.contexts import ActionSets
from o2pl.data.frames import as_frame, as_mapping, is_frame
from o2pl.data.offers import Offer
from o2pl.errors import InvalidInput

# Kinds of contexts. Their names are in files.
ROW = "row"  # one for all of a fixed number of actions
WORDS = "words"  # such a row, with strings that the first contexts are too few to know: see `schema_has_new_words`
MATRIX = "matrix"  # a row of numbers per item
OFFER = "offer"  # numbers of a user, and of items
DICTIONARIES = "dictionaries"  # one per action, and what they share

_EXPECTED = (
    "a list of dictionaries, one per action, or {'shared': {...}, 'actions': [{...}, ...]},"
    " or a pair of shared features and such a list"
)


def kind_of_context(context: Any) -> str:
    """Return the kind of a context: ROW, MATRIX, OFFER or DICTIONARIES."""
    if isinstance(context, Offer):
        return DICTIONARIES if context.dictionaries else OFFER
    if isinstance(context, Mapping):
        return DICTIONARIES if "_multi" in context or _kind_has_actions(context) else ROW
    if isinstance(context, np.ndarray):
        return MATRIX if context.ndim == 2 else ROW
    if _kind_is_pair(context):
        return _kind_of_items(context[1])
    if not isinstance(context, list | tuple) or hasattr(context, "_asdict") or not len(context):
        return ROW
    if isinstance(context[0], Mapping):
        return DICTIONARIES
    return MATRIX if isinstance(context, list) and _kind_is_matrix(context) else ROW


def _kind_of_items(items: object) -> str:
    """Return the kind of a pair of a user and these items; ROW: they are no items."""
    if is_frame(items) or (isinstance(items, np.ndarray) and items.ndim == 2):
        return OFFER
    if not isinstance(items, list | tuple) or not len(items):
        return ROW
    if isinstance(items[0], Mapping):
        return DICTIONARIES
    return OFFER if isinstance(items[0], list | tuple | np.ndarray) else ROW


def _kind_has_actions(context: Mapping[Any, Any]) -> bool:
    return "actions" in context and set(context) <= {"shared", "actions"}


def _kind_is_matrix(context: list[Any]) -> bool:
    try:
        return len(context) > 0 and isinstance(context[0], list | tuple) and np.ndim(context) == 2
    except ValueError:  # rows of different lengths
        return False


def kind_of_contexts(contexts: Any) -> str:
    """Return the kind of many contexts, by the first."""
    if isinstance(contexts, ActionSets):
        if contexts.shared is not None:
            return OFFER
        return MATRIX if isinstance(contexts.values, np.ndarray) else DICTIONARIES
    if getattr(contexts, "sizes", None) is not None:  # Records
        return DICTIONARIES if not len(contexts) or kind_of_context(contexts[0]) != OFFER else OFFER
    if is_frame(contexts) or isinstance(contexts, Mapping) or not hasattr(contexts, "__getitem__"):
        return ROW
    if isinstance(contexts, np.ndarray) and contexts.dtype != object:
        return MATRIX if contexts.ndim == 3 else ROW
    return kind_of_context(contexts[0]) if len(contexts) else ROW


def split_set(context: Any) -> tuple[Mapping[Any, Any], Sequence[Any]]:
    """Return the shared features, and the features of each action."""
    shared: Any = {}
    actions = context
    if isinstance(context, Offer):
        shared, actions = shared_of(context.user, context.slot), context.items
        if context.kept is not None:
            actions = [actions[place] for place in context.kept]
    elif isinstance(context, Mapping) and "_multi" in context:
        shared, actions = _own(context), context["_multi"]
        if isinstance(actions, list | tuple):
            actions = [_own(action) if isinstance(action, Mapping) else action for action in actions]
    elif isinstance(context, Mapping) and _kind_has_actions(context):
        shared, actions = context.get("shared") or {}, context["actions"]
    elif _kind_is_pair(context):
        numbers = isinstance(context[0], list | tuple | np.ndarray)
        shared, actions = shared_of(context[0], None) if numbers else context[0] or {}, context[1]
    if type(actions) is not list and is_frame(actions):
        actions = as_frame(actions).dictionaries()
    listed = type(actions) is list or (
        isinstance(actions, Sequence | np.ndarray) and not isinstance(actions, str | bytes)
    )
    if not listed or not len(actions):
        raise InvalidInput(f": found {type(context).__name__}, expected {_EXPECTED}")
    if type(shared) is not dict and not isinstance(shared, Mapping):
        raise InvalidInput(f", shared: found {type(shared).__name__}, expected a dictionary of features")
    return shared, actions


def _own(features: Mapping[Any, Any]) -> dict[Any, Any]:
    """Drop the keys that start with _, which are reserved by VW."""
    return {key: value for key, value in features.items() if not str(key).startswith("_")}


def shared_of(user: object, slot: int | None) -> dict[Any, Any]:
    """Return the shared features; the list slot is added as a string."""
    shared = {} if user is None else user if type(user) is dict else as_mapping(user)
    if shared is None and isinstance(user, list | tuple | np.ndarray):
        shared = {str(column): value for column, value in enumerate(user)}  # a numeric row
    if shared is None:
        raise InvalidInput(f", user: found {type(user).__name__}, expected a dictionary of features")
    if slot is None:
        return dict(shared)
    known = shared.get("slot")
    return {**shared, "slot": {**(known if isinstance(known, Mapping) else {}), "place": str(slot)}}


def _kind_is_pair(context: object) -> bool:
    """Return whether this may be a pair (user, items): two dictionaries are two actions."""
    return isinstance(context, tuple) and len(context) == 2 and not isinstance(context[1], Mapping)


def as_offer(context: Any) -> Offer | None:
    """Return the offer of a context that is an `Offer` or a pair (user, items); else None."""
    if isinstance(context, Offer):
        return context
    if _kind_is_pair(context) and kind_of_context(context) != ROW:
        return Offer(*context)
    return None


def offer_of(context: Any, items: Any = None, ids: Any = None, exclude: Any = None) -> Offer:
    """Return the offer of a user and items, or of one context that contains both."""
    if isinstance(context, Offer) and items is None:
        if ids is None and exclude is None:
            return context
        known = context.ids if ids is None else ids
        gone = [one for one in (context.ids or range(len(context.items))) if one not in context.actions]
        return Offer(context.user, context.items, ids=known, exclude=[*gone, *(exclude or [])], slot=context.slot)
    if items is None:
        if _kind_is_pair(context):
            context, items = context
        elif kind_of_context(context) == "dictionaries":
            context, items = split_set(context)
        else:
            context, items = None, context
    return Offer(context, items, ids=ids, exclude=exclude)
