"""Kernels: a row's hashed features and the products of its namespaces, as indices and values."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.compiled import compiled
from o2pl.protocols import Array, Floats, Ints

LARGEST = float(np.finfo(np.float32).max)


@compiled
def crossed_hash(first: Any, second: Any) -> Any:
    """Return the hash of the product of two features; the order matters. All uint32."""
    h = np.uint32(np.uint32(first * np.uint32(0x9E3779B1)) ^ second)
    h = np.uint32((h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    h = np.uint32((h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.uint32(h ^ (h >> np.uint32(16)))


@compiled
def crossed_value(first: Any, second: Any) -> Any:
    """Return the value of the product of two features, within the range of float32."""
    return np.float32(min(max(np.float64(first) * np.float64(second), -LARGEST), LARGEST))


@compiled
def expanded_size(n: int, segments: Ints, pairs: Ints) -> int:
    """Return the number of entries of a row of n features with all products. segments [spaces, 2], pairs [m, 2]"""
    total = n
    for p in range(len(pairs)):
        a, b = pairs[p]
        size = segments[a, 1] - segments[a, 0]
        total += size * (size - 1) // 2 if a == b else size * (segments[b, 1] - segments[b, 0])
    return total


@compiled
def expand(
    hashes: Array, values: Floats, n: int, segments: Ints, pairs: Ints, mask: Any, signed: bool,
    at: int, out_indices: Ints, out_values: Floats,
) -> int:  # fmt: skip
    """Write n features and their products to the outputs from `at` on. Returns their end.

    hashes and values [≥ n, 2] are two views of the same memory: column 0 of the first, column 1 of the second. segments
    [spaces, 2]: start and end of each namespace's features; pairs [m, 2] of namespaces are multiplied.
    """
    for i in range(n):
        at = _put(hashes[i, 0], values[i, 1], mask, signed, at, out_indices, out_values)
    for p in range(len(pairs)):
        a, b = pairs[p]
        for i in range(segments[a, 0], segments[a, 1]):
            begin = i + 1 if a == b else segments[b, 0]  # within one namespace, each pair once
            for j in range(begin, segments[b, 1]):
                h = crossed_hash(hashes[i, 0], hashes[j, 0])
                product = crossed_value(values[i, 1], values[j, 1])
                at = _put(h, product, mask, signed, at, out_indices, out_values)
    return at


@compiled
def _put(h: Any, value: Any, mask: Any, signed: bool, at: int, out_indices: Ints, out_values: Floats) -> int:
    out_indices[at] = h & mask
    out_values[at] = (
        -value if signed and h >> np.uint32(31) else value
    )  # the sign is the first bit, which no index uses
    return at + 1
