from __future__ import annotations

import importlib.util
import signal
from functools import cache
from typing import Any

import pytest

_NO_JAX = "JAX is not installed: pip install 'o2pl[jax]'"


def pytest_sessionstart() -> None:
    """Started in the background, Python ignores SIGINT, and so would the programs that tests start and interrupt."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Skip tests whose marker names what is not here: JAX, or a GPU that it sees."""
    here = importlib.util.find_spec("jax") is not None
    for item in items:
        if item.get_closest_marker("gpu") and not (here and _gpu()):
            item.add_marker(pytest.mark.skip(reason="JAX sees no GPU here" if here else _NO_JAX))
        elif item.get_closest_marker("jax") and not here:
            item.add_marker(pytest.mark.skip(reason=_NO_JAX))


@cache
def _gpu() -> bool:
    import jax

    return bool(jax.devices()[0].platform == "gpu")
