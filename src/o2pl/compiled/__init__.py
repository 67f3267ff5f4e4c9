"""Numba decorators of all kernels, and the cache of compiled kernels.

Importing Numba takes longer than importing all the rest, so it is imported when the first kernel is called.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import os
import sys
import threading
from collections.abc import Callable
from functools import cache, update_wrapper
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

KERNELS: list[Any] = []  # all kernels defined so far
_LOGGER = logging.getLogger("o2pl")
_FIRST = "first use: compiling kernels, some seconds; they are cached for the next time"
_NOT_KEPT = "compiling kernels each time: no cache folder is writable (set NUMBA_CACHE_DIR to a writable one)"

# Reductions may be reordered and fused, so that they vectorise; NaN and infinity keep their meaning.
_IN_ORDER = {"contract", "nsz", "arcp"}
_FAST = _IN_ORDER | {"reassoc"}


def compiled(function: F) -> F:
    """Compile `function` on first use, and cache the result on disk."""
    return _compiled(function, _FAST, nogil=False)


def compiled_for_threads(function: F) -> F:
    """Like `compiled`, but releases the GIL: useful if a call takes longer than a thread switch."""
    return _compiled(function, _FAST, nogil=True)


def compiled_in_order(function: F) -> F:
    """Like `compiled`, but sums keep their order: the same bits wherever the kernel is inlined."""
    return _compiled(function, _IN_ORDER, nogil=False)


def compiled_within(function: F) -> F:
    """Like `compiled_in_order`, for kernels called only by kernels: compiles faster, not callable from Python."""
    return _compiled(function, _IN_ORDER, nogil=False, no_cpython_wrapper=True)


def compiled_inlined(function: F) -> F:
    """Put the source of `function` into each kernel that calls it, under that kernel's rules: never compiled itself.

    Compiles fastest, for a function that is called in one place of a kernel.
    """
    return _compiled(function, _IN_ORDER, nogil=False, inline="always")


def compiled_exactly(function: F) -> F:
    """Like `compiled_within`, with every operation rounded as written, for error-compensated arithmetic."""
    return _compiled(function, set(), nogil=False, no_cpython_wrapper=True)


def compiled_apart(function: F) -> F:
    """Like `compiled_within`, but not inlined: compiles faster; for kernels without sums of floats."""
    return _compiled(function, _IN_ORDER, nogil=False, forceinline=False, no_cpython_wrapper=True)


def _compiled(function: F, fastmath: set[str], nogil: bool, **more: Any) -> F:
    # Kernels within kernels are inlined. Otherwise a process that compiles both might run another copy of the inner one
    # than a process that finds the outer one on disk, and round sums differently.
    options: dict[str, Any] = {
        "fastmath": fastmath,
        "error_model": "numpy",
        "nogil": nogil,
        "forceinline": True,
        "no_cfunc_wrapper": True,  # for C callers, which there are none of
        **more,
    }

    def make() -> Any:
        from numba import njit

        try:
            kernel: Any = njit(cache=True, **options)(function)
            _remove_stale(kernel.stats.cache_path)
        except RuntimeError:  # no writable folder
            kernel = njit(**options)(function)
        return kernel

    kernel = _when_called(function, make)
    KERNELS.append(kernel)
    return cast(F, kernel)


def within_kernels(function: Callable[..., Any]) -> Callable[[F], F]:
    """Decorate what kernels run where they call `function`: Numba's `overload`, with its source put into the kernel."""

    def decorate(chosen: F) -> F:
        def make() -> Any:
            from numba.extending import overload

            return overload(function, inline="always")(chosen)

        _when_called(chosen, make)
        return chosen

    return decorate


def instruction(typed: Callable[..., Any]) -> Any:
    """Return a function for kernels that `typed` generates the code of: Numba's `intrinsic`."""

    def make() -> Any:
        from numba.extending import intrinsic

        return intrinsic(typed)

    return _when_called(typed, make)


class _Waiting:
    """Stands for a kernel until the first call of any: then Numba is imported, and all are made.

    Their names in modules are then those of Numba's own objects: later calls go straight to Numba.
    """

    made: Any = None

    def __init__(self, function: Callable[..., Any], make: Callable[[], Any]) -> None:
        self.make = make
        update_wrapper(self, function)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        make_kernels()
        return self.made(*arguments, **named)


