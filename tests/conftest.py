from __future__ import annotations

import signal
from typing import Any

import pytest


def pytest_sessionstart() -> None:
    """Started in the background, Python ignores SIGINT, and so would the programs that tests start and interrupt."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Tests that need a GPU are skipped where JAX sees none."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    import jax

    if jax.devices()[0].platform != "gpu":
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="JAX sees no GPU here"))
