"""Numba, once: the decorator that every kernel uses, and where compiled kernels are kept."""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import event

F = TypeVar("F", bound=Callable[..., Any])

KERNELS: list[Any] = []  # all there are so far
_LOGGER = logging.getLogger("o2pl")
_FIRST = "first use here: compiling kernels, about ten seconds; they are kept for the next time"
_NOT_KEPT = "compiling kernels each time: no cache folder can be written (set NUMBA_CACHE_DIR to one that can)"

# Reductions may be reordered and fused, so that they vectorise; NaN and infinity keep their meaning.
_IN_ORDER = {"contract", "nsz", "arcp"}
_FAST = _IN_ORDER | {"reassoc"}


def compiled(function: F) -> F:
    """Compile `function` on first use, and keep the result on disk."""
    return _compiled(function, _FAST, nogil=False)


def compiled_for_threads(function: F) -> F:
    """`compiled`, and other threads may run meanwhile: worth it where a call takes longer than changing threads."""
    return _compiled(function, _FAST, nogil=True)


def compiled_in_order(function: F) -> F:
    """`compiled`, but sums are taken in the order they are written: the same bits wherever the kernel is inlined."""
    return _compiled(function, _IN_ORDER, nogil=False)


def compiled_within(function: F) -> F:
    """`compiled_in_order`, for a kernel that kernels alone call: it compiles faster, and Python cannot call it."""
    return _compiled(function, _IN_ORDER, nogil=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def compiled_exactly(function: F) -> F:
    """`compiled_within`, with every operation rounded as it is written, for arithmetic that reads its own errors."""
    return _compiled(function, set(), nogil=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def compiled_apart(function: F) -> F:
    """`compiled_within`, but not inlined: it compiles faster, and is for kernels that take no sums of floats."""
    return _compiled(
        function, _IN_ORDER, nogil=False, forceinline=False, no_cpython_wrapper=True, no_cfunc_wrapper=True
    )


def _compiled(function: F, fastmath: set[str], nogil: bool, **more: bool) -> F:
    # Kernels within kernels are inlined: else a process that compiles both may run another copy of the inner one than a
    # process that finds the outer one on disk, and round sums differently.
    options: dict[str, Any] = {
        "fastmath": fastmath,
        "error_model": "numpy",
        "nogil": nogil,
        "forceinline": True,
        **more,
    }
    try:
        kernel: Any = njit(cache=True, **options)(function)
        _remove_stale(kernel.stats.cache_path)
    except RuntimeError:  # no folder can be written
        kernel = njit(**options)(function)
    KERNELS.append(kernel)
    return cast(F, kernel)


def folders() -> list[str]:
    """Where compiled kernels are kept; none where they cannot be."""
    return sorted({kernel.stats.cache_path for kernel in KERNELS} - {None})


# Numba renews a kernel on disk when the kernel's own file changes. The kernels it calls stand in other files and are
# compiled into it, so a change of any kernel must renew all: a stamp in each folder names the sources.


@cache
def _fingerprint() -> str:
    """Of all of the package's files that hold kernels."""
    sources = (path.read_bytes() for path in sorted(Path(__file__).parents[1].rglob("*.py")))
    return hashlib.sha256(b"".join(source for source in sources if b"@compiled" in source)).hexdigest()[:12]


@cache
def _remove_stale(folder: str) -> None:
    """Remove kernels that were compiled from other sources. A process that is reading one goes on reading it."""
    stamp = Path(folder, f"o2pl-{_fingerprint()}.stamp")
    try:
        if not stamp.exists():
            for old in Path(folder).glob("*"):
                if old.suffix in (".nbi", ".nbc", ".stamp"):
                    old.unlink(missing_ok=True)
            stamp.parent.mkdir(parents=True, exist_ok=True)
            stamp.touch()
    except OSError as error:
        _LOGGER.info("compiled kernels in %s were not looked through: %s", folder, error)


# -- what a user is told while kernels compile


@cache
def _say_once(what: str) -> None:
    """To the log, and to whoever sits before a terminal; a worker process leaves that to its parent."""
    _LOGGER.info(what)
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if terminal and multiprocessing.parent_process() is None:
        print(f"o2pl: {what} …", file=sys.stderr, flush=True)


class _SaysThatItCompiles(event.Listener):
    """Numba announces each compilation; what is found on disk is not announced."""

    def on_start(self, event: Any) -> None:
        kernel = event.data["dispatcher"]
        if any(kernel is own for own in KERNELS):
            _say_once(_FIRST if kernel.stats.cache_path else _NOT_KEPT)

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


event.register("numba:compile", _SaysThatItCompiles())  # type: ignore[no-untyped-call]  # Numba has few types


def say_if_first() -> None:
    """For a process that leaves the computing to others: they will have to compile where nothing is kept yet."""
    if not any(name.endswith(".nbi") for folder in folders() if os.path.isdir(folder) for name in os.listdir(folder)):
        _say_once(_FIRST)
