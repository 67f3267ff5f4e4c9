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

from typing import Any

import numpy as np

from o2pl.data.contexts import ActionSets, SparseRows, are_sparse_contexts
from o2pl.data.kinds import split_set
from o2pl.data.offers import NO_ID, Offer
from o2pl.encode.dictionaries import DictionaryReader, joined_dictionary_features
from o2pl.encode.json_sets import json_sets
from o2pl.errors import InvalidInput
from o2pl.protocols import Array, Ints
from o2pl.threads import ahead_in_threads

_MANY = 2000  # number of texts from which the compiled reader pays off
_BLOCK = 4096  # texts per block


def dictionary_sets(reader: DictionaryReader, contexts: Any) -> ActionSets:
    """Encode action sets as sparse rows, one per action."""
    if isinstance(contexts, ActionSets):
        if not are_sparse_contexts(contexts.values):
            raise InvalidInput("action sets: found numeric rows, expected dictionaries, one per action")
        rows = reader.rows(contexts.values)
        return contexts if rows is contexts.values else contexts.with_items(rows)
    texts, hashed = (getattr(contexts, name, None) for name in ("values", "hashed"))  # Records
    if hashed is not None and not reader.interactions:
        encoded: ActionSets = hashed.encoded(reader.width - 1, reader.signed)
        return encoded
    if reader.interactions or texts is None or len(texts) < _MANY or not isinstance(texts[0], bytes):
        return _parsed_sets(reader, contexts)

    def scanned(start: int) -> ActionSets | None:
        own = texts[start : start + _BLOCK]
        found = json_sets(own) if _all_set_texts(own) else None
        return None if found is None else found.encoded(reader.width - 1, reader.signed)

    starts = range(0, len(texts), _BLOCK)
    made = [
        _parsed_sets(reader, contexts[start : start + _BLOCK], start) if found is None else found
        for start, found in zip(starts, ahead_in_threads(scanned, starts), strict=True)
    ]
    return _joined_sets(made)


def _all_set_texts(texts: Any) -> bool:
    return all(type(text) is bytes for text in texts)


def _joined_sets(sets: list[ActionSets]) -> ActionSets:
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
        features, codes, slot = _one_set(reader, context, row)
        read.append(features)
        sizes.append(len(features[2]))
        any_ids, any_slots = any_ids or codes is not None, any_slots or slot is not None
        ids.append(np.full(sizes[-1], NO_ID) if codes is None else codes)
        slots.append(slot or 0)
    features = joined_dictionary_features(read or [reader.features_of_set({}, [])])
    rows = reader.expanded(*features, reader.set_pairs)
    return ActionSets(
        rows, np.cumsum(sizes), None, np.concatenate(ids) if any_ids else None, np.array(slots) if any_slots else None
    )


def dictionary_set(reader: DictionaryReader, context: object) -> ActionSets:
    """Encode one action set, as `dictionary_sets` would."""
    if isinstance(context, ActionSets):
        return dictionary_sets(reader, context)
    features, codes, slot = _one_set(reader, context, 0)
    rows = reader.expanded(*features, reader.set_pairs)
    return ActionSets(rows, np.array([0, len(features[2])]), None, codes, None if slot is None else np.array([slot]))


def _one_set(
    reader: DictionaryReader, context: object, row: int
) -> tuple[tuple[Array, Ints, Ints], Ints | None, int | None]:
    """Return features of one action set, item ids, and the list slot."""
    try:
        features = reader.features_of_set(*split_set(context))
    except InvalidInput as error:
        raise InvalidInput(f"action set {row}{error}") from None
    return (features, context.codes, context.slot) if isinstance(context, Offer) else (features, None, None)
