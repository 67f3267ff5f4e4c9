"""Display names of encoded features: of numeric columns, and of hashed features."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from o2pl import _core
from o2pl.data.contexts import ActionSets, SparseRows
from o2pl.data.kinds import split_set
from o2pl.encode.dictionaries import DictionaryReader
from o2pl.encode.encoder import Encoder
from o2pl.encode.schema import Schema
from o2pl.protocols import Floats, Ints


class Named(NamedTuple):
    """The name of one number of a row."""

    name: str  # such as `age`, `city=Rome`, or `age × city=Rome`
    features: tuple[str, ...]  # its features, such as `age` and `city`
    value: str = ""  # value of the single feature, formatted


# -- rows of numbers


def column_feature_names(encoder: Encoder, width: int) -> list[Named]:
    """Return the names of the columns; x0, x1, … if they have none. Users' start with `user`, items' with `item`."""
    return [Named(name, (field,)) for name, field in _numeric_feature_names(encoder, width)]


def _numeric_feature_names(encoder: Encoder, width: int) -> list[tuple[str, str]]:
    if encoder.users:
        users, items = _schemas_of_feature_names(encoder)
        shared = encoder.shared or 0
        return [
            ("slot", "slot"),
            *_prefixed_feature_names("user", _named_features(users, shared), users),
            *_prefixed_feature_names("item", _named_features(items, width - 1 - shared), items),
        ]
    return _named_features(encoder.schema, width)


def _schemas_of_feature_names(encoder: Encoder) -> tuple[Schema | None, Schema | None]:
    return (None, None) if encoder.schema is None else (encoder.schema.user, encoder.schema.items)


def _named_features(schema: Schema | None, width: int) -> list[tuple[str, str]]:
    if schema is None:
        return [(f"x{column}", f"x{column}") for column in range(width)]
    return [(name, field.name) for field in schema.fields for name in field.names()]


def _prefixed_feature_names(prefix: str, names: list[tuple[str, str]], schema: Schema | None) -> list[tuple[str, str]]:
    between = " " if schema is None else "."
    return [(f"{prefix}{between}{name}", f"{prefix}{between}{field}") for name, field in names]


def shown_feature_values(encoder: Encoder, row: Floats) -> dict[str, str]:
    """Return the value of each feature in a numeric row."""
    if encoder.users:
        (users, items), first = _schemas_of_feature_names(encoder), 1 + (encoder.shared or 0)
        values = ["", *_shown_feature_fields(users, row[1:first]), *_shown_feature_fields(items, row[first:])]
    else:
        values = _shown_feature_fields(encoder.schema, row)
    features = dict.fromkeys(field for _, field in _numeric_feature_names(encoder, len(row)))
    return dict(zip(features, values, strict=True))


def _shown_feature_fields(schema: Schema | None, row: Floats) -> list[str]:
    """Return one value per encoded field, or per number."""
    if schema is None:
        return [f"{value:.4g}" for value in row.tolist()]
    out, at = [], 0
    for field in schema.fields:
        width = len(field.names())
        if width:
            out.append(field.shown(row[at : at + width]))
        at += width
    return out


# -- hashed rows


def entry_feature_names(encoder: Encoder, context: object) -> list[list[Named]]:
    """Return the names of the entries of each row of a context, in order.

    Rows without names get those that the encoder has noted; unknown ones are shown as numbers.
    """
    inner: Any = encoder.words
    rows = context.values if isinstance(context, ActionSets) else context
    if isinstance(rows, SparseRows):
        words = inner.words()
        known = {hashed & (inner.width - 1): hashed for hashed in words}
        return [_recalled_feature_names(rows[row : row + 1], known, words) for row in range(len(rows))]
    fresh = DictionaryReader(*inner.settings)
    fresh.schema = inner.schema
    if encoder.items:
        entries, ends, segments = fresh.features_of_set(*split_set(context))
        pairs = fresh.set_pairs
    else:
        entries, own_segments = fresh.features(context)
        ends, segments, pairs = np.array([0, len(entries)]), own_segments[None], fresh.pairs
    names = fresh.words()
    own = []
    for first, last, where in zip(ends, ends[1:], segments, strict=False):
        some = entries[first:last]
        alone = [
            _feature_name_of_entry(names, *pair)
            for pair in zip(some[:, 0].tolist(), some.view(np.float32)[:, 1], strict=True)
        ]
        own.append(alone + _product_feature_names(alone, where, pairs))
    return own


def _recalled_feature_names(
    row: SparseRows, known: dict[int, int], words: dict[int, tuple[str, str | None]]
) -> list[Named]:
    """Return the names of a row's entries from noted names: features by index, and their products."""
    indices, values, mask = row.indices.tolist(), row.values.tolist(), row.width - 1
    alone = {
        i: (known[i], _feature_name_of_entry(words, known[i], v))
        for i, v in zip(indices, values, strict=True)
        if i in known
    }
    found = {index: named for index, (_, named) in alone.items()}
    if len(found) < len(set(indices)):
        for h, first in alone.values():
            for g, second in alone.values():
                index = _core.crossed_hash(h, g) & mask
                found.setdefault(index, Named(f"{first.name} × {second.name}", first.features + second.features))
    return [found.get(index) or Named(f"feature {index}", (f"feature {index}",)) for index in indices]


def _feature_name_of_entry(names: dict[int, tuple[str, str | None]], hashed: int, value: object) -> Named:
    path, word = names[hashed]
    return Named(path, (path,), f"{value:.4g}") if word is None else Named(f"{path}={word}", (path,), word)


def _product_feature_names(alone: list[Named], segments: Ints, pairs: Ints) -> list[Named]:
    """Return the names of products in the order of `expand`."""
    out = []
    for a, b in pairs.tolist():
        for i in range(*segments[a].tolist()):
            begin = i + 1 if a == b else int(segments[b, 0])
            for j in range(begin, int(segments[b, 1])):
                first, second = alone[i], alone[j]
                out.append(Named(f"{first.name} × {second.name}", first.features + second.features))
    return out
