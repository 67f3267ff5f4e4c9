"""Names of a package that are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def called_lazily(module: str, name: str) -> Callable[..., Any]:
    """Return a function of a module further along the path of the data: a method may be a shorthand for it."""
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


def lazily_imported(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's `__getattr__` and `__dir__`. Its modules are found as attributes too, as if they had been imported.

    modules: the names that each module has, separated by spaces
    """
    where = {name: module for module, names in modules.items() for name in names.split()}
    known = vars(sys.modules[package])
    hidden = [name for name in where if f"{package}.{name}" in modules]
    if hidden:  # importing the module would put it in the place of the name
        raise ImportError(f"{package}: found names that are also modules of it: {', '.join(hidden)}")

    def get(name: str) -> Any:
        if name in where:
            known[name] = getattr(import_module(where[name]), name)
            return known[name]
        if not name.startswith("_") and find_spec(f"{package}.{name}") is not None:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])

    return get, lambda: sorted({*known, *where})
