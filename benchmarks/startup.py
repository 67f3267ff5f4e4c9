"""CPU seconds of `from o2pl import Bandit`, of `o2pl --help` and of a first use, each in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from benchmarks.measure import Row, of_pairs

README = Path(__file__).parents[1] / "README.md"
IMPORT = ("-c", "from o2pl import Bandit")  # names are imported when they are first used
HELP = ("-c", "from o2pl.cli import main; main()", "--help")
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


def first_use(program: str | None = None, repeats: int = 7) -> Row:
    """README's first example, or `program`, beside a Python that imports numpy alone."""
    return startup(("-c", first_example(README.read_text()) if program is None else program), repeats)
