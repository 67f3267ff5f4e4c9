"""Number of threads: one for small problems, where more do not help."""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from functools import cache
from itertools import chain, islice
from typing import Any, TypeVar

from o2pl.cluster import cores

Item = TypeVar("Item")
Result = TypeVar("Result")

_SMALL = 2**18  # below this, BLAS uses one thread anyway, and setting it would take as long as the product


class _Here(threading.local):
    given: int | None = None  # BLAS threads before the limit to one; the query takes as long as a small solve


_here = _Here()


@cache
def _blas_threads() -> Any:
    import numpy as np  # noqa: F401  # its BLAS must be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _given_threads() -> int:
    """Return the number of threads of this process: that of NumPy's BLAS; if it has none to set, of the processors."""
    if _here.given is not None:
        return _here.given
    return max((each.num_threads or 1 for each in _blas_threads().lib_controllers), default=cores())


def thread_count() -> int:
    """Return the number of threads for work on many rows."""
    return _given_threads()


@contextmanager
def one_blas_thread(multiplications: float) -> Iterator[None]:
    """Limit BLAS to one thread in this context: blocks are small, and rows are split over threads."""
    if multiplications < _SMALL or _here.given is not None:
        yield
        return
    _here.given = _given_threads()
    try:
        with nullcontext() if _here.given == 1 else _blas_threads().limit(limits=1):
            yield
    finally:
        _here.given = None


@cache
def _thread_pool(threads: int, _process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="o2pl")


def in_threads(work: Callable[[int], None], parts: int) -> None:
    """Run all parts on the available threads; results must not depend on their number."""
    threads = _given_threads() if parts > 1 else 1
    with one_blas_thread(math.inf):
        if threads > 1:
            for _ in _thread_pool(threads, os.getpid()).map(work, range(parts)):  # a forked process needs a new pool
                pass
        else:
            for part in range(parts):
                work(part)


def ahead_in_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield the work on each item, in order, while the available threads work on the next ones.

    What takes long in `work` must release the GIL. Nothing is at work any more when this ends, after an error too.
    """
    rest = iter(items)
    few = list(islice(rest, 2))
    threads = _given_threads() if len(few) > 1 else 1
    if threads == 1:
        yield from map(work, chain(few, rest))
        return
    pool, at_work = _thread_pool(threads, os.getpid()), deque[Future[Result]]()
    try:
        for item in chain(few, rest):
            at_work.append(pool.submit(work, item))
            if len(at_work) > threads:
                yield at_work.popleft().result()
        while at_work:
            yield at_work.popleft().result()
    finally:
        for one in at_work:
            one.cancel()
        wait(at_work)
