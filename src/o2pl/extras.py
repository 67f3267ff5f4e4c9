"""What the core does without: the extras, and what is said where one is missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from o2pl.errors import MissingExtra

# The modules of each extra that the package itself imports; pyproject.toml says the versions.
EXTRAS: dict[str, tuple[str, ...]] = {
    "logs": ("msgspec", "pyarrow"),
    "plots": ("matplotlib",),
    "experiments": ("matplotlib", "pyarrow", "sklearn"),
    "vw": ("vowpalwabbit",),
    "ray": ("ray",),
    "serve": ("fastapi", "httptools", "msgspec", "prometheus_client", "pyarrow", "sqlalchemy", "uvicorn"),
    "postgres": ("psycopg",),
    "jax": ("jax",),
}
# Modules that pip knows by another name.
PACKAGES = {"prometheus_client": "prometheus-client", "sklearn": "scikit-learn"}


def missing(name: str) -> list[str]:
    """The extra's modules that are not installed. Nothing is imported."""
    return [module for module in EXTRAS[name] if importlib.util.find_spec(module) is None]


def require_extra(name: str, purpose: str) -> None:
    """Raise `MissingExtra` unless the whole extra is installed: before long work, which must not fail at its end."""
    if modules := missing(name):
        raise MissingExtra(_message(name, purpose, modules))


@contextmanager
def extra(name: str, purpose: str) -> Iterator[None]:
    """A door: imports within this context raise `MissingExtra` where they find the extra's packages missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in EXTRAS[name]:  # another package is broken: that is for its own message to say
            raise
        raise MissingExtra(_message(name, purpose, [module])) from None


def install_command(name: str) -> str:
    return f"pip install 'o2pl[{name}]'"


def _message(name: str, purpose: str, modules: Sequence[str]) -> str:
    *others, last = (PACKAGES.get(module, module) for module in modules)
    packages = f"{', '.join(others)} and {last}" if others else last
    return f"{purpose} needs {packages}: {install_command(name)}"
