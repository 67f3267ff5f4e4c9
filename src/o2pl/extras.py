"""Optional dependencies (extras), and the error raised when one is missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from o2pl.errors import MissingExtra

# The modules that o2pl imports from each extra; versions are in pyproject.toml.
EXTRAS: dict[str, tuple[str, ...]] = {
    "logs": ("msgspec", "pyarrow"),
    "plots": ("matplotlib",),
    "experiments": ("matplotlib", "pyarrow", "sklearn", "scipy"),
    "vw": ("vowpalwabbit",),
    "ray": ("ray",),
    "serve": ("fastapi", "httptools", "msgspec", "prometheus_client", "pyarrow", "sqlalchemy", "uvicorn"),
    "otel": ("opentelemetry.propagate", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
    "postgres": ("psycopg",),
    "jax": ("jax",),
}
# Modules whose pip name differs.
PACKAGES = {
    "opentelemetry.exporter.otlp.proto.http": "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry.propagate": "opentelemetry-api",
    "opentelemetry.sdk": "opentelemetry-sdk",
    "prometheus_client": "prometheus-client",
    "sklearn": "scikit-learn",
}


def missing_extra(name: str) -> list[str]:
    """Return the extra's modules that are not installed, without importing anything."""
    return [module for module in EXTRAS[name] if not _is_there(module)]


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of a package that is missing too
        return False


def require_extra(name: str, purpose: str) -> None:
    """Raise `MissingExtra` unless the whole extra is installed. Call it before long work."""
    if modules := missing_extra(name):
        raise MissingExtra(_extra_message(name, purpose, modules))


@contextmanager
def extra(name: str, purpose: str) -> Iterator[None]:
    """Context manager: imports of missing packages of the extra raise `MissingExtra`."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in EXTRAS[name]:  # another package is missing: keep its own message
            raise
        raise MissingExtra(_extra_message(name, purpose, [module])) from None


def extra_install_command(name: str) -> str:
    return f"pip install 'o2pl[{name}]'"


def _extra_message(name: str, purpose: str, modules: Sequence[str]) -> str:
    *others, last = (PACKAGES.get(module, module) for module in modules)
    packages = f"{', '.join(others)} and {last}" if others else last
    return f"{purpose} needs {packages}: {extra_install_command(name)}"
