"""Action sets of dictionaries: features of each action, shared features, and their products.

A context is one of

        [{...}, {...}]                                one dictionary per action
        {"shared": {...}, "actions": [{...}, ...]}    with shared features: the user, the page, the hour
        ({...}, [{...}, ...])                         the same
        {"user": {...}, "_multi": [{...}, ...]}       the same, in Vowpal Wabbit's form
        Offer({...}, [{...}, ...], ids=..., slot=...) with item ids, the list slot, ...

The number of actions may differ by round. Shared features distinguish actions only together with the actions' features,
so the products of both (user × item) are features too: all of them, or those of `Hashed(interactions=...)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from o2pl.contexts.dictionaries import DictionaryReader, joined_features
from o2pl.contexts.frames import as_frame, as_mapping, is_frame
from o2pl.contexts.json_sets import json_sets
from o2pl.contexts.offers import NO_ID, Offer, kind_of_context
from o2pl.errors import InvalidInput
from o2pl.protocols import Array, Ints
from o2pl.rows import ActionSets, SparseRows
from o2pl.threads import ahead

_MANY = 2000  # number of texts from which the compiled reader pays off
_BLOCK = 4096  # texts per block
_EXPECTED = (
    "a list of dictionaries, one per action, or {'shared': {...}, 'actions': [{...}, ...]},"
    " or a pair of shared features and such a list"
)


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
    elif isinstance(context, Mapping) and "actions" in context and set(context) <= {"shared", "actions"}:
        shared, actions = context.get("shared") or {}, context["actions"]
    elif isinstance(context, tuple) and len(context) == 2 and not isinstance(context[1], Mapping):
        shared, actions = context[0] or {}, context[1]
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


def offer_of(context: Any, items: Any = None, ids: Any = None, exclude: Any = None) -> Offer:
    """Return the offer of a user and items, or of one context that contains both."""
    if isinstance(context, Offer) and items is None:
        if ids is None and exclude is None:
            return context
        known = context.ids if ids is None else ids
        gone = [one for one in (context.ids or range(len(context.items))) if one not in context.actions]
        return Offer(context.user, context.items, ids=known, exclude=[*gone, *(exclude or [])], slot=context.slot)
    if items is None:
        if isinstance(context, tuple) and len(context) == 2:
            context, items = context
        elif kind_of_context(context) == "dictionaries":
            context, items = split_set(context)
        else:
            context, items = None, context
    return Offer(context, items, ids=ids, exclude=exclude)


def shared_of(user: Any, slot: int | None) -> dict[Any, Any]:
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


def _own(features: Mapping[Any, Any]) -> dict[Any, Any]:
    """Drop the keys that start with _, which are reserved by VW."""
    return {key: value for key, value in features.items() if not str(key).startswith("_")}


def is_set(context: Any) -> bool:
    """Return whether this is an action set of dictionaries."""
    if isinstance(context, Offer):
        return context.dictionaries
    if isinstance(context, Mapping):
        return "_multi" in context or ("actions" in context and set(context) <= {"shared", "actions"})
    listed = isinstance(context, list | tuple) and len(context) > 0
    return (
        listed
        and all(isinstance(part, Mapping | list | tuple) or part is None for part in context[:2])
        and (
            isinstance(context[-1], Mapping)
            or (isinstance(context, tuple) and len(context) == 2 and is_set(context[1]))
        )
    )


def dictionary_sets(reader: DictionaryReader, contexts: Any) -> ActionSets:
    """Encode action sets as sparse rows, one per action."""
    if isinstance(contexts, ActionSets):
        if not isinstance(contexts.values, SparseRows):
            raise InvalidInput("action sets: found numeric rows, expected dictionaries, one per action")
        rows = reader.rows(contexts.values)
        return contexts if rows is contexts.values else replace(contexts, values=rows)
    texts, hashed = (getattr(contexts, name, None) for name in ("values", "hashed"))  # Records
    if hashed is not None and not reader.interactions:
        encoded: ActionSets = hashed.encoded(reader.width - 1, reader.signed)
        return encoded
    if reader.interactions or texts is None or len(texts) < _MANY or not isinstance(texts[0], bytes):
        return _parsed_sets(reader, contexts)

    def scanned(start: int) -> ActionSets | None:
        own = texts[start : start + _BLOCK]
        found = json_sets(own) if _all_texts(own) else None
        return None if found is None else found.encoded(reader.width - 1, reader.signed)

    starts = range(0, len(texts), _BLOCK)
    made = [
        _parsed_sets(reader, contexts[start : start + _BLOCK], start) if found is None else found
        for start, found in zip(starts, ahead(scanned, starts), strict=True)
    ]
    return _joined(made)


def _all_texts(texts: Any) -> bool:
    return all(type(text) is bytes for text in texts)


def _joined(sets: list[ActionSets]) -> ActionSets:
    values: list[SparseRows] = [one.values for one in sets]
    rows = SparseRows(
        np.concatenate([one.indices for one in values]),
        np.concatenate([one.values for one in values]),
        np.concatenate([[0], np.cumsum(np.concatenate([np.diff(one.offsets) for one in values]))]),
        values[0].width,
    )
    return ActionSets(rows, np.concatenate([[0], np.cumsum(np.concatenate([one.sizes for one in sets]))]))


def _parsed_sets(reader: DictionaryReader, contexts: Any, first: int = 0) -> ActionSets:
    """Encode dictionary by dictionary; rows are numbered from `first` on."""
    read, sizes = list[tuple[Array, Ints, Ints]](), [0]
    ids, slots, any_ids, any_slots = list[Ints](), list[int](), False, False
    for row, context in enumerate(contexts, first):
        features, codes, slot = _one(reader, context, row)
        read.append(features)
        sizes.append(len(features[2]))
        any_ids, any_slots = any_ids or codes is not None, any_slots or slot is not None
        ids.append(np.full(sizes[-1], NO_ID) if codes is None else codes)
        slots.append(slot or 0)
    features = joined_features(read or [reader.features_of_set({}, [])])
    rows = reader.expanded(*features, reader.set_pairs)
    return ActionSets(
        rows, np.cumsum(sizes), None, np.concatenate(ids) if any_ids else None, np.array(slots) if any_slots else None
    )


def dictionary_set(reader: DictionaryReader, context: Any) -> ActionSets:
    """Encode one action set, as `dictionary_sets` would."""
    if isinstance(context, ActionSets):
        return dictionary_sets(reader, context)
    features, codes, slot = _one(reader, context, 0)
    rows = reader.expanded(*features, reader.set_pairs)
    return ActionSets(rows, np.array([0, len(features[2])]), None, codes, None if slot is None else np.array([slot]))


def _one(reader: DictionaryReader, context: Any, row: int) -> tuple[tuple[Array, Ints, Ints], Ints | None, int | None]:
    """Return features of one action set, item ids, and the list slot."""
    try:
        features = reader.features_of_set(*split_set(context))
    except InvalidInput as error:
        raise InvalidInput(f"action set {row}{error}") from None
    return (features, context.codes, context.slot) if isinstance(context, Offer) else (features, None, None)
