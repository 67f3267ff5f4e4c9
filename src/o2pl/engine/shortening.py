"""Lossless compression of a published policy's arrays: a service stores many versions.

Parameters that are multiples of 1/GRID become integers. Ascending numbers are stored as differences. Both are stored
in the smallest type that holds them, and compress well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.protocols import Array

GRID = 2.0**12
_TYPES = (np.int8, np.uint8, np.int16, np.uint16, np.int32)


def shortened(header: dict[str, Any], arrays: dict[str, Array]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return shortened arrays; `restored_from_shortened` restores them. The header lists the changed ones."""
    short, how = dict(arrays), dict[str, str]()
    for name, array in arrays.items():
        made = None
        if name.endswith(".params"):
            made, how[name] = _shortest_integers(array * GRID), "grid"
        elif name.endswith(".seen.feature") and len(array) > 2 and (np.diff(array[1:]) > 0).all():
            made, how[name] = _shortest_integers(np.diff(array, prepend=0)), "differences"
        if made is None:
            how.pop(name, None)
        else:
            short[name] = made
    return ({**header, "short": how} if how else header), short


def restored_from_shortened(header: dict[str, Any], arrays: dict[str, Array]) -> dict[str, Array]:
    made = dict(arrays)
    for name, how in header.get("short", {}).items():
        made[name] = arrays[name] / GRID if how == "grid" else np.cumsum(arrays[name], dtype=np.int64).astype(np.int32)
    return made


def _shortest_integers(array: Array) -> Array | None:
    """Return the integers in the smallest type; None if they are not integers or too large."""
    for kind in _TYPES:
        ends = np.iinfo(kind)
        if len(array) and array.min() >= ends.min and array.max() <= ends.max:
            made = array.astype(kind)
            return made if np.array_equal(made, array) else None
    return None
