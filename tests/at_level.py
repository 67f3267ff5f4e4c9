"""Runs Python at a lower CPU level than this machine's: NumPy, OpenBLAS, JAX and the compiled core round as on another.

python tests/at_level.py -m pytest tests/learners          # the level below this machine's
python tests/at_level.py plain -m pytest tests/learners    # or avx2
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence

LEVELS = ("plain", "avx2", "avx512")
X86 = {"x86_64", "amd64"}
# level: OpenBLAS's name of a CPU without more, and XLA's of the instructions; it lacks a symbol below AVX.
NAMED = {"plain": ("Nehalem", "AVX"), "avx2": ("Haswell", "AVX2")}


def highest(features: Mapping[str, bool]) -> str:
    """Return this machine's level. features: name -> whether NumPy found it here."""
    if features.get("AVX512F") or features.get("X86_V4"):
        return "avx512"
    return "avx2" if features.get("AVX2") else "plain"


def to_disable(level: str, features: Mapping[str, bool], dispatched: Sequence[str]) -> list[str]:
    """Return the features above the level for which NumPy has code. It warns of those that the machine lacks."""
    here = [name for name in dispatched if features.get(name)]
    return here if level == "plain" else [name for name in here if "AVX512" in name or name == "X86_V4"]


def environment(level: str, features: Mapping[str, bool], dispatched: Sequence[str]) -> dict[str, str]:
    """Return what must be set before Python starts."""
    blas, xla = NAMED[level]
    return {
        "O2PL_LEVEL": level,
        "OPENBLAS_CORETYPE": blas,
        "NPY_DISABLE_CPU_FEATURES": " ".join(to_disable(level, features, dispatched)),
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_max_isa={xla}".strip(),
    }


def main(arguments: list[str]) -> int:
    from numpy._core._multiarray_umath import __cpu_dispatch__ as dispatched
    from numpy._core._multiarray_umath import __cpu_features__ as features

    asked = arguments.pop(0) if arguments[:1] and arguments[0] in NAMED else None
    own = highest(features)
    lower = LEVELS[: LEVELS.index(own)]
    level = asked or (lower[-1] if lower else None)
    if platform.machine().lower() not in X86 or level not in lower:
        print(f"this machine has no level below its own ({own}) that can be set; nothing is run")
        return 0
    print(f"CPU level {level}, of a machine with {own}", flush=True)
    return subprocess.run(
        [sys.executable, *arguments], env={**os.environ, **environment(level, features, dispatched)}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
