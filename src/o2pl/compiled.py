"""Numba, once: the decorator that every kernel uses, and the exponential that every softmax uses."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit, types
from numba.core.caching import IndexDataCacheFile
from numba.extending import intrinsic, overload

F = TypeVar("F", bound=Callable[..., Any])

# Reductions may be reordered and fused, so that they vectorise; NaN and infinity keep their meaning.
_FAST = {"contract", "reassoc", "nsz", "arcp"}


def _fingerprint() -> str:
    """Of all of the package's files that hold kernels."""
    sources = (path.read_bytes() for path in sorted(Path(__file__).parent.rglob("*.py")))
    return hashlib.sha256(b"".join(source for source in sources if b"@compiled" in source)).hexdigest()[:12]


_SOURCES = _fingerprint()


def compiled(function: F) -> F:
    """Compile `function` on first use and keep the result on disk."""
    # Kernels within kernels are inlined: else a process that compiles both may run another copy of the inner one than a
    # process that finds the outer one on disk, and round sums differently.
    kernel: Any = njit(cache=True, fastmath=_FAST, error_model="numpy", forceinline=True)(function)
    # Numba renews a kernel on disk when the kernel's own file changes, but the kernels it calls, which stand in other
    # files, are compiled into it: so the name on disk says what all the sources were.
    cache = kernel._cache
    name = f"{cache._impl.filename_base}-{_SOURCES}"
    cache._cache_file = cast(Any, IndexDataCacheFile)(cache.cache_path, name, cache._impl.locator.get_source_stamp())
    return cast(F, kernel)


def _bitcast(_context: Any, _bits: Any) -> Any:
    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float32))

    return types.float32(types.int32), codegen


def _bitcast64(_context: Any, _bits: Any) -> Any:
    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float64))

    return types.float64(types.int64), codegen


_float_from_bits: Any = intrinsic(_bitcast)
_double_from_bits: Any = intrinsic(_bitcast64)


_LOWEST, _LOG2E, _HALF, _ONE = np.float32(-87.0), np.float32(1.4426950408889634), np.float32(0.5), np.float32(1.0)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)  # ln 2 in two parts, so x - k ln 2 is exact
_EXP = tuple(np.float32(1 / math.factorial(k)) for k in (7, 6, 5, 4, 3, 2))  # Taylor on |r| ≤ ln(2)/2: error below 1e-7


def _exp32(x: Any) -> Any:
    x = max(x, _LOWEST)
    k = np.floor(x * _LOG2E + _HALF)
    r = x - k * _LN2_HIGH - k * _LN2_LOW
    p = _EXP[0]
    for j in range(1, 6):
        p = p * r + _EXP[j]
    p = p * r * r + r + _ONE
    return p * _float_from_bits(np.int32((np.int32(k) + np.int32(127)) << np.int32(23)))


def _exp64(x: Any) -> Any:
    return math.exp(x)


def exp(x: Any) -> Any:
    """e^x for x ≤ 0. For float32 a branch-free polynomial (relative error 1e-7) that vectorises; else the library's."""
    return math.exp(x)


@overload(exp, inline="always")
def _exp_in_kernels(x: Any) -> Any:
    return _exp32 if x == types.float32 else _exp64


_LOWEST64, _HIGHEST64 = -708.0, 709.0  # below, e^x is no normal number; above, it is soon none at all
_LOG2E64, _LN2 = math.log2(math.e), math.log(2)
_EXP64 = tuple(1 / math.factorial(k) for k in range(13, 1, -1))  # Taylor on |r| ≤ ln(2)/2: error below 1e-16


@compiled
def exp_any(x: float) -> float:
    """e^x, branch-free so that it vectorises (relative error |x| 1e-16); 0 below -708, ∞ above 709."""
    y = min(max(x, _LOWEST64), _HIGHEST64)
    k = np.floor(y * _LOG2E64 + 0.5)
    r = y - k * _LN2
    p = _EXP64[0]
    for j in range(1, 12):
        p = p * r + _EXP64[j]
    p = p * r * r + r + 1.0
    p *= _double_from_bits((np.int64(k) + np.int64(1023)) << np.int64(52))
    if x > _HIGHEST64:
        p = math.inf
    if x < _LOWEST64:
        p = 0.0
    return float(p)
