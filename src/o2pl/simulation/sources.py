"""What rows depend on besides their settings: the sources that compute them, as a hash.

These are the compiled core, every part of the package on the way to a decision or an estimate, the file with the
function that computes a unit, and the files of its folder that this one imports.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import o2pl

_ROOT = Path(o2pl.__file__).parent
# Nothing in these changes a row.
_ASIDE = {"adapters", "cli", "demo", "drawing", "fitting", "formats", "locks", "serving"}
_OF_SIMULATION = ("comparing", "engines", "experiment", "figures", "progress", "runner", "sources", "store")
_ASIDE |= {f"simulation/{name}" for name in _OF_SIMULATION}


def digest_of_sources(run: Callable[..., Any]) -> str:
    """Return the hash of the sources of `run`, which computes a unit."""
    found = hashlib.sha256(_shared_sources().encode())
    for path in imported_sources(Path(str(getattr(sys.modules[run.__module__], "__file__", "")))):
        _add_source(found, path.name, path)
    return found.hexdigest()[:20]


@cache
def _shared_sources() -> str:
    found = hashlib.sha256()
    for path in shared_source_files():
        _add_source(found, path.relative_to(_ROOT).as_posix(), path)
    return found.hexdigest()


def _add_source(found: Any, name: str, path: Path) -> None:
    content = path.read_bytes()
    found.update(f"{name} {len(content)}\n".encode() + content)


def shared_source_files() -> list[Path]:
    """Return the files that count for every experiment, in order."""
    compiled = [path for path in _ROOT.glob("_core*") if path.suffix in (".so", ".pyd")]
    return sorted(compiled + [path for path in _ROOT.rglob("*.py") if not _aside_from_sources(path.relative_to(_ROOT))])


def _aside_from_sources(path: Path) -> bool:
    name = path.with_suffix("")
    return any(each.as_posix() in _ASIDE for each in (name, *name.parents))


def imported_sources(first: Path) -> list[Path]:
    """Return this file and those of its folder that it imports, directly or not, in order."""
    waiting, found = [first], set[Path]()
    while waiting:
        path = waiting.pop()
        if path not in found and path.is_file():
            found.add(path)
            waiting += (path.with_name(f"{name}.py") for name in _imports_of_source(path))
    return sorted(found)


def _imports_of_source(path: Path) -> Iterator[str]:
    """Yield the last parts of the names that a file imports; those of its folder are among them."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                names.append(node.module or "")
            yield from {name.rpartition(".")[2] for name in names}
