"""Hashes the features of action sets in JSON (as in Vowpal Wabbit's dsjson), without dictionaries.

One pass over the text gives the same features as `dictionary_sets` on parsed dictionaries. Unusual text (numbers
beyond float32, lists in lists, malformed text) is left to the slow path, which reads it or reports what is wrong. A
repeated key counts twice, as in VW.
"""

from __future__ import annotations

from collections.abc import Sequence

from o2pl import _core
from o2pl.data.hashed_sets import HashedSets


def json_sets(texts: Sequence[bytes]) -> HashedSets | None:
    """Hash the features of contexts with `_multi`; None if one of them needs the slow path."""
    found = _core.json_sets(texts)
    return None if found is None else HashedSets(*found)
