"""Readers of numeric rows and named columns, of action sets, and of users with items."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl import _core
from o2pl.data.contexts import ActionSets, check_action_sets
from o2pl.data.frames import as_frame, as_mapping, check_is_row, is_frame, is_frame_or_records
from o2pl.data.kinds import as_offer
from o2pl.data.offer_rows import OfferRows, item_rows_of_offer, read_offer, sets_of_offers
from o2pl.data.offers import Offer
from o2pl.data.records import Records
from o2pl.encode.dictionaries import DictionaryReader
from o2pl.encode.schema import OfferSchema, Schema
from o2pl.encode.sets import dictionary_set, dictionary_sets
from o2pl.errors import InvalidInput
from o2pl.protocols import Floats
from o2pl.validation import check_context, check_contexts

_NO_USER = "found a user, expected only items, as in the learner's first data; start with both to learn their products"


class DenseReader:
    """Reads numeric rows. `numbered`: the first entry is the index of one of this many contexts.

    Data frames and dictionaries are encoded as numeric rows by their schema, which the first batch sets.
    """

    schema: Schema | None = None

    def __init__(self, width: int | None = None, numbered: int | None = None) -> None:
        self.width, self.numbered = width, numbered

    def learn_from_first(self, rows: Floats) -> None:
        """Later rows are as wide as these."""
        self.width = rows.shape[1]

    def rows(self, contexts: Any) -> Floats:
        if is_frame_or_records(contexts) or isinstance(contexts, Records):
            return self._known(self._named(contexts))
        if isinstance(contexts, list) and contexts:
            check_is_row(contexts[0])
        return self._known(check_contexts(contexts, self.width))

    def row(self, context: object) -> Floats:
        check_is_row(context)
        mapping = as_mapping(context)
        if mapping is not None:
            row = None if self.schema is None else self.schema.row(mapping)
            return self._known(self._named([mapping]) if row is None else row[None])
        return self._known(check_context(context, self.width)[None])

    def entry(self, context: Any) -> Floats:
        usable = type(context) is np.ndarray and context.dtype.char in "fd" and context.shape == (self.width,)
        if usable and self.numbered is None and context.flags.c_contiguous and _core.all_finite(context):
            row: Floats = context
            return row
        return np.asarray(self.row(context)[0])

    def _named(self, contexts: object) -> Floats:
        """Encode a data frame or named rows by the schema, which the first of them sets."""
        frame = as_frame(contexts)
        if self.schema is None and self.width is not None:  # the first rows had no names
            numbers = frame.numbers()
            if numbers is None or numbers.shape[1] != self.width:
                raise InvalidInput(
                    f"contexts: found {frame!r}, expected rows of {self.width} numbers, as in the learner's first data"
                )
            return check_contexts(numbers, self.width)
        if self.schema is None:
            self.schema = Schema.learn(frame)
        return self.schema.numbers(frame, rows=not is_frame(contexts))

    def _known(self, rows: Floats) -> Floats:
        if self.numbered is not None:
            bad = np.flatnonzero(~np.isin(rows[:, 0], np.arange(self.numbered)))
            if bad.size:
                raise InvalidInput(
                    f"context, row {bad[0]}: found {rows[bad[0], 0]:g},"
                    f" expected an integer from 0 to {self.numbered - 1}, a context of the finite class"
                )
        return rows


class SetsReader:
    """Reads action sets: a matrix per context, a data frame, or a list of dictionaries, one row per action.

    Sets of dictionaries may have shared features: see `contexts.sets`.
    """

    def __init__(self, inner: DenseReader | DictionaryReader) -> None:
        self.inner = inner

    @property
    def width(self) -> int | None:
        return self.inner.width

    @property
    def schema(self) -> Schema | None:
        return self.inner.schema

    @schema.setter
    def schema(self, schema: Schema | None) -> None:
        self.inner.schema = schema

    def learn_from_first(self, rows: ActionSets) -> None:
        self.inner.learn_from_first(rows.values)

    def rows(self, contexts: Any) -> ActionSets:
        if isinstance(self.inner, DictionaryReader):
            return dictionary_sets(self.inner, contexts)
        if not hasattr(contexts, "__len__"):
            raise InvalidInput(f"contexts: found a {type(contexts).__name__}, expected a sequence of action sets")
        if self.width is not None and not len(contexts):
            return ActionSets(np.empty((0, self.width), np.float32), np.zeros(1, np.int64))
        if not isinstance(contexts, ActionSets) and any(isinstance(one, tuple | Offer) for one in contexts):
            return self._without_user(contexts)
        if isinstance(contexts, ActionSets) and contexts.shared is not None and contexts.shared.shape[1]:
            raise InvalidInput(_NO_USER)
        if not isinstance(contexts, ActionSets) and len(contexts) and is_frame_or_records(contexts[0]):
            made = []
            for row, one in enumerate(contexts):
                try:
                    made.append(self.inner.rows(one))
                except InvalidInput as error:
                    raise InvalidInput(f"action set {row}: {error}") from None
            return check_action_sets(made, self.width)
        return check_action_sets(contexts, self.width)

    def _without_user(self, contexts: Any) -> ActionSets:
        """Encode offers of items without a user."""
        for row, one in enumerate(contexts):
            offer = as_offer(one)
            if offer is not None and offer.user is not None:
                raise InvalidInput(f"offer {row}: {_NO_USER}")
        offers = OfferReader(0, None if self.width is None else 1 + self.width)
        offers.schema = None if self.schema is None else OfferSchema(None, self.schema)
        sets = offers.rows(contexts)
        return sets.with_features(sets.values)

    def row(self, context: object) -> ActionSets:
        return self.rows(context if isinstance(context, ActionSets) else [context])

    def entry(self, context: Any) -> ActionSets:
        if isinstance(self.inner, DictionaryReader):
            return dictionary_set(self.inner, context)
        usable = plain_for_reader(context, 2) and context.shape[1] == self.width
        if usable and len(context) and _core.all_finite(context.reshape(-1)):
            return ActionSets(context, np.array([0, len(context)]))
        return self.row(context)


class OfferReader:
    """Encodes offers as `ActionSets` with shared features. shared: number of user features; None: not known yet."""

    def __init__(self, shared: int | None = None, width: int | None = None) -> None:
        items: int | None = None if width is None or shared is None else width - 1 - shared
        self.shared, self._users, self._items = shared, DenseReader(shared), DenseReader(items)

    @property
    def width(self) -> int | None:
        """The width of `ActionSets.inputs`."""
        return None if self.shared is None or self._items.width is None else 1 + self.shared + self._items.width

    @property
    def schema(self) -> OfferSchema | None:
        schemas = self._users.schema, self._items.schema
        return None if schemas == (None, None) else OfferSchema(*schemas)

    @schema.setter
    def schema(self, schema: OfferSchema | None) -> None:
        self._users.schema, self._items.schema = (None, None) if schema is None else (schema.user, schema.items)

    def learn_from_first(self, rows: ActionSets) -> None:
        assert rows.shared is not None
        self.shared = self._users.width = rows.shared.shape[1]
        self._items.width = rows.values.shape[1]

    def rows(self, contexts: Any) -> ActionSets:
        if isinstance(contexts, ActionSets):
            return self._checked(contexts)
        if not len(contexts):
            if self.width is None:
                raise InvalidInput("contexts: found none, expected at least one, to determine the number of features")
            return self._none()
        self._learn_users(contexts)
        return sets_of_offers(contexts, self._read)

    def _learn_users(self, contexts: Any) -> None:
        """Learn the schema of named users from the first batch."""
        first = as_offer(contexts[0])
        fresh = self._users.schema is None and self._users.width is None
        if fresh and first is not None and as_mapping(first.user) is not None:
            offers = (as_offer(context) for context in contexts)
            self._users.rows([as_mapping(offer.user) for offer in offers if offer is not None])

    def row(self, context: object) -> ActionSets:
        return self.rows(context if isinstance(context, ActionSets) else [context])

    def entry(self, context: Any) -> ActionSets:
        """Encode one offer; a copy, so that later changes by the caller have no effect."""
        if isinstance(context, ActionSets):
            return self._checked(context)
        try:
            user, items, offer = self._read(context)
        except InvalidInput as error:
            raise InvalidInput(f"offer: {error}") from None
        slots = None if offer.slot is None else np.array([offer.slot])
        return ActionSets(items, np.array([0, len(items)]), user[None], offer.codes, slots)

    def _read(self, context: object) -> OfferRows:
        return read_offer(context, self._user, self._rows_of_items, self.shared)

    def _user(self, user: object) -> Floats:
        try:
            return np.array(self._users.row(user)[0], np.float32)
        except InvalidInput as error:
            raise InvalidInput(f"user: {error}") from None

    def _rows_of_items(self, items: object) -> Floats:
        if not (is_frame_or_records(items) or is_frame(items)):
            return item_rows_of_offer(items, self._items.width)
        try:
            rows = np.array(self._items.rows(items), np.float32)
        except InvalidInput as error:
            raise InvalidInput(f"items: {error}") from None
        if self._items.width is not None and rows.shape[1] != self._items.width:
            raise InvalidInput(f"items: found shape {rows.shape}, expected (items, {self._items.width})")
        return rows

    def _none(self) -> ActionSets:
        """Return no offers."""
        items, users = np.empty((0, self._items.width or 0)), np.empty((0, self.shared or 0))
        return ActionSets(items.astype(np.float32), np.zeros(1, np.int64), users.astype(np.float32))

    def _checked(self, sets: ActionSets) -> ActionSets:
        if sets.shared is None:
            sets = ActionSets(
                sets.values, sets.offsets, np.empty((len(sets), 0), np.float32), sets.item_ids, sets.slots
            )
        assert sets.shared is not None
        found = None if not isinstance(sets.values, np.ndarray) else (sets.shared.shape[1], sets.values.shape[1])
        if found is None or (self.width is not None and found != (self.shared, self._items.width)):
            raise InvalidInput(
                f"offers: found {found or 'sparse rows'}, expected {(self.shared, self._items.width)}:"
                " numbers of features of the user and of an item"
            )
        return sets


def plain_for_reader(context: Any, dimensions: int) -> bool:
    """Return whether a context is an array of the type that the compiled core reads."""
    usable = type(context) is np.ndarray and context.dtype.char in "fd" and context.ndim == dimensions
    return usable and context.flags.c_contiguous
