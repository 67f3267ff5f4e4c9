"""Connection to a running Ray cluster, or a temporary one on this machine, and the environment of its workers."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from o2pl.errors import InvalidInput

_LIBRARIES = ("OMP", "OPENBLAS", "MKL")
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in _LIBRARIES} | {"VECLIB_MAXIMUM_THREADS": "1"}


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def cluster_environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables for processes that are started within the context."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def connected_cluster(address: str | None = None, workers: int | None = None) -> Iterator[tuple[Any, dict[str, str]]]:
    """Yield Ray and the environment of its workers, one thread each. A cluster started here ends with the context.

    Without an address, start a local cluster with `workers` processes that use this process's import path.
    """
    import ray

    ours = not ray.is_initialized()
    if ours:
        _connect_cluster(ray, address, workers)
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} if address is None else {}
    try:
        yield ray, {**ONE_THREAD, **path}
    finally:
        if ours:
            ray.shutdown()


def _connect_cluster(ray: Any, address: str | None, workers: int | None) -> None:
    if address is not None:
        try:
            ray.init(address=address, log_to_driver=False)
        except ConnectionError as error:
            raise InvalidInput(
                f"address: found no Ray cluster that answers at {address}, expected a running one "
                f"(with its token in RAY_AUTH_TOKEN, if it needs one): {error}"
            ) from None
        return
    with cluster_environment({"RAY_USAGE_STATS_ENABLED": "0"}):  # a local cluster sends no usage statistics
        ray.init(
            address="local",
            num_cpus=cores() if workers is None else workers,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="error",
        )
