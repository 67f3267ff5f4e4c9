"""CPU seconds of an import and of a first use, each in a process of its own; the size of an environment."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement

import o2pl
from benchmarks.measure import Row, of_pairs

README = Path(__file__).parents[1] / "README.md"
IMPORT = ("-c", "from o2pl import Bandit")  # names are imported when they are first used
PLAIN = ("-c", "import numpy")


def first_example(page: str) -> str:
    """The first block of Python of a page."""
    found = re.search(r"```python\n(.*?)```", page, flags=re.DOTALL)
    if found is None:
        raise ValueError("page: found no block of Python, expected one between ```python and ```")
    return found[1]


def cpu_seconds(arguments: tuple[str, ...]) -> float:
    """Of a new Python, and of the processes that it starts and waits for."""
    before = os.times()
    environment = {**os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode; the first run leaves it
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def startup(arguments: tuple[str, ...], repeats: int = 7) -> Row:
    """Beside a Python that imports numpy alone."""
    cpu_seconds(arguments)
    return of_pairs([(cpu_seconds(arguments), cpu_seconds(PLAIN)) for _ in range(repeats)], "CPU s")


def imported(repeats: int = 7) -> Row:
    return startup(IMPORT, repeats)


def installed() -> Row:
    """MB of the packages that o2pl needs, with itself, and of NumPy alone: what their installed files take."""
    needed, left = set[str](), ["o2pl"]
    while left:
        name = left.pop().lower().replace("_", "-")
        if name in needed:
            continue
        needed.add(name)
        wanted = map(Requirement, importlib.metadata.requires(name) or ())
        left += [one.name for one in wanted if one.marker is None or one.marker.evaluate({"extra": ""})]
    return of_pairs([(sum(map(_megabytes, needed)), _megabytes("numpy"))], "MB")


def _megabytes(package: str) -> float:
    if package == "o2pl":  # perhaps installed from a checkout, whose files are listed nowhere
        paths: Iterable[Path] = (
            path for path in Path(o2pl.__file__).parent.rglob("*") if "__pycache__" not in path.parts
        )
    else:
        paths = (Path(str(file.locate())) for file in importlib.metadata.files(package) or ())
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def first_use(program: str | None = None, repeats: int = 7) -> Row:
    """README's first example, or `program`, beside a Python that imports numpy alone."""
    return startup(("-c", first_example(README.read_text()) if program is None else program), repeats)
