"""Numba, once: the decorator that every kernel uses, where kernels are kept, and the exponential of every softmax."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
import multiprocessing
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numba import carray, njit, types  # type: ignore[attr-defined]  # it is there, but not declared
from numba.core import caching, cgutils
from numba.extending import intrinsic, overload

F = TypeVar("F", bound=Callable[..., Any])

KERNELS: list[Any] = []  # all there are so far
_NUMBA: Any = caching  # has no types: hence the classes below that mypy cannot see through

# Reductions may be reordered and fused, so that they vectorise; NaN and infinity keep their meaning.
_FAST = {"contract", "reassoc", "nsz", "arcp"}


def _fingerprint() -> str:
    """Of all of the package's files that hold kernels."""
    sources = (path.read_bytes() for path in sorted(Path(__file__).parent.rglob("*.py")))
    return hashlib.sha256(b"".join(source for source in sources if b"@compiled" in source)).hexdigest()[:12]


_SOURCES = _fingerprint()
_KEPT = re.compile(r".+\.py\d+\w*-([0-9a-f]{12})\.(?:nbi|\d+\.nbc)")  # files that `_Kept` makes, and their fingerprint


def compiled(function: F, nogil: bool = False) -> F:
    """Compile `function` on first use and keep the result on disk; with `nogil`, threads may run it side by side."""
    # Kernels within kernels are inlined: else a process that compiles both may run another copy of the inner one than a
    # process that finds the outer one on disk, and round sums differently.
    kernel: Any = njit(fastmath=_FAST, error_model="numpy", nogil=nogil, forceinline=True)(function)
    try:
        kernel._cache = _Kept(function)
    except RuntimeError:  # no folder can be written
        kernel._cache = _NotKept()
    KERNELS.append(kernel)
    return cast(F, kernel)


def compiled_for_threads(function: F) -> F:
    """`compiled`, and other threads may run meanwhile: worth it where a call takes longer than changing threads."""
    return compiled(function, nogil=True)


def folders() -> list[str]:
    """Where kernels are kept; none where they cannot be."""
    return sorted({kernel._cache.cache_path for kernel in KERNELS} - {None})


class _InTemporaryFolder(_NUMBA._SourceFileBackedLocatorMixin, _NUMBA._CacheLocator):  # type: ignore[misc]
    """For want of another folder. What lies there is run, so it must be this user's alone."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file = file
        self._lineno = function.__code__.co_firstlineno
        self._root = os.path.join(tempfile.gettempdir(), f"o2pl-{os.getuid() if hasattr(os, 'getuid') else 'user'}")

    def get_cache_path(self) -> str:
        return os.path.join(self._root, str(self.get_suitable_cache_subpath(self._py_file)))

    def ensure_cache_path(self) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(self._root, 0o700)
        found = os.lstat(self._root)
        ours = not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)
        if not (ours and stat.S_ISDIR(found.st_mode)):
            raise PermissionError(f"{self._root} is not this user's alone")
        super().ensure_cache_path()


class _Places(_NUMBA.CompileResultCacheImpl):  # type: ignore[misc]
    """Numba's (NUMBA_CACHE_DIR, beside the source, the user's), then a temporary one."""

    _locator_classes = (*_NUMBA.CacheImpl._locator_classes, _InTemporaryFolder)


class _Kept(_NUMBA.FunctionCache):  # type: ignore[misc]
    """A kernel's compiled forms on disk.

    Numba renews a kernel on disk when the kernel's own file changes, but the kernels it calls, which stand in other
    files, are compiled into it: so the name on disk says what all the sources were.
    """

    _impl_class = _Places
    _tidied: set[str] = set()  # noqa: RUF012  # folders, of all kernels

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        name = f"{self._impl.filename_base}-{_SOURCES}"
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _NUMBA.IndexDataCacheFile(self.cache_path, name, stamp)
        self.index = str(self._cache_file._index_path)

    def load_overload(self, signature: Any, context: Any) -> Any:
        found = None
        with contextlib.suppress(OSError):  # a file that cannot be read is no file
            found = super().load_overload(signature, context)
        if found is None:
            _say_once(_FIRST)
        return found

    def save_overload(self, signature: Any, result: Any) -> None:
        try:
            super().save_overload(signature, result)
        except OSError as error:  # a full disk, a folder that is gone: the kernel works all the same
            _LOGGER.info("a compiled kernel was not kept: %s", error)
        if self.cache_path not in self._tidied:
            self._tidied.add(self.cache_path)
            remove_stale(Path(self.cache_path))


class _NotKept(_NUMBA.NullCache):  # type: ignore[misc]
    index = os.devnull + "/none"

    def load_overload(self, signature: Any, context: Any) -> None:
        _say_once(
            "compiling kernels, up to half a minute, and each time: no folder for them can be written "
            "(set NUMBA_CACHE_DIR to one)"
        )


def remove_stale(folder: Path) -> None:
    """Forms that were compiled from other sources. One that is being read goes on being read; who needs it later
    compiles it again."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            found = _KEPT.fullmatch(path.name)
            if found and found[1] != _SOURCES:
                path.unlink(missing_ok=True)


def say_if_first() -> None:
    """For a process that leaves the computing to others: they will have to compile where nothing is kept yet."""
    if not any(os.path.exists(kernel._cache.index) for kernel in KERNELS):
        _say_once(_FIRST)


_LOGGER = logging.getLogger("o2pl")
_FIRST = "first use here: compiling kernels, up to half a minute; they are kept for the next time"
_said: list[str] = []


def _say_once(what: str) -> None:
    """To the log, and to whoever sits before a terminal; a worker process leaves that to its parent."""
    if _said:
        return
    _said.append(what)
    _LOGGER.info(what)
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if terminal and multiprocessing.parent_process() is None:
        print(f"o2pl: {what} …", file=sys.stderr, flush=True)


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
