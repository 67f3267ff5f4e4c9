"""A local Ray for tests of fits on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from o2pl.cluster import connected_cluster


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[tuple[Any, dict[str, str]]]:
    """Of two worker processes."""
    pytest.importorskip("ray")
    with connected_cluster(workers=2) as cluster:
        yield cluster
