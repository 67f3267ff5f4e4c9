"""Numba, once: the decorator that every kernel uses, and the exponential that every softmax uses."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numba import carray, njit, types  # type: ignore[attr-defined]
from numba.core import cgutils
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


def compiled(function: F, nogil: bool = False) -> F:
    """Compile `function` on first use and keep the result on disk; with `nogil`, threads may run it side by side."""
    kernel: Any = njit(cache=True, fastmath=_FAST, error_model="numpy", nogil=nogil)(function)
    # Numba renews a kernel on disk when the kernel's own file changes, but the kernels it calls, which stand in other
    # files, are compiled into it: so the name on disk says what all the sources were.
    cache = kernel._cache
    name = f"{cache._impl.filename_base}-{_SOURCES}"
    cache._cache_file = cast(Any, IndexDataCacheFile)(cache.cache_path, name, cache._impl.locator.get_source_stamp())
    return cast(F, kernel)


def compiled_for_threads(function: F) -> F:
    """`compiled`, and other threads may run meanwhile: worth it where a call takes longer than changing threads."""
    return compiled(function, nogil=True)


def _bitcast(_context: Any, _bits: Any) -> Any:
    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float32))

    return types.float32(types.int32), codegen


_float_from_bits: Any = intrinsic(_bitcast)


def _to_pointer(_context: Any, _address: Any) -> Any:
    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), codegen


_pointer: Any = intrinsic(_to_pointer)


@njit
def array_at(address: int, shape: Any, dtype: Any) -> Any:
    """The array that begins at an address, in kernels: handing over an array costs 40 ns, an address next to nothing.

    Whoever gives the address keeps the array alive.
    """
    return carray(_pointer(address), shape, dtype)


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
