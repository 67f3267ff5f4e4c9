"""`Encoder`: encodes contexts of any kind as rows of a log. Nothing after it looks at what was given.

The first contexts decide what they are: names, strings, numbers of features. Later ones are checked against it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from o2pl.data.contexts import Encoded
from o2pl.data.frames import is_frame
from o2pl.data.kinds import MATRIX, OFFER, ROW
from o2pl.data.records import Records
from o2pl.encode.dictionaries import DictionaryReader
from o2pl.encode.readers import DenseReader, OfferReader, SetsReader
from o2pl.encode.schema import OfferSchema, Schema

Hashing = tuple[int, bool, Sequence[tuple[str, str]]]  # bits, signed, interactions: see `DictionaryReader`


class Encoder:
    """Encodes contexts as rows. A learner chooses the settings by the kind of its first contexts, and its policy.

    Parameters
    ----------
    kind
        Kind of the first contexts: see `data.kinds`.
    items
        Whether a context has its actions: action sets, or users and items. False: a fixed number of actions.
    hashed
        Settings of hashed words, as rows of 2^bits features; None: rows of numbers, with columns for frequent words.
    numbered
        The first number of a row is the index of one of this many contexts; None: it is any number.
    width, shared, schema
        Numbers per row, those of the user among them, and names and kinds of columns; None: from the first contexts.
    """

    def __init__(
        self,
        kind: str = ROW,
        *,
        items: bool = False,
        hashed: Hashing | None = None,
        numbered: int | None = None,
        width: int | None = None,
        shared: int | None = None,
        schema: Schema | OfferSchema | None = None,
    ) -> None:
        self.kind, self.items, self.hashed, self.numbered = kind, items, hashed, numbered
        self.users = items and hashed is None and kind == OFFER  # numbers of users, and of items
        self.words = None if hashed is None else DictionaryReader(*hashed)
        rows = DenseReader(width, numbered) if self.words is None else self.words
        self._reader: Any = OfferReader(shared, width) if self.users else SetsReader(rows) if items else rows
        self.schema = schema
        self._fresh = width is None
        if self.words is not None:
            self.words.fresh = self._fresh
        # One context as a log's column takes it, and the copy that this made of a dictionary or None: no calls between.
        self.entry: Callable[[Any], Any] = self._reader.entry
        self.copied: Callable[[Any], Any] = _not_copied_by_encoder if self.words is None else self.words.copied

    def forget_names(self) -> None:
        """Forget the names of hashed features, until they come again."""
        if self.words is not None:
            self.words.forget_names()

    @property
    def width(self) -> int | None:
        """The width of the inputs of a feature map; None: not known yet."""
        width: int | None = self._reader.width
        return width

    @property
    def shared(self) -> int | None:
        """The number of features of a user; None: no users, or not known yet."""
        shared: int | None = self._reader.shared if self.users else None
        return shared

    @property
    def schema(self) -> Any:
        """Names and kinds of the columns, a `Schema` or `OfferSchema`; None: they have no names."""
        return self._reader.schema

    @schema.setter
    def schema(self, schema: Any) -> None:
        self._reader.schema = schema

    def encode(self, contexts: object) -> Encoded:
        """Return contexts as rows. The first ones set the width."""
        rows: Encoded = self._reader.rows(contexts)
        if self._fresh:
            self._reader.learn_from_first(rows)
            self._fresh = False
        return rows

    def encode_one(self, context: object) -> Encoded:
        """Return one context as rows, of length 1."""
        row: Encoded = self._reader.row(context)
        return row

    # -- files

    def settings(self) -> tuple[Any, ...]:
        """Return what `of` restores the encoder from: width, sets, hashed, numbered, schema, shared, users."""
        hashed = None if self.words is None else self.words.settings
        return self.width, self.items and not self.users, hashed, self.numbered, self.schema, self.shared, self.users

    @classmethod
    def of(
        cls, width: int | None, sets: bool, hashed: Hashing | None, numbered: int | None = None, schema: Any = None,
        shared: int | None = None, users: bool = False,
    ) -> Self:  # fmt: skip
        """Return an encoder with these settings, of a file; older ones have fewer."""
        kind = OFFER if users else MATRIX if sets else ROW
        return cls(
            kind, items=sets or users, hashed=hashed, numbered=numbered, width=width, shared=shared, schema=schema
        )


def _not_copied_by_encoder(context: object) -> None:
    """Rows of numbers are copied by the log."""


def encoder_makes_new_rows(contexts: object) -> bool:
    """Return whether the rows made of these contexts are nobody else's."""
    return isinstance(contexts, Records | list) or is_frame(contexts)
