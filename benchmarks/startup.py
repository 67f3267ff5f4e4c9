"""CPU seconds, user and system, of `import o2pl`, of `o2pl --help` and of a first use, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from benchmarks.measure import Row, of_pairs

IMPORT = ("-c", "import o2pl")
HELP = ("-c", "from o2pl.cli import main; main()", "--help")
PLAIN = ("-c", "import numpy")
FIRST_USE = (
    "-c",
    "import numpy, o2pl; chance = numpy.random.default_rng(0); "
    "o2pl.O2PL(3).run((chance.normal(size=(300, 4)), chance.random((300, 3))))",
)


def cpu_seconds(arguments: tuple[str, ...], **variables: str) -> float:
    before = os.times()
    environment = {**os.environ, **variables}
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def startup(arguments: tuple[str, ...], repeats: int = 7) -> Row:
    """Beside a Python that imports numpy alone."""
    cpu_seconds(arguments)
    return of_pairs([(cpu_seconds(arguments), cpu_seconds(PLAIN)) for _ in range(repeats)], "CPU s")


def first_use(arguments: tuple[str, ...] = FIRST_USE, repeats: int = 3) -> Row:
    """The same process with an empty cache of compiled kernels, and with what that has left there."""

    def pair() -> tuple[float, float]:
        with tempfile.TemporaryDirectory() as folder:
            compiling, loading = (cpu_seconds(arguments, NUMBA_CACHE_DIR=folder) for _ in range(2))
            return compiling, loading

    return of_pairs([pair() for _ in range(repeats)], "CPU s")
