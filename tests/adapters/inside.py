"""Python that runs with the libraries of `.venv-peers` beside our own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARIES = sorted((ROOT / ".venv-peers").glob("lib/python*/site-packages"))


def run_inside(library: str, code: str) -> str:
    """What the code prints; skipped where the library is not there. Our own package is the installed one."""
    if not LIBRARIES or not (LIBRARIES[0] / library).is_dir():
        pytest.skip(f"{library} is not in .venv-peers, which `make peers` makes")
    begin = f"import sys; sys.path.append({str(LIBRARIES[0])!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", begin + textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
