"""How many threads BLAS gets: one for small problems, where a second only waits for the first."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

_LARGE = 20_000_000  # multiplications of one evaluation; below, threads cost more than they bring (measured)


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  # numba's BLAS is scipy's: it must be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def blas_threads(multiplications: int) -> AbstractContextManager[Any]:
    """Within this context BLAS runs on one thread, unless the problem is large."""
    return nullcontext() if multiplications >= _LARGE else _controller().limit(limits=1)
