"""Encodes nested dictionaries of strings and numbers as sparse rows by feature hashing, without a vocabulary.

The name of a feature is its path, `user.age`; for a string it is the path and the string, `user.id=u17`. Its index is
the last `bits` of `name_hash`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from o2pl import _core
from o2pl.data.contexts import Row, SparseRows, check_sparse_rows
from o2pl.data.frames import as_frame, as_mapping, calendar_in_frame, check_is_row, is_frame, kind_of_value
from o2pl.encode.schema import Schema
from o2pl.errors import InvalidInput
from o2pl.protocols import Array, Ints

LARGEST = float(np.finfo(np.float32).max)
_WORDS = 2**18  # limit of noted names; beyond it, all are forgotten
_BLOCK = 4096  # contexts that are read at a time


class DictionaryReader:
    """Encodes dictionaries as `SparseRows` of 2^bits features; their names are noted.

    signed: half of the features, by their hash, have a negative sign. interactions: pairs of top-level keys to
    multiply. A data frame is read as the dictionaries of its rows. A reader that started with a data frame checks later
    data frames and rows against its schema.
    """

    schema: Schema | None = None
    fresh: bool = False  # whether the next data frame is the first batch

    def __init__(self, bits: int, signed: bool = False, interactions: Sequence[tuple[str, str]] = ()) -> None:
        self.width, self.settings = 1 << bits, (bits, signed, tuple(interactions))
        self.signed, self.interactions = signed, tuple(interactions)
        spaces = sorted({key for pair in interactions for key in pair})
        self._spaces = tuple(spaces)
        pairs = [[spaces.index(key) for key in pair] for pair in interactions]
        self._pairs: Ints = np.array(pairs, np.int64).reshape(-1, 2)  # indices of the pairs' namespaces
        self._no_segments: Ints = np.zeros((max(len(spaces), 1), 2), np.int64)  # their start and end in a row
        self._crossing: tuple[Ints, int, bool] = (self._pairs, self.width - 1, signed)  # for `write_row`
        self._names = _core.FeatureNames(_WORDS)
        self._last: tuple[Any, Any, Row] | None = None  # the last context, a deep copy of it, and its entry

    def learn_from_first(self, rows: SparseRows) -> None:
        self.fresh = False

    def read_in(self, rounds: _core.Rounds) -> None:
        """Let `rounds` read plain dictionaries as this reader does."""
        if not self.interactions:
            rounds.read_as(self, self._names, self.width - 1, self.signed)

    # -- one context, for kernels

    def entry(self, context: Any) -> Row:
        """Return a context in the form that `write_row` needs, which makes a row of it.

        A decision and its reward use the same dictionary: it is read once, unless it was changed in between.
        """
        last = self._last
        if last is not None and context is last[0] and context == last[1]:
            return last[2]
        row = (*self.features(context), *self._crossing)
        if (copy := _core.copied(context)) is not None:
            self._last = context, copy, row
        return row

    def copied(self, context: object) -> Any:
        """Return the copy that `entry` made of this context; None if it made none."""
        last = self._last
        return last[1] if last is not None and last[0] is context else None

    def row(self, context: object) -> SparseRows:
        """Return a context as a single row."""
        return self.rows([context])

    def _row_of_frame(self, context: object) -> Any:
        assert self.schema is not None
        return self.schema.dictionaries(self.schema.frame_of(context), rows=True)[0]

    @property
    def pairs(self) -> Ints:
        """The pairs of namespaces that are multiplied."""
        return self._pairs

    def words(self) -> dict[int, tuple[str, str | None]]:
        """Return the noted features by hash: their path, and the string; None for numbers."""
        return self._names.words()

    def features(self, context: Any) -> tuple[Array, Ints]:
        """Return the features of one dictionary, hash and value [n, 2], and the segments of its namespaces."""
        segments = np.zeros_like(self._no_segments) if self._spaces else self._no_segments
        try:
            mapping = context if self.schema is None else self._row_of_frame(context)
            return _core.read_dictionary(
                mapping, self._spaces, segments, self._names, _plain_dictionary_context
            ), segments
        except InvalidInput as error:
            raise InvalidInput(f"context{error}") from None

    def forget_names(self) -> None:
        """Forget the names of features, which may tell of persons. Those that come again are noted again."""
        self._names, self._last = _core.FeatureNames(_WORDS), None

    # -- batches

    def rows(self, contexts: Any) -> SparseRows:
        """Encode a sequence of dictionaries or a data frame; `SparseRows` of the right width pass."""
        if isinstance(contexts, SparseRows):
            return check_sparse_rows(contexts, self.width)
        if is_frame(contexts):
            frame = as_frame(contexts)
            if self.fresh and self.schema is None:
                self.schema = Schema.learn(frame)
            contexts = frame.dictionaries() if self.schema is None else self.schema.dictionaries(frame)
        elif isinstance(contexts, str | Mapping) or not hasattr(contexts, "__getitem__"):
            raise InvalidInput(f"contexts: found {_said_of_dictionary(contexts)}, expected a sequence of dictionaries")
        elif self.schema is not None:
            contexts = [self._row_of_frame(context) for context in contexts]
        read = [self._block(contexts, first) for first in range(0, max(len(contexts), 1), _BLOCK)]
        return self.expanded(*joined_dictionary_features(read), self._pairs)

    def _block(self, contexts: Any, first: int) -> tuple[Array, Ints, Ints]:
        """Return the features of some contexts, the end of each, and the segments of their namespaces."""

        def plain(context: object, row: int) -> dict[str, Any]:
            try:
                return _plain_dictionary_context(context)
            except InvalidInput as error:
                raise InvalidInput(f"context, row {first + row}{error}") from None

        own = [contexts[row] for row in range(first, min(first + _BLOCK, len(contexts)))]
        segments = np.zeros((len(own), *self._no_segments.shape), np.int64)
        return *_core.read_dictionaries(own, self._spaces, segments, self._names, plain), segments

    def expanded(self, hashes: Array, ends: Ints, segments: Ints, pairs: Ints) -> SparseRows:
        """Return rows of features, `hashes[ends[r]:ends[r + 1]]`, with the products of their namespaces."""
        _, mask, signed = self._crossing
        return SparseRows(*_core.expanded_rows(hashes, ends, segments, pairs, mask, signed), self.width)

    def features_of_set(self, shared: Any, actions: Any) -> tuple[Array, Ints, Ints]:
        """Return the features of one action set: for each action its own, then the shared ones, under `shared.`.

        Also returns the end of each action, and its segments. Without `interactions`, all shared features are
        multiplied with all features of the action: segment 0 is the action's, segment 1 the shared ones.
        """
        actions = list(actions)
        segments = np.zeros((len(actions), len(self._spaces) or 2, 2), np.int64)
        return *_core.read_set(shared, actions, self._spaces, segments, self._names, _plain_dictionary_action), segments

    @property
    def set_pairs(self) -> Ints:
        """The pairs of segments of `features_of_set` that are multiplied."""
        return self._pairs if self._spaces else np.array([[1, 0]])


def joined_dictionary_features(parts: Sequence[tuple[Array, Ints, Ints]]) -> tuple[Array, Ints, Ints]:
    """Return the features of several parts, the ends of their rows, and the segments of each."""
    if len(parts) == 1:
        return parts[0]
    features, segments = (np.concatenate([part[place] for part in parts]) for place in (0, 2))
    sizes = np.concatenate([np.diff(ends) for _, ends, _ in parts])
    return features, np.concatenate([[0], np.cumsum(sizes)]), segments


# -- contexts that are not plain dictionaries of strings and numbers: made plain, or refused


def _plain_dictionary_context(context: object, row: int = 0) -> dict[str, Any]:
    check_is_row(context, "")
    mapping = as_mapping(context)
    if mapping is None:
        raise InvalidInput(f": found {_said_of_dictionary(context)}, expected a dictionary of features")
    return _plain_dictionary(mapping, "")


def _plain_dictionary_action(action: Any, place: int) -> dict[str, Any]:
    if place < 0:
        return _plain_dictionary(action, "shared")
    mapping = as_mapping(action)
    if mapping is None:
        raise InvalidInput(f", action {place}: found {_said_of_dictionary(action)}, expected a dictionary of features")
    return _plain_dictionary(mapping, "")


def _plain_dictionary(mapping: Mapping[Any, Any], name: str) -> dict[str, Any]:
    plain = {}
    for key, value in mapping.items():
        if not isinstance(key, str):
            where = f", {name}" if name else ""
            raise InvalidInput(f"{where}: found the key {key!r} of type {type(key).__name__}, expected strings as keys")
        plain[key] = _plain_dictionary_value(value, f"{name}.{key}" if name else key)
    return plain


def _plain_dictionary_value(value: object, name: str) -> Any:
    if isinstance(value, Mapping):
        return _plain_dictionary(value, name)
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value.tolist()
    if isinstance(value, list | tuple | set | frozenset):
        return _plain_dictionary_list(sorted(value) if isinstance(value, set | frozenset) else value, name)
    kind, made = kind_of_value(value)
    if kind == "number" and not -LARGEST <= made <= LARGEST:
        raise InvalidInput(
            f", {name}: found {value}, expected a finite number (of magnitude below 3e38, the range of float32)"
        )
    if kind == "time":
        return calendar_in_frame(datetime.fromtimestamp(made, UTC))
    if kind in ("unknown", "nested"):
        raise InvalidInput(
            f", {name}: found {_said_of_dictionary(value)}, expected a string, number, bool, date, list,"
            " dictionary or None"
        )
    return bool(made) if kind == "bool" else made


def _plain_dictionary_list(values: Sequence[object], name: str) -> list[Any]:
    plain: list[Any] = []
    for place, value in enumerate(values):
        if isinstance(value, Mapping):  # has the name of the list
            plain.append(_plain_dictionary(value, name))
        elif value is None or isinstance(value, str | bool | int | float | np.number):
            plain.append(_plain_dictionary_value(value, f"{name}[{place}]"))
        else:
            raise InvalidInput(
                f", {name}[{place}]: found {_said_of_dictionary(value)}, expected a string, number, dictionary"
                " or None in a list"
            )
    return plain


def _said_of_dictionary(value: object) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} of type {type(value).__name__}"
