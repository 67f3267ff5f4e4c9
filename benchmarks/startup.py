"""CPU seconds, user and system, until `import o2pl` is done and `o2pl --help` has said its piece."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.measure import Row, of_pairs

IMPORT = ("-c", "import o2pl")
HELP = ("-c", "from o2pl.cli import main; main()", "--help")
PLAIN = ("-c", "import numpy")


def cpu_seconds(arguments: tuple[str, ...]) -> float:
    before = os.times()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def startup(arguments: tuple[str, ...], repeats: int = 7) -> Row:
    """Beside a Python that imports numpy alone."""
    cpu_seconds(arguments)
    return of_pairs([(cpu_seconds(arguments), cpu_seconds(PLAIN)) for _ in range(repeats)], "CPU s")
