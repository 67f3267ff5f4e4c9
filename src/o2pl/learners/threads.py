"""How many threads BLAS gets: one for small problems, where a second only waits for the first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_LARGE = 20_000_000  # multiplications of one evaluation; below, threads cost more than they bring (measured)
_SMALL = 5000  # below, BLAS takes one thread by itself, and asking for it takes as long as the rest
_here = threading.local()  # whether this thread has asked for the limit already: asking takes as long as a small solve


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  # numba's BLAS is scipy's: it must be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def blas_threads(multiplications: int) -> Iterator[None]:
    """Within this context BLAS runs on one thread, unless the problem is large."""
    if not _SMALL <= multiplications < _LARGE or getattr(_here, "limited", False):
        yield
        return
    _here.limited = True
    try:
        with _controller().limit(limits=1):
            yield
    finally:
        _here.limited = False
