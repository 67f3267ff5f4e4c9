"""How many threads work: one for small problems, where a second only waits for the first."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

_SMALL = 2**18  # below, BLAS takes one thread by itself, and asking for it takes as long as the rest


class _Here(threading.local):
    given: int | None = None  # threads that BLAS had before it was held to one; asking takes as long as a small solve


_here = _Here()


@cache
def _blas() -> Any:
    import scipy.linalg  # noqa: F401  # numba's BLAS is scipy's: it must be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _given() -> int:
    """Threads that this process may use: as many as BLAS was given, by its settings or by the machine."""
    if _here.given is not None:
        return _here.given
    return max((int(each["num_threads"]) for each in _blas().info()), default=1)


@contextmanager
def one_blas_thread(multiplications: float) -> Iterator[None]:
    """Within this context BLAS runs on one thread: the matrices of a block are small, and the rows have the others."""
    if multiplications < _SMALL or _here.given is not None:
        yield
        return
    _here.given = _given()
    try:
        with _blas().limit(limits=1):
            yield
    finally:
        _here.given = None


@cache
def _pool(threads: int, _process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="o2pl")


def side_by_side(work: Callable[[int], None], parts: int) -> None:
    """Do all parts, on as many threads as there are; what is done must not depend on that."""
    threads = _given() if parts > 1 else 1
    with one_blas_thread(math.inf):
        if threads > 1:
            for _ in _pool(threads, os.getpid()).map(work, range(parts)):  # a forked process has no threads of its own
                pass
        else:
            for part in range(parts):
                work(part)
