"""Encodes nested dictionaries of strings and numbers as sparse rows by feature hashing, without a vocabulary.

The name of a feature is its path, `user.age`; for a string it is the path and the string, `user.id=u17`. Its index is
the last `bits` of `name_hash`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from o2pl import _core
from o2pl.contexts.frames import as_frame, as_mapping, is_frame
from o2pl.contexts.names import name_hash
from o2pl.contexts.schema import Schema
from o2pl.errors import InvalidInput
from o2pl.protocols import Array, Ints
from o2pl.rows import SparseRows
from o2pl.validation import check_sparse_rows

LARGEST = float(np.finfo(np.float32).max)
_ENTRY = struct.Struct("=If")  # hash and value of one feature, for kernels
_PLAIN = frozenset((str, int, float, bool, type(None)))  # immutable types
_WORDS = 2**18  # limit of cached names; beyond it, the cache is cleared

# Features: hash and value [n, 2]; segments and pairs of namespaces, index mask, signed: see `write_row`.
Row = tuple[Array, Ints, Ints, int, bool]


class _Node:
    """A key at a position in the dictionaries: its name, and the cached entries below it."""

    __slots__ = ("children", "entries", "hash", "mixed", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.hash = name_hash(name)
        self.mixed = False  # whether there was anything but strings
        self.entries: dict[
            Any, bytes
        ] = {}  # (key, string) of a dictionary, or a string in a list or alone -> its entry
        self.children: dict[Any, _Node] = {}


class DictionaryReader:
    """Encodes dictionaries as `SparseRows` of 2^bits features; hashes of names are cached.

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
        self._spaces = {key: place for place, key in enumerate(spaces)}
        pairs = [[self._spaces[key] for key in pair] for pair in interactions]
        self._pairs: Ints = np.array(pairs, np.int64).reshape(-1, 2)  # indices of the pairs' namespaces
        self._no_segments: Ints = np.zeros((max(len(spaces), 1), 2), np.int64)  # their start and end in a row
        self._crossing: tuple[Ints, int, bool] = (self._pairs, self.width - 1, signed)  # for `write_row`
        self._root, self._kept = _Node(""), 0
        self._last: tuple[Any, Any, Row] | None = None  # the last context, a deep copy of it, and its entry

    # -- one context, for kernels

    def entry(self, context: Any) -> Row:
        """Return a context in the form that `write_row` needs, which makes a row of it.

        A decision and its reward use the same dictionary: it is read once, unless it was changed in between.
        """
        last = self._last
        if last is not None and context is last[0] and context == last[1]:
            return last[2]
        parts: list[bytes] = []
        segments = self.read(context, parts)
        row = (entries_of(parts), segments, *self._crossing)
        if (copy := _copied(context)) is not None:
            self._last = context, copy, row
        return row

    def copied(self, context: Any) -> Any:
        """Return the copy that `entry` made of this context; None if it made none."""
        last = self._last
        return last[1] if last is not None and last[0] is context else None

    def row(self, context: Any) -> SparseRows:
        """Return a context as a single row."""
        return self.rows([context])

    def _row_of_frame(self, context: Any) -> Any:
        assert self.schema is not None
        return self.schema.dictionaries(self.schema.frame_of(context), rows=True)[0]

    @property
    def pairs(self) -> Ints:
        """The pairs of namespaces that are multiplied."""
        return self._pairs

    @property
    def root(self) -> _Node:
        """The cached keys and strings."""
        return self._root

    def know(self, other: DictionaryReader) -> None:
        """Share the cache of another reader with the same settings."""
        self._root, self._kept = other._root, other._kept

    def read(self, context: Any, parts: list[bytes]) -> Ints:
        """Append the features of one dictionary to `parts`. Returns the segments of its namespaces."""
        segments = self._no_segments if not self._spaces else np.zeros_like(self._no_segments)
        try:
            self._context(context if self.schema is None else self._row_of_frame(context), parts, segments)
        except InvalidInput as error:
            raise InvalidInput(f"context{error}") from None
        return segments

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
            raise InvalidInput(f"contexts: found {_said(contexts)}, expected a sequence of dictionaries")
        elif self.schema is not None:
            contexts = [self._row_of_frame(context) for context in contexts]
        n = len(contexts)
        parts: list[bytes] = []
        ends = np.zeros(n + 1, np.int64)
        segments = np.zeros((n, *self._no_segments.shape), np.int64)
        for row in range(n):
            try:
                self._context(contexts[row], parts, segments[row])
            except InvalidInput as error:
                raise InvalidInput(f"context, row {row}{error}") from None
            ends[row + 1] = len(parts)
        return self.expanded(entries_of(parts), ends, segments, self._pairs)

    def expanded(self, hashes: Array, ends: Ints, segments: Ints, pairs: Ints) -> SparseRows:
        """Return rows of features, `hashes[ends[r]:ends[r + 1]]`, with the products of their namespaces."""
        _, mask, signed = self._crossing
        return SparseRows(*_core.expanded_rows(hashes, ends, segments, pairs, mask, signed), self.width)

    def set_parts(self, shared: Any, actions: Any, parts: list[bytes], ends: list[int], segments: list[Any]) -> None:
        """Append the features of one action set: for each action its own, then the shared ones, under `shared.`.

        Without `interactions`, all shared features are multiplied with all features of the action: segment 0 is the
        action's, segment 1 the shared ones.
        """
        if self._kept > _WORDS:
            self._root, self._kept = _Node(""), 0
        common: list[bytes] = []
        of_shared = np.zeros_like(self._no_segments)
        if shared:
            self._features(self._child(self._root, "shared"), shared, common, of_shared, 0)
        for place, action in enumerate(actions):
            mapping = action if type(action) is dict else as_mapping(action)
            if mapping is None:
                raise InvalidInput(f", action {place}: found {_said(action)}, expected a dictionary of features")
            first = len(parts)
            if self._spaces:
                own = np.zeros_like(self._no_segments)
                self._features(self._root, mapping, parts, own, first)
                size = len(parts) - first
                segments.append(np.where(own.any(axis=1, keepdims=True), own, of_shared + size))
            else:
                self._read(self._root, mapping, parts)
                size = len(parts) - first
                segments.append(
                    ((0, size), (size, size + len(common)))
                )  # tuples: an array would cost as much as everything else
            parts += common
            ends.append(len(parts))

    @property
    def set_pairs(self) -> Ints:
        """The pairs of segments of `set_parts` that are multiplied."""
        return self._pairs if self._spaces else np.array([[1, 0]])

    # -- reading

    def _context(self, context: Any, parts: list[bytes], segments: Ints) -> None:
        if type(context) is not dict:
            mapping = as_mapping(context)
            if mapping is None:
                raise InvalidInput(f": found {_said(context)}, expected a dictionary of features")
            context = mapping
        if self._kept > _WORDS:
            self._root, self._kept = _Node(""), 0
        segments[:] = 0
        self._features(self._root, context, parts, segments, len(parts))

    def _features(
        self, node: _Node, mapping: Mapping[Any, Any], parts: list[bytes], segments: Ints, first: int
    ) -> None:
        """Append all features of a mapping. Returns the segments of the namespaces, counted from part `first` on."""
        if not self._spaces:
            self._read(node, mapping, parts)
            return
        for key, value in mapping.items():
            begin = len(parts)
            self._read(node, {key: value}, parts)
            place = self._spaces.get(key)
            if place is not None:
                segments[place, 0], segments[place, 1] = begin - first, len(parts) - first

    def _read(self, node: _Node, mapping: Mapping[Any, Any], parts: list[bytes]) -> None:
        entries, children = node.entries, node.children
        if not node.mixed:
            try:
                found = list(map(entries.get, mapping.items()))  # fast path if all are cached strings
            except TypeError:  # unhashable: not a string
                node.mixed = True
            else:
                if None in found:
                    pairs = zip(found, mapping.items(), strict=True)
                    found = [part or self._new_word(node, item) for part, item in pairs]
                if not node.mixed:
                    parts += found  # type: ignore[arg-type]  # none is None
                    return
        for item in mapping.items():
            key, value = item
            kind = type(value)
            if kind is str:
                parts.append(entries.get(item) or self._new_word(node, item))  # type: ignore[arg-type]  # it is a word
                continue
            node.mixed = True
            child = children.get(key)
            if child is None:
                child = self._child(node, key)
            if kind is float or kind is int:
                if not -LARGEST <= value <= LARGEST:
                    raise _not_finite(child, value)
                parts.append(_ENTRY.pack(child.hash, value))
            elif kind is dict:
                self._read(child, value, parts)
            else:
                self._other(child, value, parts)

    def _other(self, node: _Node, value: Any, parts: list[bytes]) -> None:
        if value is None:
            return
        if isinstance(value, bool | np.bool_):
            value = "true" if value else "false"
        if isinstance(value, np.ndarray) and value.ndim == 1:
            value = value.tolist()
        if isinstance(value, str):
            parts.append(self._word(node, value))
        elif isinstance(value, int | float | np.integer | np.floating):
            if not -LARGEST <= value <= LARGEST:
                raise _not_finite(node, value)
            parts.append(_ENTRY.pack(node.hash, float(value)))
        elif isinstance(value, Mapping):
            self._read(node, value, parts)
        elif isinstance(value, list | tuple | set | frozenset):
            self._list(node, value, parts)
        else:
            raise InvalidInput(
                f", {node.name}: found {_said(value)}, expected a string, number, bool, list, dictionary or None"
            )

    def _list(self, node: _Node, values: Any, parts: list[bytes]) -> None:
        for place, value in enumerate(sorted(values) if isinstance(values, set | frozenset) else values):
            if type(value) is str:
                parts.append(self._word(node, value))
                continue
            child = node.children.get(place)
            if child is None:
                child = node.children[place] = _Node(f"{node.name}[{place}]")
                self._kept += 1
            if isinstance(value, Mapping):  # has the name of the list
                self._read(node, value, parts)
                continue
            if not (value is None or isinstance(value, str | bool | int | float | np.number)):
                raise InvalidInput(
                    f", {child.name}: found {_said(value)}, expected a string, number, dictionary or None in a list"
                )
            self._other(node if isinstance(value, str | bool) else child, value, parts)

    def _new_word(self, node: _Node, item: tuple[Any, Any]) -> bytes | None:
        """Cache and return the entry of a key and its string; None, and the node is mixed, if it is not a string."""
        key, word = item
        if type(word) is not str:
            node.mixed = True
            return None
        name = (node.children.get(key) or self._child(node, key)).name
        entry = node.entries[item] = _ENTRY.pack(name_hash(f"{name}={word}"), 1.0)
        self._kept += 1
        return entry

    def _word(self, node: _Node, word: str) -> bytes:
        entry = node.entries.get(word)
        if entry is None:
            entry = node.entries[word] = _ENTRY.pack(name_hash(f"{node.name}={word}"), 1.0)
            self._kept += 1
        return entry

    def _child(self, node: _Node, key: Any) -> _Node:
        child = node.children.get(key)
        if child is not None:
            return child
        if not isinstance(key, str):
            where = f", {node.name}" if node.name else ""
            raise InvalidInput(f"{where}: found the key {key!r} of type {type(key).__name__}, expected strings as keys")
        child = node.children[key] = _Node(f"{node.name}.{key}" if node.name else key)
        self._kept += 1
        return child


def _copied(context: Any) -> dict[Any, Any] | None:
    """Return a deep copy of nested dictionaries; None if they contain other mutable values."""
    if type(context) is not dict:
        return None
    copy = context.copy()
    if not _PLAIN.issuperset(map(type, context.values())):
        for key, value in context.items():
            if type(value) is dict:
                copy[key] = inner = _copied(value)
                if inner is None:
                    return None
            elif type(value) not in _PLAIN:
                return None
    return copy


def entries_of(parts: list[bytes]) -> Array:
    """Return hashes and (viewed as float32) values of features, [n, 2]."""
    return np.frombuffer(b"".join(parts), np.uint32).reshape(-1, 2)


def _said(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} of type {type(value).__name__}"


def _not_finite(node: _Node, value: Any) -> InvalidInput:
    return InvalidInput(
        f", {node.name}: found {value}, expected a finite number (of magnitude below 3e38, the range of float32)"
    )