_WAITING: list[_Waiting] = []
_MAKING = threading.RLock()


def _when_called(function: Callable[..., Any], make: Callable[[], Any]) -> Any:
    with _MAKING:
        if _listening.cache_info().currsize:  # Numba is there
            return make()
        _WAITING.append(_Waiting(function, make))
        return _WAITING[-1]


def make_kernels() -> None:
    """Import Numba and make the kernels defined so far. They compile when they are called."""
    with _MAKING:
        _listening()
        for each in _WAITING:
            each.made = each.make()
        if _WAITING:
            for module in list(sys.modules.values()):
                names = vars(module) if isinstance(module, ModuleType) else {}
                for name in [name for name, value in names.items() if type(value) is _Waiting]:
                    names[name] = names[name].made
            KERNELS[:] = [each.made if type(each) is _Waiting else each for each in KERNELS]
            _WAITING.clear()


def folders() -> list[str]:
    """Return the cache folders of compiled kernels; empty if there is no cache."""
    make_kernels()
    return sorted({kernel.stats.cache_path for kernel in KERNELS} - {None})


# Numba recompiles a cached kernel when the kernel's own file changes. The kernels that it calls are in other files and
# compiled into it, so a change of any kernel must invalidate all: a stamp in each folder identifies the sources.


@cache
def _fingerprint() -> str:
    """Return a hash of all files of the package that define kernels, or instructions of kernels."""
    sources = (path.read_bytes() for path in sorted(Path(__file__).parents[1].rglob("*.py")))
    defining = (source for source in sources if b"@compiled" in source or b"instruction(" in source)
    return hashlib.sha256(b"".join(defining)).hexdigest()[:12]


@cache
def _remove_stale(folder: str) -> None:
    """Remove kernels that were compiled from other sources. Processes that are reading one are not affected."""
    stamp = Path(folder, f"o2pl-{_fingerprint()}.stamp")
    try:
        if not stamp.exists():
            for old in Path(folder).glob("*"):
                if old.suffix in (".nbi", ".nbc", ".stamp"):
                    old.unlink(missing_ok=True)
            stamp.parent.mkdir(parents=True, exist_ok=True)
            stamp.touch()
    except OSError as error:
        _LOGGER.info("compiled kernels in %s were not checked: %s", folder, error)


# -- messages while kernels compile


@cache
def _say_once(what: str) -> None:
    """Write a message once: to the log, and to the terminal; worker processes leave that to their parent."""
    _LOGGER.info(what)
    import multiprocessing  # here: it would be a tenth of `from o2pl import Bandit`

    terminal = sys.stderr is not None and sys.stderr.isatty()
    if terminal and multiprocessing.parent_process() is None:
        print(f"o2pl: {what} …", file=sys.stderr, flush=True)


@cache
def _listening() -> None:
    """Import Numba, and listen to it: say that it compiles, and pause garbage collection meanwhile.

    Numba makes millions of small objects that live as long as a compilation: looking for garbage among them takes a
    tenth of the time. Numba compiles one kernel at a time, with those that it calls inside it.
    """
    from numba.core import event

    class WhileCompiling(event.Listener):
        depth, collecting = 0, False

        def on_start(self, event: Any) -> None:
            kernel = event.data["dispatcher"]
            if any(kernel is own for own in KERNELS):  # kernels loaded from the cache are not announced
                _say_once(_FIRST if kernel.stats.cache_path else _NOT_KEPT)
            if self.depth == 0:
                self.collecting = gc.isenabled()
                gc.disable()
            self.depth += 1

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            if self.depth == 0 and self.collecting:
                gc.enable()

    event.register("numba:compile", WhileCompiling())  # type: ignore[no-untyped-call]  # Numba has few types


def say_if_first() -> None:
    """Announce compilation in a parent process whose workers will compile, if nothing is cached yet."""
    if not any(name.endswith(".nbi") for folder in folders() if os.path.isdir(folder) for name in os.listdir(folder)):
        _say_once(_FIRST)
